"""`Crew`: one worker among its siblings. What any of them is asked is answered as if there were one process.

A start goes whole to the worker that holds least, before anything of it is written down: there is no moment at which
a rollout is between two workers. A sibling that does not answer is not waited for.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from runner.serve.admission import Answer, Headers
from runner.serve.dialects.dialect import Dialect
from runner.serve.engine import CANCEL_WAIT, Engine, Load, Selector
from runner.serve.played import Played
from runner.serve.slots import Slots
from runner.serve.start import Refused
from runner.serve.status import settled_status, status_of
from runner.serve.vitals import Exposition, Health
from runner.serve.workers.board import Board
from runner.serve.workers.bus import Bus, NoAnswer, Said
from runner.serve.workers.membership import Membership
from runner.serve.workers.shared_slots import SharedSlots
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
            return _summed([await own(), *(head["health"] for head, _ in others)], self.workers)

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

    async def open(self) -> None:
        """Answer the siblings from now on."""
        assert self._slots is not None
        await self._bus.open()
        self._slots.opened()
        self._board.open(self.worker)

    async def keep(self) -> None:
        """Show that this worker lives, and look after what a lost word would leave waiting; until cancelled."""
        assert self._slots is not None
        while True:
            self._board.beat(self.worker)
            self._slots.pump()
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
        most, queue = (_share(limit, self.worker, self.workers) for limit in self._most)
        return replace(load, max_concurrent=most, max_queue=queue)

    async def start(self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Headers = ()) -> Answer:
        """Accept one rollout here or with the sibling that holds least. Raises `Refused`."""
        other = self.worker if self.draining else self._board.emptiest(self.worker, self._sent)
        if other == self.worker:
            return await self._engine.start(dialect, body, raw, headers)
        carried = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
        self._sent[other] += 1
        try:
            said, answer = await self._bus.ask(
                other, "start", {"dialect": dialect.name, "headers": carried}, raw, timeout=START_WAIT
            )
        except NoAnswer as error:
            log.warning("a start was handed over in vain: %s", error)
            if error.sent and not self._known_again(dialect, body):
                text = "whether it was accepted is not known: the worker that was to play it has ended"
                raise Refused(503, text, {"retry-after": "1"}) from None
            return await self._engine.start(dialect, body, raw, headers)
        finally:
            self._sent[other] -= 1
        if "refused" in said:
            raise Refused(said["refused"], said["detail"], said["headers"])
        return Answer(said["status"], answer, said["headers"])

    def _known_again(self, dialect: Dialect, body: Mapping[str, Any]) -> bool:
        """Whether a start that comes twice is told from two: one without an id never is."""
        return dialect.name == "agent-loop" or (self._safe_twice and bool(body.get("rollout_id")))

    async def status(self, rollout_id: str) -> dict[str, Any]:
        """What is known about a rollout, whoever plays it. Raises `StoreError`."""
        known = await self._outbox.find(rollout_id)
        if known is None or known.worker == self.worker:
            return await self._engine.status(rollout_id)
        if known.verdict is not None:
            return settled_status(known, known.verdict)
        try:
            said, _ = await self._bus.ask(known.worker, "phase", {"id_": rollout_id}, timeout=TELL_WAIT)
        except NoAnswer as error:
            log.debug("%s", error)
        else:
            if said["phase"] is not None:
                return status_of(rollout_id, said["phase"])
        return await self._engine.status(rollout_id)  # it has ended meanwhile, or waits for its worker to come back

    async def cancel(self, selector: Selector) -> dict[str, str]:
        """Stop rollouts of all workers, and say what became of each."""
        own = asyncio.ensure_future(self._engine.cancel(selector))
        others = await self._ask_all("cancel", {"selector": asdict(selector)}, CANCEL_WAIT + 0.05)
        found = await own
        for head, _ in others:
            for name, word in head["dispositions"].items():
                found[name] = max(found.get(name, "not_found"), word, key=_FURTHEST.index)
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
            return {"dispositions": await self._engine.cancel(Selector(ids, asked["prefix"], asked["everything"]))}, b""
        if what == "health":
            return {"health": await self._health()}, b""
        text = (await self._exposition(head["accept"]))[0] if self._exposition is not None else b""
        return {}, text

    async def _take(self, head: Mapping[str, Any], raw: bytes) -> Said:
        """Accept what a sibling hands over, refused or not in the words of this worker."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
        try:
            answer = await self._engine.start(self._dialects[head["dialect"]], json.loads(raw), raw, headers)
        except Refused as refused:
            return {"refused": refused.status, "detail": refused.detail, "headers": dict(refused.headers)}, b""
        return {"status": answer.status, "headers": dict(answer.headers)}, answer.body

    async def _ask_all(self, what: str, head: Mapping[str, Any], timeout: float) -> list[Said]:
        """The answers of the siblings that give one."""
        others = [each for each in range(self.workers) if each != self.worker and self._board.answers(each)]
        answers = await asyncio.gather(
            *(self._bus.ask(each, what, head, timeout=timeout) for each in others), return_exceptions=True
        )
        found = []
        for answer in answers:
            if isinstance(answer, NoAnswer):
                log.warning("%s", answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.append(answer)
        return found


def _share(whole: int, worker: int, workers: int) -> int:
    """The part of `whole` that counts for one of `workers`; the parts add up to it."""
    return whole // workers + (worker < whole % workers)


def _summed(bodies: list[Mapping[str, Any]], workers: int) -> dict[str, Any]:
    """The body of `/health` for all workers. `workers` says how many answered."""
    first, loads, owed = bodies[0], [body["concurrency"] for body in bodies], [body["callbacks"] for body in bodies]
    draining = any(body["status"] == "draining" for body in bodies)
    return {
        **first,
        "status": "draining" if draining else first["status"],
        "active_rollouts": _sum(bodies, "active_rollouts"),
        "completed_rollouts": _sum(bodies, "completed_rollouts"),
        "concurrency": {**loads[0], "queued": _sum(loads, "queued"), "running": _sum(loads, "running")},
        "callbacks": {
            **owed[0],
            "pending": _sum(owed, "pending"),
            "abandoned": _sum(owed, "abandoned"),
            "away": sorted({each for body in owed for each in body["away"]}),
        },
        "workers": {"of": workers, "answering": len(bodies)},
    }


def _sum(bodies: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(body[key] for body in bodies)
