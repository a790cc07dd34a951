"""`FileTool`: a tool of the file as a tool of Strands. The engine runs it, with its limits, time-outs and records."""

from __future__ import annotations

import json
from typing import Any

from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from strands.types.tools import AgentTool

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall, text_of
from runner.strands.model import EngineModel
from runner.strands.tool_context import calling
from runner.workflows.workflow import AgentWorkflowContext, Driver


class FileTool(AgentTool):
    """Hands a call to the driver. What the engine ends the rollout for, the agent's next model call raises."""

    def __init__(self, spec: ToolSpec, driver: Driver) -> None:
        super().__init__()
        self._spec = spec
        self._driver = driver

    @property
    def tool_name(self) -> str:
        return self._spec.name

    @property
    def tool_spec(self) -> Any:
        schema = {"json": dict(self._spec.parameters)}
        return {
            "name": self._spec.name,
            "description": self._spec.description or self._spec.name,
            "inputSchema": schema,
        }

    @property
    def tool_type(self) -> str:
        return "python"

    async def stream(self, tool_use: Any, invocation_state: dict[str, Any], **_: Any) -> Any:
        """One result."""
        model = getattr(invocation_state.get("agent"), "model", None)
        name = tool_use["toolUseId"]
        arguments = model.conversation.arguments(name) if isinstance(model, EngineModel) else None
        if arguments is None:
            arguments = json.dumps(tool_use.get("input") or {}, ensure_ascii=False)
        try:
            with calling(tool_use, invocation_state):
                answers = await self._driver.call_tools([ToolCall(name, tool_use["name"], arguments)])
        except Exception as error:  # Strands would tell the model of it and go on
            if isinstance(model, EngineModel):
                model.broken = error
            yield _result(name, "error", str(error))
            return
        yield _result(name, "success" if answers.statuses[0] == "ok" else "error", text_of(answers[0]))


class Strangers(HookProvider):
    """Hands calls of tools that do not exist to the engine, which answers and counts them as anybody else's."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Hear of each call before it is made."""
        registry.add_callback(BeforeToolCallEvent, self._before)

    def _before(self, event: BeforeToolCallEvent[Any]) -> None:
        if event.selected_tool is None:
            event.selected_tool = FileTool(ToolSpec(event.tool_use["name"], "", {}), self._driver)


def strands_tools(ctx: AgentWorkflowContext[Any]) -> list[AgentTool]:
    """The tools of the file that `ctx` offers, for the `tools` of an agent of Strands."""
    return [FileTool(spec, ctx.driver) for spec in ctx.tools]


def _result(call_id: str, status: str, text: str) -> dict[str, Any]:
    return {"toolUseId": call_id, "status": status, "content": [{"text": text}]}
