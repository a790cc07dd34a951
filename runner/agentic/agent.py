"""`BaseAgent`: an agent of the third seed. Subclass it, write `run_trajectory`, and the engine plays it.

Whoever calls `run_trajectory` gets a rollout of ours: with its limits, its records, its tools. Inside of it, your code
is handed a function that asks the model, and the methods here call tools and read answers the way the engine does.
"""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from runner.agentic.adapted import adapted
from runner.agentic.conversation import answered, asks_on
from runner.agentic.reply import completion_of
from runner.agentic.steps import log_probs_of
from runner.agentic.trajectory import MESSAGE, StepType, Trajectory, TrajectoryStep
from runner.records.message import Message

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.tools.tool import Tool
    from runner.workflows.parsers.parser import Parsed, Parser
    from runner.workflows.workflow import AgentWorkflow


def _prepare(target: Any, config: Mapping[str, Any]) -> Any:
    from runner.agentic.hosting import prepare_agent

    return prepare_agent(target, config)


class BaseAgent(ABC):
    """Plays one prompt at a time to a `Trajectory`. `max_steps` counts steps: observations and results too.

    `tools_config` names built-in tools with their settings, and classes. Other keywords are kept in `config`;
    `system_prompt` is one that every agent knows. Raises ValueError for a limit that cannot be, and for a keyword that
    nothing would read.
    """

    parser: ClassVar[str] = "react-text"
    """The text format that `parse_llm_output` reads, and that `create_system_prompt` tells."""

    knobs: ClassVar[Sequence[str] | None] = None
    """The further keywords that it takes; None: any, for its own code to read."""

    calls_natively: ClassVar[bool] = False
    """Whether its tools are offered over the wire where the model takes that; else they are told in words."""

    __workflow__ = staticmethod(_prepare)
    """How a file's `[workflow] agent` plays one: see `runner.workflows.playable`."""

    def __init__(
        self,
        max_steps: int = 10,
        max_tokens_per_step: int | None = 512,
        temperature: float | None = 0.7,
        tools_config: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        _check(max_steps, max_tokens_per_step, temperature)
        _check_words(config, self.knobs)
        self.max_steps = max_steps
        self.max_tokens_per_step = max_tokens_per_step
        self.temperature = temperature
        self.tools_config = dict(tools_config or {})
        self.config = config
        self.tools: dict[str, Any] = {}
        self.interactions: dict[str, Any] = {}
        self.save_trajectories: bool | None = None
        self.trajectory_save_path: str | None = None
        self._plans: dict[Any, Plan] = {}
        self._adapted: dict[str, Tool] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        own = cls.__dict__.get("run_trajectory")
        if own is not None and not getattr(own, "__isabstractmethod__", False) and not is_engines(own):
            cls.run_trajectory = _played(own)  # type: ignore[method-assign]

    @abstractmethod
    async def run_trajectory(
        self, prompt: Any, llm_generate_func: Callable[..., Any] | None = None, request_id: str = "", **keywords: Any
    ) -> Trajectory:
        """Play a prompt. `prompt` is a text, messages, or a dictionary with `content` or `messages`.

        Without a function, the variables of the environment say which model answers. What goes wrong is in the
        trajectory: `is_completed` is False, and `metadata["failure"]` says whose fault it is.
        """

    def workflow(self, plan: Plan, *, native: bool) -> AgentWorkflow[Any]:
        """The engine's own workflow that plays this agent. Only those of the engine have one."""
        raise NotImplementedError(f"{type(self).__name__} is played by its own `run_trajectory`")

    def settings(self, *, native: bool) -> dict[str, Any]:
        """Keys of a workflow file that this agent is played under."""
        return {}

    def set_tools(self, tools: Mapping[str, Any] | Sequence[Any]) -> None:
        """The tools it may call: by name, or a list. Raises TypeError for what is no tool."""
        named = adapted(tools)
        given = tools.values() if isinstance(tools, Mapping) else tools
        self.tools = dict(zip(named, given, strict=True))
        self._plans.clear()
        self._adapted = None

    def set_interactions(self, interactions: Mapping[str, Any]) -> None:
        """Who answers it after its final answer. Raises TypeError for what cannot."""
        from runner.agentic.interaction import checked

        self.interactions = checked(interactions)

    # What an agent of one's own is made of.

    def should_continue(self, trajectory: Trajectory) -> bool:
        """Whether it has steps left and has not ended."""
        steps = trajectory.steps
        ended = bool(steps) and steps[-1].step_type is StepType.FINAL_ANSWER
        return len(steps) < self.max_steps and not trajectory.is_completed and not ended

    def create_system_prompt(self) -> str:
        """The system prompt: `system_prompt` of its keywords, and with tools, what they are and how they are called."""
        from runner.agentic.playing import specs_of

        specs = specs_of(self)
        told = self._parser().instructions(specs) if specs else ""
        return "\n\n".join(part for part in (str(self.config.get("system_prompt") or ""), told) if part)

    def format_messages_for_llm(
        self, trajectory: Trajectory, additional_message: str | Message | None = None
    ) -> list[Message]:
        """The conversation so far, with the system prompt, ending in something for the model to answer."""
        from runner.agentic.playing import playing

        current = playing()
        system = trajectory.system_prompt
        if system is None:
            asked = current.system_prompt if current is not None else ""
            system = "\n\n".join(part for part in (asked, self.create_system_prompt()) if part)
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        messages += answered(trajectory)
        if additional_message is not None:
            more = {"role": "user", "content": additional_message}
            messages.append(more if isinstance(additional_message, str) else dict(additional_message))
        elif messages and messages[-1].get("role") == "assistant":
            messages.append(asks_on(trajectory.steps[-1]))
        return messages

    def parse_llm_output(self, output: Any) -> TrajectoryStep:
        """An answer as a step: an action, the final answer, or a thought. A call that cannot be read is a thought,
        and the model is told what is wrong with it. Without tools, an answer in no format is the final answer.
        """
        from runner.agentic.playing import misread, specs_of

        text, specs = str(output), specs_of(self)
        step = self._step(self._parser().parse(text), text, tools=bool(specs))
        if step.metadata.get("correction") and specs:
            misread()
        completion = completion_of(output)
        if completion is not None:
            step.log_probs = log_probs_of(completion.logprobs)
            tokens = completion.token_ids or step.log_probs
            step.attention_mask = [1] * len(tokens) if tokens else None
            step.metadata |= {"token_ids": completion.token_ids} if completion.token_ids else {}
            step.metadata |= {"finish_reason": completion.finish_reason} if completion.finish_reason else {}
        return step

    def _step(self, parsed: Parsed, text: str, *, tools: bool) -> TrajectoryStep:
        from runner.agentic.playing import arguments_for

        if parsed.calls:
            call = parsed.calls[0]
            return TrajectoryStep(StepType.ACTION, text, {}, call.name, arguments_for(self, call))
        if parsed.answer is not None or not (tools or parsed.parts):
            answer = text.strip() if parsed.answer is None else parsed.answer
            kept = {} if answer == text else {MESSAGE: {"role": "assistant", "content": text}}
            return TrajectoryStep(StepType.FINAL_ANSWER, answer, kept)
        problem = parsed.faults[0].problem if parsed.faults else self._parser().correction(parsed)
        return TrajectoryStep(StepType.THOUGHT, text, {"correction": problem})

    async def execute_tool_call(
        self, tool_name: str, tool_args: Mapping[str, Any] | None, trajectory: Trajectory | None = None
    ) -> TrajectoryStep:
        """Call a tool; the step that holds its result. A tool that fails, or that is none, is a result as well."""
        from runner.agentic.playing import call_tool

        return await call_tool(self, tool_name, dict(tool_args or {}), self._parser())

    def calculate_step_reward(self, step: TrajectoryStep, trajectory: Trajectory) -> float | None:
        """The reward of a step that has none, asked when the trajectory is finalized; None for none."""
        return None

    def finalize_trajectory(self, trajectory: Trajectory) -> None:
        """Give the steps their rewards, and say whether it has ended: only one with a final answer has."""
        for step in trajectory.steps:
            if step.reward_score is None:
                step.reward_score = self.calculate_step_reward(step, trajectory)
        trajectory.is_completed = any(step.step_type is StepType.FINAL_ANSWER for step in trajectory.steps[-1:])
        if any(step.reward_score is not None for step in trajectory.steps):
            trajectory.final_reward = trajectory.get_total_reward()

    def add_observation(self, trajectory: Trajectory, content: str, **metadata: Any) -> TrajectoryStep:
        """Add what the agent sees."""
        return _added(trajectory, StepType.OBSERVATION, content, metadata)

    def add_thought(self, trajectory: Trajectory, content: str, **metadata: Any) -> TrajectoryStep:
        """Add what it thinks."""
        return _added(trajectory, StepType.THOUGHT, content, metadata)

    def add_action(
        self, trajectory: Trajectory, tool_name: str, tool_args: Mapping[str, Any], content: str | None = None
    ) -> TrajectoryStep:
        """Add a call of a tool; without `content`, it is written down as the format has it."""
        from runner.workflows.parsers.parser import Parsed, WrittenCall

        written = content or self._parser().render(Parsed(parts=(WrittenCall(tool_name, dict(tool_args)),)))
        step = TrajectoryStep(StepType.ACTION, written, {}, tool_name, json.loads(json.dumps(dict(tool_args))))
        trajectory.add_step(step)
        return step

    def add_final_answer(self, trajectory: Trajectory, content: str, **metadata: Any) -> TrajectoryStep:
        """Add the answer."""
        return _added(trajectory, StepType.FINAL_ANSWER, content, metadata)

    def _parser(self) -> Parser:
        from runner.workflows.parsers.named import parser_named

        return parser_named(self.parser)


def is_engines(run: Any) -> bool:
    """Whether a `run_trajectory` is the one by which the engine plays agents."""
    return bool(getattr(run, "of_engine", False))


def _added(trajectory: Trajectory, kind: StepType, content: str, metadata: dict[str, Any]) -> TrajectoryStep:
    step = TrajectoryStep(kind, content, metadata)
    trajectory.add_step(step)
    return step


def _played(own: Callable[..., Any]) -> Callable[..., Any]:
    """`run_trajectory` as others call it: a rollout, inside of which `own` runs."""

    @functools.wraps(own)
    async def run_trajectory(
        self: BaseAgent, prompt: Any, llm_generate_func: Any = None, request_id: str = "", **keywords: Any
    ) -> Trajectory:
        from runner.agentic.play import play_prompt
        from runner.agentic.playing import is_playing

        if is_playing(self, request_id):
            result: Trajectory = await own(self, prompt, llm_generate_func, request_id, **keywords)
            return result
        return await play_prompt(self, prompt, llm_generate_func, request_id, keywords)

    return run_trajectory


_OWN = ("max_steps", "max_tokens_per_step", "temperature", "tools_config", "system_prompt")


def _check_words(config: Mapping[str, Any], knobs: Sequence[str] | None) -> None:
    """Refuse a keyword that nothing reads: one that no agent of ours has, or a slip of the pen in one's own."""
    for key in config:
        if key in _OWN or (knobs is not None and key in knobs):
            continue
        near = get_close_matches(key, [*_OWN, *(knobs or ())], n=1, cutoff=0.8)
        if near:
            raise ValueError(f"there is no keyword {key!r}; did you mean {near[0]!r}?")
        if knobs is not None:
            raise ValueError(f"there is no keyword {key!r}; there are: {', '.join([*_OWN, *knobs])}")


def _check(max_steps: Any, max_tokens: Any, temperature: Any) -> None:
    for name, value in (("max_steps", max_steps), ("max_tokens_per_step", max_tokens)):
        optional = value is None and name != "max_steps"
        if not optional and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{name} is a whole number from 1, found {value!r:.60}")
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if temperature is not None and not (number and 0 <= temperature < float("inf")):
        raise ValueError(f"temperature is a number from 0, found {temperature!r:.60}")
