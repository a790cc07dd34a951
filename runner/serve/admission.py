"""`Admission`: a start is parsed, checked, told from a repeated one and given a place; it counts once it is on disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from time import monotonic, time
from typing import Any, TypeAlias

from runner.build.plan import Plan
from runner.datasets.dataset import DatasetError
from runner.records.completion import ToolSpec
from runner.records.failure import WorkflowError
from runner.records.rollout import RolloutRequest
from runner.runtime.offered import offered_to
from runner.serve.alive import Alive
from runner.serve.dialects.dialect import Dialect
from runner.serve.played import Played
from runner.serve.slots import Slots
from runner.serve.start import Refused, Start
from runner.store.errors import StoreError
from runner.store.outbox import Accepted, Outbox

_LATER = {"retry-after": "5"}
_SOON = {"retry-after": "1"}

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""The headers of a request as ASGI gives them; names in lower case."""
Traced: TypeAlias = Callable[[Start, Headers], None]
"""Told of each start that is about to be written down, with its request's headers: they may name a trace."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over HTTP."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """What `[serve]` says about taking rollouts."""

    max_concurrent: int = 256
    max_queue: int = 4096
    dedupe: str = "join"
    on_restart: str = "run"
    worker: int = 0


class Admission:
    """Lets rollouts in. `check` refuses URLs that may not be called; `enter` gets each one that is on disk."""

    def __init__(
        self,
        plan: Plan,
        outbox: Outbox,
        alive: Alive,
        slots: Slots[Played],
        policy: Policy,
        *,
        check: Callable[[Start], None],
        enter: Callable[[Played], None],
        traced: Traced | None = None,
    ) -> None:
        self._plan = plan
        self._outbox = outbox
        self._alive = alive
        self._slots = slots
        self._policy = policy
        self._check = check
        self._enter = enter
        self._traced = traced
        self.closed = False
        self.accepted = 0

    async def start(self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Headers = ()) -> Answer:
        """Accept one rollout. The answer is given when it is on disk. Raises `Refused`."""
        if self.closed:
            raise Refused(503, "server shutting down", _LATER)
        admitted = monotonic()
        attempt_id = token_hex(16)
        start = self.parse(dialect, body, attempt_id)
        request = self.request(start)
        tools = self._tools(request)
        status, answer = dialect.accepted(start, tools)
        keys = self._keys(dialect, start)
        first = self._alive.keyed(keys)
        if first is not None:
            return await self._join(first, dialect, hash(raw), tools)
        if not self._slots.reserve():
            return await self._full(dialect, keys, tools)
        played = Played(attempt_id, dialect, start, request, admitted, hash(raw), self.until(request, admitted))
        self._alive.add(played, keys)
        if self._traced is not None:
            self._traced(start, headers)
        accepted = Accepted(
            played.attempt_id, start.rollout_id, dialect.name, keys, raw, time(), worker=self._policy.worker
        )
        holder = await _holder(self._store(played, accepted))
        if holder is not None:
            return await self._repeated(holder, dialect, tools)
        for note in start.notes:
            log.warning("rollout %s: %s", start.rollout_id, note)
        return Answer(status, answer)

    def parse(self, dialect: Dialect, body: Mapping[str, Any], rollout_id: str) -> Start:
        """What a body asks for, where its URLs may be called. Raises `Refused`."""
        start = dialect.parse(body, rollout_id)
        self._check(start)
        return start

    def request(self, start: Start) -> RolloutRequest:
        """The rollout that a start asks for. Raises `Refused` when the file's templates cannot be filled in with it."""
        try:
            return self._plan.served_request(
                start.rollout_id,
                start.prompt,
                start.metadata,
                start.label,
                sampling=start.sampling,
                limits=start.limits,
            )
        except DatasetError as error:
            raise Refused(422, str(error)) from None

    def _tools(self, request: RolloutRequest) -> Sequence[ToolSpec]:
        """What the model is offered in this rollout. Raises `Refused` when an agent loop cannot list its tools."""
        try:
            return offered_to(self._plan, request)
        except WorkflowError as error:
            log.error("a start was refused: %s", error)
            raise Refused(500, str(error)) from None

    def until(self, request: RolloutRequest, admitted: float) -> float | None:
        """When its time is over, on the monotonic clock."""
        seconds = request.limits.get("time", self._plan.limits.time)
        return None if seconds is None else admitted + seconds

    def _keys(self, dialect: Dialect, start: Start) -> tuple[str, ...]:
        """What makes a second start the same one. Agent-loop controllers count on being joined."""
        if self._policy.dedupe == "run" and dialect.name != "agent-loop":
            return ()
        return tuple(f"{dialect.path} {key}" for key in start.keys)

    def _store(self, played: Played, accepted: Accepted) -> asyncio.Future[str | None]:
        """Write it down, then let it in, whether or not whoever asked hangs up meanwhile. See `_holder`."""
        try:
            stored = self._outbox.accepting(accepted)
        except StoreError as error:
            stored = asyncio.get_running_loop().create_future()
            stored.set_exception(error)
        played.stored = stored
        stored.add_done_callback(partial(self._stored, played))
        return stored

    def _stored(self, played: Played, stored: asyncio.Future[str | None]) -> None:
        error = None if stored.cancelled() else stored.exception()
        try:
            if error is not None:
                log.error("a rollout was refused: %s", error)
            elif not stored.cancelled() and stored.result() is None:
                self.accepted += 1
                self._enter(played)
        finally:
            if played.phase == "accepting":
                self._slots.give_back()
                self._alive.remove(played)

    async def _join(self, first: Played, dialect: Dialect, mark: int, tools: Sequence[ToolSpec]) -> Answer:
        if first.stored is not None and first.phase == "accepting":
            holder = await _holder(first.stored)
            if holder is not None:
                return await self._repeated(holder, dialect, tools)
        if first.stop.reason == "cancelled":  # nothing may ever be said of it: whoever joined it would wait for ever
            raise Refused(dialect.full_status, "the rollout is just being cancelled; retry later", _SOON)
        self._reject(dialect, first.name)
        if first.mark != mark:
            log.warning("rollout %s was started again with another body; the first one counts", first.name)
        return Answer(*first.dialect.accepted(first.start, self._tools(first.request)))

    async def _repeated(self, holder: str, dialect: Dialect, tools: Sequence[ToolSpec]) -> Answer:
        """The answer to a start whose rollout was accepted before, and may have ended long ago."""
        known = await self._outbox.attempt(holder)
        if known is None:
            raise Refused(503, "the rollout is just being forgotten; retry later", _LATER)
        self._reject(dialect, known.rollout_id)
        return Answer(*dialect.repeated(known.rollout_id, tools))

    def _reject(self, dialect: Dialect, name: str) -> None:
        if self._policy.dedupe == "reject" and dialect.name != "agent-loop":
            raise Refused(409, f"rollout {name!r} was accepted before")

    async def _full(self, dialect: Dialect, keys: tuple[str, ...], tools: Sequence[ToolSpec]) -> Answer:
        holder = await self._outbox.holder(keys) if keys else None
        if holder is not None:
            return await self._repeated(holder, dialect, tools)
        wait = {"retry-after": str(self._slots.retry_after())}
        raise Refused(dialect.full_status, "rollout queue is full; retry later", wait)


async def _holder(stored: asyncio.Future[str | None]) -> str | None:
    """The attempt that had its key before, None if it was stored. Raises `Refused` if it could not be.

    The writing is shielded: who waits here may hang up. A shielded task in its place costs 5 us more.
    """
    try:
        return await asyncio.shield(stored)
    except StoreError:
        raise Refused(503, "the server cannot write down new rollouts now; retry later", _LATER) from None
