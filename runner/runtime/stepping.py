"""Stepping through a rollout: somebody is asked before each model call and after each answer, whatever the agent is.

The driver is the seam: every model call and every batch of tools of any workflow passes through it. What a person
chose is what the engine then records, so a rollout has one conversation however often its model was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

from runner.build.live import Live
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.event import Listener
from runner.records.failure import Failure, ModelError, RolloutError
from runner.records.message import Message, ToolCall
from runner.runtime.boundary import Attributed, failure_of
from runner.runtime.budget import Budget, Clock
from runner.runtime.driver import RolloutDriver
from runner.runtime.sampling import merge_sampling
from runner.tools.tool import ToolScope
from runner.tools.toolbox import Answer
from runner.workflows.answers import ToolAnswers

_LIFTS = {"max_turns": "turns", "max_tool_calls": "tool_calls", "max_total_tokens": "total_tokens", "max_cost": "cost"}
"""Stop reason of a limit -> the key of `[limits]` that is set aside when a person goes on past it."""

_FINAL = frozenset({"rollout_timeout", "malformed_calls", "ended"})
"""Kinds of failure after which no call of this rollout can be tried again."""


@dataclass(slots=True)
class Request:
    """A model call that is about to be sent. `messages` may be edited in place."""

    turn: int
    messages: list[Message]
    tools: Sequence[ToolSpec]
    sampling: Sampling


class Guide(Protocol):
    """Who walks through the rollout. Each method may take its time: the clock is theirs to stop."""

    async def asks(self, request: Request) -> None:
        """A call is about to be sent; returning sends it."""
        ...

    async def answered(self, request: Request, answers: Sequence[Completion]) -> Completion | None:
        """The model has answered, the last of `answers` being new. The one that stands, or None to ask again."""
        ...

    async def used(self, answers: Sequence[Answer]) -> bool:
        """A batch of tool calls is answered. Whether to run it again."""
        ...

    async def failed(self, failure: Failure, request: Request | None, again: bool) -> bool:
        """A call (`request`), or a batch of tools, failed or ran into a limit. Whether to try again, if `again`."""
        ...

    def lifted(self, limit: str) -> None:
        """The limit `limit` of `[limits]` was set aside, because the guide went on past it."""
        ...


@dataclass(frozen=True, slots=True)
class Stepping:
    """A guide, and the clock by which the rollout's time is measured."""

    guide: Guide
    clock: Clock

    def driver(
        self, live: Live, caller: Caller, sampling: Sampling, budget: Budget, scope: ToolScope, tell: Listener
    ) -> SteppingDriver:
        """The driver of a rollout that this guide walks through."""
        made = SteppingDriver(live, caller, sampling, budget, scope, tell)
        made.guide = self.guide
        return made


class SteppingDriver(RolloutDriver):
    """A driver that asks its guide at every step."""

    __slots__ = ("_edits", "_requests", "guide")

    guide: Guide

    def __init__(
        self, live: Live, caller: Caller, sampling: Sampling, budget: Budget, scope: ToolScope, tell: Listener
    ) -> None:
        super().__init__(live, caller, sampling, budget, scope, tell)
        self._edits: dict[int, tuple[Message, Message]] = {}
        self._requests: dict[int, Request] = {}

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] | None,
        sampling: Mapping[str, Any],
        sample_id: str = "",
    ) -> Completion:
        how = merge_sampling(self._sampling, sampling) if sampling else self._sampling
        offered = self.tools if tools is None else tools
        request = Request(self._budget.turns + 1, self._edited(messages), offered, how)
        given = [deepcopy(message) for message in request.messages]
        await self.guide.asks(request)
        while True:
            self._keep_edits(given, request.messages, messages)
            self._requests[id(request.messages)] = request
            before = self._budget.turns
            try:
                return await super().chat(request.messages, tools, sampling, sample_id)
            except (RolloutError, Attributed) as error:
                if not await self._again(error, request):
                    raise
                self._budget.turns = min(self._budget.turns, before)
            finally:
                self._requests.pop(id(request.messages), None)

    async def complete(
        self, messages: Sequence[Message], offered: Sequence[ToolSpec], sampling: Sampling
    ) -> Completion:
        request = self._requests[id(messages)]
        answers = [await super().complete(messages, offered, sampling)]
        while True:
            chosen = await self.guide.answered(request, answers)
            if chosen is not None:
                return chosen
            try:
                answers.append(await super().complete(messages, offered, sampling))
            except ModelError as error:  # the answers that there are can still stand
                await self.guide.failed(failure_of(error, "model", "model_error"), request, False)

    async def call_tools(
        self, calls: Sequence[ToolCall], tell: Callable[[ToolAnswers], Sequence[Message]] | None = None
    ) -> ToolAnswers:
        while True:
            before = self._budget.tool_calls
            try:
                return await super().call_tools(calls, tell)
            except (RolloutError, Attributed) as error:
                if not await self._again(error, None):
                    raise
                self._budget.tool_calls = min(self._budget.tool_calls, before)
                self.broken = None

    async def run_tools(self, calls: Sequence[ToolCall]) -> list[Answer]:
        while True:
            answers = await super().run_tools(calls)
            if not await self.guide.used(answers):
                return answers

    async def _again(self, error: RolloutError | Attributed, request: Request | None) -> bool:
        failure = failure_of(error, "tool" if request is None else "model", "crashed")
        can = not self._closed and failure.kind not in _FINAL
        if not await self.guide.failed(failure, request, can) or not can:
            return False
        tripped = self._budget.tripped
        if tripped is not None:
            self._lift(tripped.kind)
        return True

    def _lift(self, kind: str) -> None:
        self._budget.tripped = None
        if kind in _LIFTS:
            without: dict[str, Any] = {_LIFTS[kind]: None}
            self._budget.limits = replace(self._budget.limits, **without)
            self.guide.lifted(_LIFTS[kind])

    def _edited(self, messages: Sequence[Message]) -> list[Message]:
        """`messages` with what was edited in earlier turns: an agent may send its own copies again."""
        return [self._in_place_of(index, message) for index, message in enumerate(messages)]

    def _in_place_of(self, index: int, message: Message) -> Message:
        known = self._edits.get(index)
        return known[1] if known is not None and known[0] == message else message

    def _keep_edits(self, given: Sequence[Message], now: Sequence[Message], theirs: Sequence[Message]) -> None:
        """Note what was edited, and edit the agent's own message too: its answer may be made of it."""
        for index, (old, new) in enumerate(zip(given, now, strict=True)):
            if old != new:
                self._edits[index] = (deepcopy(old), new)
                own = theirs[index]
                if own is not new:
                    changed = dict(new)
                    own.clear()
                    own.update(changed)
