"""`Crew`: one worker among its siblings. What any of them is asked is answered as if there were one process.

A start goes whole to the worker that holds least, before anything of it is written down: there is no moment at which
a rollout is between two workers. A sibling that does not answer is not waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import asdict, replace
from typing import Any

from runner.serve.admission import Answer, Headers
from runner.serve.attempt_ids import AttemptIds
from runner.serve.cancelling import CANCEL_WAIT, Selector
from runner.serve.dialects.dialect import Dialect
from runner.serve.engine import Engine, Load
from runner.serve.json_text import LARGE, loads
from runner.serve.played import Played
from runner.serve.slots import Slots
from runner.serve.start import Refused
from runner.serve.status import status_of, status_of_known
from runner.serve.summary import Summary
from runner.serve.vitals import Exposition, Health
from runner.serve.workers.board import Board
from runner.serve.workers.bus import Bus, NoAnswer, Said
from runner.serve.workers.membership import Membership
from runner.serve.workers.shared_slots import SharedSlots
from runner.serve.workers.sums import share, summed
from runner.store.errors import StoreError
from runner.store.outbox import Outbox

START_WAIT = 5.0
"""Seconds that a sibling gets to accept a start, before this worker does."""
TELL_WAIT = 0.5
"""Seconds that a sibling gets to say what it knows."""
_FURTHEST = ("not_found", "cancelled_queued", "cancelled_running")

log = logging.getLogger(__name__)


class Crew:
    """Made before the engine, which gets its `slots`; `open` once the engine has recovered."""

    def __init__(self, member: Membership, max_concurrent: int, max_queue: int) -> None:
        self.worker = member.worker
        self.workers = member.workers
        self._most = max_concurrent, max_queue
        self._board = Board(member.board, member.workers)
        self._board.beat(self.worker)
        self._bus = Bus(member.folder, member.worker, self._asked)
        self._sent = [0] * member.workers
        self._new_id = AttemptIds()
        self._slots: SharedSlots[Played] | None = None
        self._exposition: Exposition | None = None

    def slots(self, begin: Callable[[Played], None]) -> Slots[Played]:
        """This worker's share of the slots of all."""
        self._slots = SharedSlots(
            self._board, self.worker, self._most, begin, lambda each: self._bus.tell(each, "pump")
        )
        return self._slots

    def join(self, engine: Engine, outbox: Outbox, dialects: Mapping[str, Dialect], safe_twice: bool) -> None:
        """What this worker answers with. `safe_twice`: a start that comes again is told from a new one."""
        self._engine = engine
        self._outbox = outbox
        self._dialects = dialects
        self._safe_twice = safe_twice

    def health(self, own: Health) -> Callable[[], Awaitable[Mapping[str, Any]]]:
        """The health of all."""
        self._health = own

        async def told() -> Mapping[str, Any]:
            others = await self._ask_all("health", {}, TELL_WAIT)
            return summed([await own(), *(head["health"] for head, _ in others)], self.workers)

        return told

    def metrics(self, own: Exposition | None) -> Callable[[str], Awaitable[tuple[bytes, str]]] | None:
        """The exposition of all."""
        self._exposition = own
        if own is None:
            return None

        async def told(accept: str) -> tuple[bytes, str]:
            from runner.telemetry.merge_metrics import merge

            text, kind = await own(accept)
            others = await self._ask_all("metrics", {"accept": accept}, TELL_WAIT)
            return merge([text, *(body for _, body in others if body)]), kind

        return told

    def summarised(self, own: Summary) -> None:
        """What this worker says of itself when somebody sums up."""
        self._summary = own

    async def summaries(self) -> list[Mapping[str, Any]]:
        """What all workers that answer have done lately."""
        return [self._summary.take(), *(head["summary"] for head, _ in await self._ask_all("summary", {}, TELL_WAIT))]

    async def open(self) -> None:
        """Answer the siblings from now on."""
        assert self._slots is not None
        await self._bus.open()
        self._slots.opened()
        self._board.open(self.worker)

    async def keep(self) -> None:
        """Show that this worker lives, and look after what a lost word would leave waiting; until cancelled."""
        await asyncio.gather(self._live(), self._heed())

    async def _live(self) -> None:
        assert self._slots is not None
        while True:
            self._board.beat(self.worker)
            self._slots.pump()
            await asyncio.sleep(TELL_WAIT)

    async def _heed(self) -> None:
        """Stop what a sibling has written down as cancelled while this worker did not answer, or was not there."""
        while True:
            try:
                await self._engine.cancel_attempts(await self._outbox.to_cancel())
            except StoreError as error:
                log.warning("whether siblings have cancelled anything is not known: %s", error)
            await asyncio.sleep(TELL_WAIT)

    async def aclose(self) -> None:
        """This worker ends."""
        await self._bus.aclose()
        self._board.close()

    # What controllers ask: `runner.serve.routes.Plays`

    @property
    def draining(self) -> bool:
        """Whether nothing new is accepted."""
        return self._engine.draining

    def load(self) -> Load:
        """This worker's load; of the limits its share, so that the shares of all add up."""
        load = self._engine.load()
        most, queue = (share(limit, self.worker, self.workers) for limit in self._most)
        return replace(load, max_concurrent=most, max_queue=queue)

    async def start(self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Headers = ()) -> Answer:
        """Accept one rollout here or with the sibling that holds least. Raises `Refused`."""
        other = self.worker if self.draining else self._board.emptiest(self.worker, self._sent)
        if other == self.worker:
            return await self._engine.start(dialect, body, raw, headers)
        carried = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
        attempt_id = self._new_id()
        head = {"dialect": dialect.name, "headers": carried, "attempt_id": attempt_id}
        self._sent[other] += 1
        try:
            said, answer = await self._bus.ask(other, "start", head, raw, timeout=START_WAIT)
        except NoAnswer as error:
            log.warning("a start was handed over in vain: %s", error)
            if not error.sent:
                return await self._engine.start(dialect, body, raw, headers)
            if not self._known_again(dialect, body):
                return await self._accepted_there(dialect, attempt_id)
            # Under the name it has there: if it was accepted there after all, it is not a second one.
            return await self._engine.start(dialect, body, raw, headers, attempt_id)
        finally:
            self._sent[other] -= 1
        if "refused" in said:
            raise Refused(said["refused"], said["detail"], said["headers"])
        return Answer(said["status"], answer, said["headers"])

    async def _accepted_there(self, dialect: Dialect, attempt_id: str) -> Answer:
        """The answer to a start that a sibling accepted before it fell silent. Raises `Refused` if it may not have."""
        known = await self._outbox.attempt(attempt_id)
        if known is None:
            text = "whether it was accepted is not known: the worker that was to play it has ended"
            raise Refused(503, text, {"retry-after": "1"})
        return Answer(*dialect.repeated(known.rollout_id, ()))

    def _known_again(self, dialect: Dialect, body: Mapping[str, Any]) -> bool:
        """Whether a start that comes twice is told from two: one without an id never is."""
        return dialect.name == "agent-loop" or (self._safe_twice and bool(body.get("rollout_id")))

    async def status(self, rollout_id: str) -> dict[str, Any]:
        """What is known about a rollout, whoever plays it. Raises `StoreError`."""
        known = await self._outbox.find(rollout_id)
        if known is None or known.worker == self.worker:
            return await self._engine.status(rollout_id)
        if known.verdict is not None:
            return status_of_known(known)
        try:
            said, _ = await self._bus.ask(known.worker, "phase", {"id_": rollout_id}, timeout=TELL_WAIT)
        except NoAnswer as error:
            log.debug("%s", error)
        else:
            if said["phase"] is not None:
                return status_of(rollout_id, said["phase"])
        return await self._engine.status(rollout_id)  # it has ended meanwhile, or waits for its worker to come back

    async def cancel(self, selector: Selector) -> dict[str, str]:
        """Stop rollouts of all workers, and say what became of each. Raises `Refused` (503), as the engine does."""
        own = asyncio.ensure_future(self._engine.cancel(selector))
        others = await self._ask("cancel", {"selector": asdict(selector)}, CANCEL_WAIT + 0.05)
        silent = set(range(self.workers)) - {self.worker, *others}
        found, left = await asyncio.gather(own, self._cancel_for(silent, selector))
        for head in (*(head for head, _ in others.values()), {"dispositions": left}):
            if "refused" in head:
                raise Refused(head["refused"], head["detail"], head["headers"])
            for name, word in head["dispositions"].items():
                found[name] = max(found.get(name, "not_found"), word, key=_FURTHEST.index)
        return found

    async def _cancel_for(self, silent: Set[int], selector: Selector) -> dict[str, str]:
        """Cancel what workers hold that do not answer, or are being started again: they find it in the state file."""
        if not silent:
            return {}
        known = await self._outbox.by_prefix(selector.prefix or "")
        meant = [each for each in known if each.worker in silent and selector.takes(each.rollout_id)]
        if meant:
            await self._outbox.cancel([each.attempt_id for each in meant])
        running = {each for each in silent if self._board.answers(each)}
        found: dict[str, str] = {}
        for each in meant:
            begun = each.phase == "held" or each.worker in running
            word = "cancelled_running" if begun else "cancelled_queued"
            found[each.rollout_id] = max(found.get(each.rollout_id, "not_found"), word, key=_FURTHEST.index)
        return found

    # What siblings ask

    async def _asked(self, what: str, head: Mapping[str, Any], body: bytes) -> Said:
        if what == "start":
            return await self._take(head, body)
        if what == "pump":
            assert self._slots is not None
            self._slots.pump()
            return {}, b""
        if what == "phase":
            return {"phase": self._engine.phase(head["id_"])}, b""
        if what == "cancel":
            asked = head["selector"]
            ids = None if asked["ids"] is None else tuple(asked["ids"])
            try:
                found = await self._engine.cancel(Selector(ids, asked["prefix"], asked["everything"]))
            except Refused as refused:
                return _told(refused)
            return {"dispositions": found}, b""
        if what == "summary":
            return {"summary": self._summary.take()}, b""
        if what == "health":
            return {"health": await self._health()}, b""
        text = (await self._exposition(head["accept"]))[0] if self._exposition is not None else b""
        return {}, text

    async def _take(self, head: Mapping[str, Any], raw: bytes) -> Said:
        """Accept what a sibling hands over, refused or not in the words of this worker."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
        try:
            dialect = self._dialects[head["dialect"]]
            body = loads(raw) if len(raw) < LARGE else await asyncio.to_thread(loads, raw)
            answer = await self._engine.start(dialect, body, raw, headers, head["attempt_id"])
        except Refused as refused:
            return _told(refused)
        return {"status": answer.status, "headers": dict(answer.headers)}, answer.body

    async def _ask_all(self, what: str, head: Mapping[str, Any], timeout: float) -> list[Said]:
        """The answers of the siblings that give one."""
        return list((await self._ask(what, head, timeout)).values())

    async def _ask(self, what: str, head: Mapping[str, Any], timeout: float) -> dict[int, Said]:
        """The same, by sibling."""
        others = [each for each in range(self.workers) if each != self.worker and self._board.answers(each)]
        answers = await asyncio.gather(
            *(self._bus.ask(each, what, head, timeout=timeout) for each in others), return_exceptions=True
        )
        found = {}
        for each, answer in zip(others, answers, strict=True):
            if isinstance(answer, NoAnswer):
                log.warning("%s", answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[each] = answer
        return found


def _told(refused: Refused) -> Said:
    return {"refused": refused.status, "detail": refused.detail, "headers": dict(refused.headers)}, b""
