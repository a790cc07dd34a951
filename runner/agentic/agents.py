"""The agents of the third seed, each played by a workflow of the engine: react, tool, coding, general."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from runner.agentic.agent import BaseAgent
from runner.agentic.interaction import TalkingWorkflow
from runner.agentic.registry import builtin_agent

if TYPE_CHECKING:
    from runner.agentic.trajectory import Trajectory
    from runner.build.plan import Plan
    from runner.workflows.calling import Calling
    from runner.workflows.parsers.parser import Parser
    from runner.workflows.workflow import AgentWorkflow

FINISH = "finish"


class EngineAgent(BaseAgent):
    """An agent that the engine plays by itself. Subclass it for another system prompt or another format."""

    ends: ClassVar[tuple[str, ...]] = (FINISH,)
    """Tools whose call ends the trajectory."""

    knobs: ClassVar[Sequence[str] | None] = ()

    async def run_trajectory(
        self, prompt: Any, llm_generate_func: Callable[..., Any] | None = None, request_id: str = "", **keywords: Any
    ) -> Trajectory:
        if keywords:
            raise TypeError(f"{type(self).__name__}.run_trajectory takes no `{next(iter(keywords))}`")
        from runner.agentic.play import play_prompt, play_within
        from runner.agentic.playing import playing

        current = playing()
        if current is not None and current.agent is self and current.request_id == request_id:
            return await play_within(current, prompt)  # code of one's own calls `super().run_trajectory`
        return await play_prompt(self, prompt, llm_generate_func, request_id, {}, by_engine=True)

    run_trajectory.of_engine = True  # type: ignore[attr-defined]

    def create_system_prompt(self) -> str:
        """`system_prompt` of its keywords. What it may call, and how, the engine tells."""
        return str(self.config.get("system_prompt") or "")

    def calling(self, *, native: bool) -> Calling:
        """How it calls tools."""
        from runner.workflows.calling_text import TextCalling

        return TextCalling(self._parser())

    def workflow(self, plan: Plan, *, native: bool) -> AgentWorkflow[Any]:
        stop_when = ["no_tool_call", *(f"tool:{name}" for name in self._ends())]
        return TalkingWorkflow(stop_when, self.calling(native=native), self.interactions)

    def _ends(self) -> Sequence[str]:
        return self.ends


@builtin_agent("react")
class ReactAgent(EngineAgent):
    """Thoughts and actions in text: `Thought: …`, `Action: tool(a=1)`, `Final Answer: …`."""


@builtin_agent("tool")
class ToolAgent(EngineAgent):
    """Calls tools until it answers: natively where the LLM function takes `tools`, else as `TOOL_CALL: tool(a=1)`."""

    calls_natively = True

    def calling(self, *, native: bool) -> Calling:
        from runner.workflows.calling import NativeCalling
        from runner.workflows.calling_text import TextCalling

        return NativeCalling() if native else TextCalling(self._parser())

    def _parser(self) -> Parser:
        from runner.agentic.tool_call_lines import ToolCallLines

        return ToolCallLines()


@builtin_agent("general")
class GeneralAgent(EngineAgent):
    """Thoughts, and actions as JSON, until it answers or calls one of `termination_tool_names`.

    `action_parser`, a function of a text, reads another format: it gives a call (`tool_name`, `tool_args`), a list of
    them, or a final answer.
    """

    parser = "react-json"

    def __init__(
        self,
        *arguments: Any,
        termination_tool_names: Sequence[str] = (FINISH,),
        action_parser: Callable[[str], Any] | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*arguments, **keywords)
        self.termination_tool_names = tuple(termination_tool_names)
        self.action_parser = action_parser

    def _ends(self) -> Sequence[str]:
        return self.termination_tool_names

    def _parser(self) -> Parser:
        if self.action_parser is None:
            return super()._parser()
        from runner.workflows.parsers.own import ParserMisfit, own_parser

        try:
            return own_parser(self.action_parser)
        except ParserMisfit as misfit:
            raise ValueError(f"action_parser cannot be a parser: {misfit}") from None


_KNOBS = ("sandbox", "folder", "test_command", "test_after_changes", "max_files_to_explore",
          "max_implementation_attempts", "max_patch_bytes")  # fmt: skip
_TOOLS = {"bash": "bash", "editor": "file_editor", "search": "search", "finish": "finish"}


@builtin_agent("coding")
class CodingAgent(EngineAgent):
    """Works on a repository in a sandbox, and leaves a patch: `metadata["info"]["patch"]`.

    The sandbox is `tools_config["sandbox"]`, with the keys of a file's `[sandboxes]`. Its knobs are the keys of the
    file's agent `coding`. Without tools of its own it gets a shell, an editor and a search.
    """

    knobs = _KNOBS

    def settings(self, *, native: bool) -> dict[str, Any]:
        knobs = {key: value for key, value in self.config.items() if key in _KNOBS}
        settings: dict[str, Any] = {"workflow.agent": "coding", "workflow.config": knobs}
        if not native:
            settings["workflow.parser"] = self.parser
        if not self.tools and not set(self.tools_config) - {"sandbox"}:
            settings |= {f"tools.{name}.builtin": kind for name, kind in _TOOLS.items()}
        if "sandbox" not in self.tools_config:
            settings["sandboxes.work.kind"] = "bubblewrap"
        return settings

    def workflow(self, plan: Plan, *, native: bool) -> AgentWorkflow[Any]:
        if self.interactions:
            raise ValueError("the coding agent takes no interactions: its result is the patch that it leaves")
        return plan.make_workflow()
