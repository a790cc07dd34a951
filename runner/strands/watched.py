"""`Watched`: tools that an agent of Strands runs by itself, counted and recorded as the engine's own are."""

from __future__ import annotations

import json
from contextlib import suppress
from time import perf_counter
from typing import Any

from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent, HookProvider, HookRegistry

from runner.records.failure import LimitReached, RolloutError
from runner.records.message import ToolCall, text_of
from runner.strands.conversation import Conversation
from runner.strands.guarded import GuardedTool
from runner.strands.tools import FileTool
from runner.workflows.blocks import to_chat
from runner.workflows.workflow import Driver, ToolStatus

_MISFIT = "Validation failed for input parameters"
"""How Strands begins its sentence about arguments that do not fit."""


class Watched(HookProvider):
    """Tells `driver` of each call. A call beyond a limit is not made; the limit ends the rollout at the next turn."""

    def __init__(self, driver: Driver, conversation: Conversation) -> None:
        self._driver = driver
        self._conversation = conversation
        self._began: dict[str, float] = {}
        self._overdue: set[str] = set()

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Hear of each call before and after it."""
        registry.add_callback(BeforeToolCallEvent, self._before)
        registry.add_callback(AfterToolCallEvent, self._after)

    def _before(self, event: BeforeToolCallEvent[Any]) -> None:
        if isinstance(event.selected_tool, FileTool):
            return
        try:
            self._driver.tool_began(self._call(event.tool_use))
            self._began[event.tool_use["toolUseId"]] = perf_counter()
        except RolloutError as error:
            event.cancel_tool = str(error)
            return
        if event.selected_tool is not None:
            event.selected_tool = GuardedTool(event.selected_tool, self._driver.tool_time, self._overdue.add)

    def _after(self, event: AfterToolCallEvent[Any]) -> None:
        began = self._began.pop(event.tool_use["toolUseId"], None)
        if began is None:  # a tool of the file, or one that was not allowed to run
            return
        (message,) = to_chat({"role": "user", "content": [{"toolResult": event.result}]})
        call = self._call(event.tool_use)
        with suppress(LimitReached):  # too many bad calls: the next turn is refused
            self._driver.tool_ended(call, self._status(event), text_of(message), perf_counter() - began)

    def _status(self, event: AfterToolCallEvent[Any]) -> ToolStatus:
        if event.tool_use["toolUseId"] in self._overdue:
            return "timeout"
        return _status(event)

    def _call(self, use: Any) -> ToolCall:
        name = use.get("toolUseId") or ""
        arguments = self._conversation.arguments(name)
        text = json.dumps(use.get("input"), ensure_ascii=False, default=str) if arguments is None else arguments
        return ToolCall(name, use.get("name") or "", text)


def _status(event: AfterToolCallEvent[Any]) -> ToolStatus:
    misfit = isinstance(event.exception, ValueError) and str(event.exception).startswith(_MISFIT)
    if event.selected_tool is None or misfit:
        return "bad_call"
    return "ok" if event.result.get("status") == "success" else "error"
