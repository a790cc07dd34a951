"""Agents of one's own: in Python, one inside of another, and under a file in eval."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.agentic import BaseAgent, ReactAgent, StepType, Trajectory, TrajectoryStep, load_trajectory, trajectory_of
from runner.build.plan import build
from runner.config.load import load
from runner.datasets.dataset import Row
from runner.diag.diagnostic import ConfigError
from runner.records.completion import Completion
from runner.runtime.rollout import run_rollout

AGENT = """
from runner.agentic import AgenticRollout, BaseAgent, StepType, Trajectory, TrajectoryStep, register_agent


@register_agent("reasons")
class Reasons(BaseAgent):
    async def run_trajectory(self, prompt, llm_generate_func, request_id, **kwargs):
        trajectory = Trajectory(request_id=request_id)
        trajectory.add_step(TrajectoryStep(step_type=StepType.OBSERVATION, content=str(prompt.get("content", prompt))))
        while self.should_continue(trajectory):
            step = self.parse_llm_output(await llm_generate_func(self.format_messages_for_llm(trajectory)))
            trajectory.add_step(step)
            if step.tool_name:
                trajectory.add_step(await self.execute_tool_call(step.tool_name, step.tool_args, trajectory))
        self.finalize_trajectory(trajectory)
        return trajectory


class Abstract(BaseAgent):
    pass


def double(number: int) -> int:
    return 2 * number


rollout = AgenticRollout({"agent_type": "tool", "tools_config": {"calculator": {"precision": 2}}})
rollout.tools = {"double": double}
twice = AgenticRollout()
twice.tools = {"add": double}
boxed = AgenticRollout({"tools_config": {"bash": {}}})
"""
FILE = """
[workflow]
name = "sums"
agent = "./agents.py:{agent}"
{more}
system = "Be brief."
[tools.add]
call = "./agents.py:double"
[model]
id = "x"
provider = "scripted"
{rules}
{graders}
"""


def size(text: str) -> int:
    return len(text)


class Reasons(BaseAgent):
    """The same in this file, with a reward for each step of the model."""

    async def run_trajectory(
        self, prompt: Any, llm_generate_func: Any = None, request_id: str = "", **keywords: Any
    ) -> Trajectory:
        trajectory = Trajectory(request_id)
        self.add_observation(trajectory, str(prompt))
        while self.should_continue(trajectory):
            step = self.parse_llm_output(await llm_generate_func(self.format_messages_for_llm(trajectory), **keywords))
            trajectory.add_step(step)
            if step.tool_name:
                trajectory.add_step(await self.execute_tool_call(step.tool_name, step.tool_args, trajectory))
        self.finalize_trajectory(trajectory)
        return trajectory

    def calculate_step_reward(self, step: TrajectoryStep, trajectory: Trajectory) -> float | None:
        return 0.5 if step.step_type is StepType.FINAL_ANSWER else None


def test_its_calls_are_the_engines(says: Callable[..., Any]) -> None:
    agent = Reasons()
    agent.set_tools([size])
    answer = Completion({"role": "assistant", "content": "Final Answer: 3"}, "stop",
                        logprobs={"content": [{"logprob": -0.5}]})  # fmt: skip
    function = says('Action: size(text="abc")', answer)
    trajectory = asyncio.run(agent.run_trajectory("?", function, "x", top_p=0.5))
    assert (function.asked[0]["temperature"], function.asked[0]["top_p"]) == (0.7, 0.5)
    assert (trajectory.steps[-1].log_probs, trajectory.final_reward) == ([-0.5], 0.5)
    assert (trajectory.metadata["turns"], trajectory.metadata["agent"]) == (2, "Reasons")
    assert function.asked[1]["messages"] == [
        {"role": "system", "content": trajectory.system_prompt}, *trajectory.get_messages()[:-1],
    ]  # fmt: skip


def test_its_errors_are_failures(says: Callable[..., Any]) -> None:
    class Breaks(Reasons):
        def parse_llm_output(self, output: Any) -> TrajectoryStep:
            raise KeyError("oh")

    broken = asyncio.run(Breaks().run_trajectory("?", says("x"), "x"))
    assert (broken.metadata["failure"]["boundary"], broken.metadata["failure"]["message"]) == (
        "workflow",
        "KeyError: 'oh'",
    )
    assert [step.content for step in broken.steps] == ["?"]

    class Forgets(BaseAgent):
        async def run_trajectory(self, *arguments: Any, **keywords: Any) -> Any:
            return None

    forgot = asyncio.run(Forgets().run_trajectory("?", says("x"), "x"))
    assert "returned NoneType: return the trajectory" in forgot.metadata["failure"]["message"]

    class Swallows(Reasons):
        async def run_trajectory(self, prompt: Any, llm_generate_func: Any = None, request_id: str = "",
                                 **keywords: Any) -> Trajectory:  # fmt: skip
            trajectory = Trajectory(request_id)
            try:
                await llm_generate_func([{"role": "user", "content": "?"}])
            except Exception:
                self.add_final_answer(trajectory, "never mind")
            self.finalize_trajectory(trajectory)
            return trajectory

    swallowed = asyncio.run(Swallows().run_trajectory("?", says(RuntimeError("no")), "x"))
    assert (swallowed.is_completed, swallowed.metadata["failure"]["kind"]) == (False, "model_refused")


def test_too_many_answers_that_cannot_be_read(says: Callable[..., Any]) -> None:
    agent = Reasons(max_steps=100)
    agent.set_tools([size])
    trajectory = asyncio.run(agent.run_trajectory("?", says("Action: size("), "x"))
    assert (trajectory.is_completed, trajectory.metadata["stop_reason"]) == (False, "malformed_calls")
    assert len(trajectory.steps) == 8  # the prompt, and all but the last of eight answers


def test_an_agent_asks_another(says: Callable[..., Any]) -> None:
    class Asks(BaseAgent):
        async def run_trajectory(self, prompt: Any, llm_generate_func: Any = None, request_id: str = "",
                                 **keywords: Any) -> Trajectory:  # fmt: skip
            trajectory = Trajectory(request_id)
            other = await ReactAgent().run_trajectory("a part of it", llm_generate_func, f"{request_id}/part")
            trajectory.metadata["part"] = other.to_dict()
            self.add_final_answer(trajectory, other.get_final_response() + "!")
            self.finalize_trajectory(trajectory)
            return trajectory

    trajectory = asyncio.run(Asks().run_trajectory("?", says("Final Answer: 5"), "whole"))
    assert (trajectory.get_final_response(), trajectory.metadata["turns"]) == ("5!", 1)
    part = trajectory.metadata["part"]
    assert (part["request_id"], part["metadata"]["parent"], part["is_completed"]) == ("whole/part", "whole", True)


def test_an_agent_of_ours_with_code_around_it(says: Callable[..., Any], tmp_path: Path) -> None:
    """Its `super().run_trajectory` plays in the same rollout: one record, the same tools, one file."""

    class Checks(ReactAgent):
        async def run_trajectory(self, prompt: Any, llm_generate_func: Any = None, request_id: str = "",
                                 **keywords: Any) -> Trajectory:  # fmt: skip
            trajectory = await super().run_trajectory(f"{prompt} Be sure.", llm_generate_func, request_id)
            trajectory.metadata["checked"] = keywords
            return trajectory

    agent = Checks()
    agent.set_tools([size])
    agent.save_trajectories, agent.trajectory_save_path = True, str(tmp_path)
    function = says('Action: size(text="abc")', "Final Answer: 3")
    trajectory = asyncio.run(agent.run_trajectory("How long?", function, "x", level=1))
    assert [step.content for step in trajectory.steps][::3] == ["How long? Be sure.", "3"]
    assert (trajectory.is_completed, trajectory.metadata["turns"], trajectory.metadata["checked"]) == (
        True,
        2,
        {"level": 1},
    )
    assert [load_trajectory(path) for path in tmp_path.iterdir()] == [trajectory]
    limited = asyncio.run(Checks(max_steps=1).run_trajectory("?", says("Final Answer: 3"), "x"))
    assert (limited.is_completed, limited.metadata["stop_reason"]) == (False, "max_steps")
    with pytest.raises(TypeError, match="takes no `level`"):
        asyncio.run(ReactAgent().run_trajectory("?", function, "x", level=1))


def test_outside_of_a_rollout() -> None:
    agent = Reasons()
    agent.set_tools([size])
    step = asyncio.run(agent.execute_tool_call("size", {"text": "abc"}))
    assert (step.step_type, step.content, step.tool_result) == (StepType.ACTION_RESULT, "Observation: 3", 3)
    parsed = agent.parse_llm_output('Thought: x\nAction: size("abc")')
    assert (parsed.tool_name, parsed.tool_args) == ("size", {"text": "abc"})
    assert agent.parse_llm_output("3").step_type is StepType.THOUGHT
    assert Reasons().parse_llm_output("3").step_type is StepType.FINAL_ANSWER  # nothing else could be meant
    trajectory = Trajectory("x")
    agent.add_action(trajectory, "size", {"text": "abc"})
    assert trajectory.steps[0].content == 'Action: size(text="abc")'
    told = agent.format_messages_for_llm(trajectory, "Well?")
    assert [message["role"] for message in told] == ["system", "assistant", "user"]


def played(folder: Path, agent: str, *answers: Any, more: str = "", graders: str = "") -> Any:
    (folder / "agents.py").write_text(AGENT)
    rules = "".join(f'[[model.rules]]\nwhen = "turn == {place}"\n{answer}\n' for place, answer in enumerate(answers))
    text = FILE.format(agent=agent, more=more, rules=rules, graders=graders)
    (folder / "workflow.toml").write_text(text)
    plan = build(load(folder / "workflow.toml"))

    async def play() -> Any:
        async with plan.open() as live:
            row = Row(0, "r0", {"user_prompt": "2*21?", "ground_truth": "42", "level": 3}, "digest")
            return await run_rollout(live, plan.request(row, 0))

    return plan, asyncio.run(play())


EXACT = '[graders.answer]\nkind = "exact"\n'


@pytest.mark.parametrize("agent", ["Reasons", "reasons"])
def test_under_a_file(tmp_path: Path, agent: str) -> None:
    answers = ("reply = 'Action: add(number=21)'", 'reply = "Thought: so\\nFinal Answer: 42"')
    plan, outcome = played(tmp_path, agent, *answers, more="config = { max_steps = 6 }", graders=EXACT)
    assert (outcome.status, outcome.reward, outcome.stop_reason) == ("scored", 1.0, "final_answer")
    assert (plan.offered, outcome.sample.metrics["steps"]) == ((), 4)
    trajectory = trajectory_of(outcome)
    assert [step.step_type.value for step in trajectory.steps] == [
        "observation",
        "action",
        "action_result",
        "final_answer",
    ]
    assert (trajectory.final_reward, trajectory.is_completed) == (1.0, True)
    system = outcome.sample.messages[0]["content"]
    assert system.startswith("Be brief.\n\nYou have these tools:\n\nadd(number: integer)")


@pytest.mark.parametrize(("rule", "status", "reward"), [("score", "scored", 0.0), ("ungraded", "ungraded", None)])
def test_a_limit_is_no_answer(tmp_path: Path, rule: str, status: str, reward: float | None) -> None:
    graders = f'{EXACT}[limits]\non_limit = "{rule}"\n'
    more = "config = { max_steps = 3 }"
    _, outcome = played(tmp_path, "Reasons", *["reply = 'Thought: 42'"] * 3, more=more, graders=graders)
    assert (outcome.status, outcome.reward, outcome.stop_reason) == (status, reward, "max_steps")


def test_a_rollout_under_a_file(tmp_path: Path) -> None:
    calls = [("double", {"number": 21}), ("add", {"number": 1}), ("calculator", {"expression": "1/3"})]
    written = ", ".join(f'{{ name = "{name}", arguments = {json.dumps(json.dumps(given))} }}' for name, given in calls)
    plan, outcome = played(tmp_path, "rollout", f"tool_calls = [{written}]", 'reply = "42"', graders=EXACT)
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    assert {spec.name for spec in plan.offered} == {"add", "calculator", "double"}
    told = [message["content"] for message in outcome.sample.messages if message["role"] == "tool"]
    assert (told[0], told[1]) == ("42", "2")
    assert "0.33" in told[2]


@pytest.mark.parametrize(
    ("agent", "more", "said"),
    [
        ("Abstract", "", "it does not define `run_trajectory`"),
        ("Reasons", "config = { max_steps = 0 }", "max_steps is a whole number from 1"),
        ("Reasons", "config = { max_step = 3 }", "did you mean 'max_steps'"),
        ("rollout", "config = { max_steps = 3 }", "it is made already"),
        ("AgenticRollout", "", "it is a class of rollouts"),
        ("twice", "", "brings a tool called `add`, and so does the file"),
        ("boxed", "", "it needs a sandbox of its own"),
        ("raesons", "", "did you mean"),
    ],
)
def test_what_cannot_be_under_a_file(tmp_path: Path, agent: str, more: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        played(tmp_path, agent, "reply = 'x'", more=more)
    found = [f"{finding.message} {finding.label}" for finding in raised.value.report]
    assert any(said in each for each in found), found
