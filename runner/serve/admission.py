"""`Admission`: a start is parsed, checked, told from a repeated one and given a place; it counts once it is on disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, time
from typing import Any, TypeAlias

from runner.build.plan import Plan
from runner.datasets.dataset import DatasetError
from runner.records.completion import ToolSpec
from runner.records.failure import WorkflowError
from runner.records.quick import quick
from runner.records.rollout import RolloutRequest
from runner.runtime.offered import offered_to
from runner.serve.alive import Alive
from runner.serve.attempt_ids import AttemptIds
from runner.serve.dialects.dialect import Dialect
from runner.serve.dialects.fields import json_size
from runner.serve.ends import CANCELLED_IN_GRADING
from runner.serve.json_text import LARGE
from runner.serve.played import Played, label_of
from runner.serve.slots import Slots
from runner.serve.start import Refused, Start
from runner.serve.urls import field_error
from runner.store.errors import StoreError
from runner.store.outbox import Accepted, Outbox

_LATER = {"retry-after": "5"}
_SOON = {"retry-after": "1"}
_UNWRITTEN = "the server cannot write down new rollouts now; retry later"
_WIDEST = 6
"""Bytes of escaped JSON that a byte of a body can become: two of UTF-8 are `\\u00e9`, and `1e15` is a long number."""

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""The headers of a request as ASGI gives them; names in lower case."""
Traced: TypeAlias = Callable[[Played, Headers], None]
"""Told of each rollout that is about to be written down, with its request's headers: they may name a trace."""

log = logging.getLogger(__name__)


@quick
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
    max_metadata: int = 2**20


@quick
class _Asked:
    """A start that was read, and what it is answered with when it is accepted. `mark` stands for its body."""

    dialect: Dialect
    attempt_id: str
    mark: int
    tools: Sequence[ToolSpec]
    answer: Answer


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
        self.check = check
        self._enter = enter
        self._traced = traced
        self._new_id = AttemptIds()
        self.closed = False
        self.accepted = 0

    async def start(
        self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Headers = (), attempt_id: str = ""
    ) -> Answer:
        """Accept one rollout. The answer is given when it is on disk. Raises `Refused`.

        `attempt_id` names an attempt as which another worker may have accepted this very start.
        """
        if self.closed:
            raise Refused(503, "server shutting down", _LATER)
        admitted = monotonic()
        attempt_id = attempt_id or self._new_id()
        if len(raw) < LARGE:
            start = self._read(dialect, body, attempt_id, len(raw))
        else:  # others get the event loop meanwhile
            start = await asyncio.to_thread(self._read, dialect, body, attempt_id, len(raw))
        request = self.request(start)
        tools = self._tools(request)
        asked = _Asked(dialect, attempt_id, hash(raw), tools, Answer(*dialect.accepted(start, tools)))
        keys = self._keys(dialect, start)
        first = self._alive.keyed(keys)
        if first is not None:
            return await self._join(first, asked)
        if not self._slots.reserve():
            return await self._full(keys, asked)
        until = self.until(request, admitted)
        played = Played(
            attempt_id, dialect, start, request, admitted, asked.mark, until, label=self.label(start, attempt_id)
        )
        self._alive.add(played, keys)
        if self._traced is not None:
            self._traced(played, headers)
        accepted = Accepted(
            played.attempt_id, start.rollout_id, dialect.name, keys, raw, time(), worker=self._policy.worker
        )
        holder = await self._store(played, accepted)
        if holder is not None:
            return await self._repeated(holder, asked)
        for note in start.notes:
            log.warning("rollout %s: %s", start.rollout_id, note)
        return asked.answer

    def _read(self, dialect: Dialect, body: Mapping[str, Any], attempt_id: str, size: int) -> Start:
        start = dialect.parse(body, attempt_id)
        self.check(start)
        if size * _WIDEST > self._policy.max_metadata:
            self._measure(start)
        return start

    def _measure(self, start: Start) -> None:
        """Raise `Refused` for more metadata than `max_metadata`, in bytes of JSON with non-ASCII escaped.

        That is at most `_WIDEST` times the body, whose size is known: few metadata have to be written out for it.
        """
        found, most = json_size(start.metadata), self._policy.max_metadata
        if found > most:
            text = f"Value error, metadata is {found} bytes of JSON, at most {most} are taken"
            raise Refused(422, field_error("metadata", "value_error", text))

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

    def label(self, start: Start, attempt_id: str) -> str:
        """What an attempt is called in logs, spans and the archive."""
        return label_of(start.rollout_id, attempt_id) if self._policy.dedupe == "run" else start.rollout_id

    def until(self, request: RolloutRequest, admitted: float) -> float | None:
        """When its time is over, on the monotonic clock."""
        seconds = request.limits.get("time", self._plan.limits.time)
        return None if seconds is None else admitted + seconds

    def _keys(self, dialect: Dialect, start: Start) -> tuple[str, ...]:
        """What makes a second start the same one. Agent-loop controllers count on being joined."""
        if self._policy.dedupe == "run" and dialect.name != "agent-loop":
            return ()
        path = dialect.path
        return tuple([f"{path} {key}" for key in start.keys])

    def _store(self, played: Played, accepted: Accepted) -> asyncio.Future[str | None]:
        """Write it down, then let it in, whether or not whoever asked hangs up meanwhile. See `_on_disk`."""
        on_disk = _on_disk(played)
        try:
            self._outbox.accepting(accepted, partial(self._stored, played))
        except StoreError as error:
            self._stored(played, None, error)
        return on_disk

    def _stored(self, played: Played, holder: str | None, error: StoreError | None) -> None:
        try:
            if error is not None:
                log.error("a rollout was refused: %s", error)
            elif holder is None:
                self.accepted += 1
                self._enter(played)
        finally:
            if played.phase == "accepting":
                self._slots.give_back()
                self._alive.remove(played)
            for waiter in played.waiting:
                if waiter.done():  # it hung up
                    continue
                if error is None:
                    waiter.set_result(holder)
                else:
                    waiter.set_exception(Refused(503, _UNWRITTEN, _LATER))
            played.waiting.clear()

    async def _join(self, first: Played, asked: _Asked) -> Answer:
        if first.phase == "accepting":
            holder = await _on_disk(first)
            if holder is not None:
                return await self._repeated(holder, asked)
        if first.stop.reason == "cancelled":
            raise _being_cancelled(asked)
        self._reject(asked, first.name)
        if first.mark not in (0, asked.mark):
            log.warning("rollout %s was started again with another body; the first one counts", first.name)
        return Answer(*first.dialect.accepted(first.start, self._tools(first.request)))

    async def _repeated(self, holder: str, asked: _Asked) -> Answer:
        """The answer to a start whose rollout was accepted before, and may have ended long ago."""
        if holder == asked.attempt_id:  # by another worker, which could not say so
            return asked.answer
        known = await self._outbox.attempt(holder)
        if known is None:
            raise Refused(503, "the rollout is just being forgotten; retry later", _LATER)
        if known.cancelled:
            raise _being_cancelled(asked)
        if known.verdict is not None and known.verdict.stop_reason == CANCELLED_IN_GRADING:
            # Joined, it would wait for ever; played again, it might contradict what was said of its agent.
            text = f"rollout {known.rollout_id!r} was cancelled while it was graded: its completion had been reported, "
            raise Refused(409, f"{text}and nothing more will be; start it under another id")
        self._reject(asked, known.rollout_id)
        return Answer(*asked.dialect.repeated(known.rollout_id, asked.tools))

    def _reject(self, asked: _Asked, name: str) -> None:
        if self._policy.dedupe == "reject" and asked.dialect.name != "agent-loop":
            raise Refused(409, f"rollout {name!r} was accepted before")

    async def _full(self, keys: tuple[str, ...], asked: _Asked) -> Answer:
        holder = await self._outbox.holder(keys) if keys else None
        if holder is not None:
            return await self._repeated(holder, asked)
        wait = {"retry-after": str(self._slots.retry_after())}
        raise Refused(asked.dialect.full_status, "rollout queue is full; retry later", wait)


def _being_cancelled(asked: _Asked) -> Refused:
    """Nothing may ever be said of the one that is cancelled: whoever joined it would wait for ever."""
    return Refused(asked.dialect.full_status, "the rollout is just being cancelled; retry later", _SOON)


def _on_disk(played: Played) -> asyncio.Future[str | None]:
    """None once it is stored, or the attempt that had its key before. Raises `Refused` if it cannot be.

    Whoever waits has a future of its own, and may hang up.
    """
    waiter: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    played.waiting.append(waiter)
    return waiter
