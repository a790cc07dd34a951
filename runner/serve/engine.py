"""`Engine`: the rollouts of one process, from their acceptance to their stored verdict."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from time import monotonic, time
from typing import Any

from runner.build.live import Live
from runner.records.rollout import Outcome, RolloutRequest
from runner.serve.admission import Admission, Answer, Headers, Policy, Traced
from runner.serve.alive import Alive
from runner.serve.dialects.dialect import Dialect
from runner.serve.ends import broken, cancelled_after_all, restarted, stopped
from runner.serve.played import Played
from runner.serve.playing import Player, begin
from runner.serve.slots import Slots
from runner.serve.start import Refused, Start
from runner.serve.status import settled_status, status_of
from runner.store.outbox import Outbox, Unfinished, Verdict
from runner.store.record import from_record

CANCEL_WAIT = 0.9
"""Seconds that the answer to a cancel waits for what it cancelled to have ended."""
CANCEL_GRACE = 0.6
"""Seconds that cancelled user code gets to clean up: its slot is free within the second that a cancel may take."""
AT_ONCE = 20
"""Rollouts that are stopped or taken up in one go, before others get the event loop."""
CLOSE_WAIT = 3.0
"""Seconds that cut-off tasks get to end when the process does."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Selector:
    """Whom a cancel is for: exactly one of the three is given."""

    ids: tuple[str, ...] | None = None
    prefix: str | None = None
    everything: bool = False

    def takes(self, rollout_id: str) -> bool:
        """Whether it means this rollout."""
        if self.ids is not None:
            return rollout_id in self.ids
        return self.everything or (self.prefix is not None and rollout_id.startswith(self.prefix))


@dataclass(frozen=True, slots=True)
class Load:
    """How full the house is. `held` are all in memory; `settling` ones have ended and are being written down."""

    held: int
    running: int
    queued: int
    grading: int
    settling: int
    max_concurrent: int
    max_queue: int
    accepted: int
    ended: int


class Engine:
    """`check` refuses URLs that may not be called; `heard` is told of every verdict that is stored."""

    def __init__(
        self,
        live: Live,
        outbox: Outbox,
        player: Player,
        policy: Policy,
        check: Callable[[Start], None],
        heard: Callable[[Played, Outcome], None],
        traced: Traced | None = None,
        slots: Callable[[Callable[[Played], None]], Slots[Played]] | None = None,
    ) -> None:
        self._outbox = outbox
        self._player = player
        self._policy = policy
        self._heard = heard
        self._alive = Alive()
        self._slots = slots(self._begin) if slots else Slots(policy.max_concurrent, policy.max_queue, self._begin)
        self._admission = Admission(
            live.plan, outbox, self._alive, self._slots, policy, check=check, enter=self._enter, traced=traced
        )
        self._ended = 0
        self._closing = False

    async def start(self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Headers = ()) -> Answer:
        """Accept one rollout. The answer is given when it is on disk. Raises `Refused`."""
        return await self._admission.start(dialect, body, raw, headers)

    async def status(self, rollout_id: str) -> dict[str, Any]:
        """What is known about a rollout, in the words of the status endpoint."""
        phase = self.phase(rollout_id)
        if phase is not None:
            return status_of(rollout_id, phase)
        known = await self._outbox.find(rollout_id)
        if known is None:
            return status_of(rollout_id, "unknown")
        if known.verdict is not None:
            return settled_status(known, known.verdict)
        return status_of(rollout_id, "grading" if known.phase == "held" else "queued")

    def phase(self, rollout_id: str) -> str | None:
        """The status word of a rollout that this process holds; None if it holds none of that name."""
        alive = self._alive.named(rollout_id)
        return None if alive is None else alive.status

    async def cancel(self, selector: Selector) -> dict[str, str]:
        """Stop rollouts, and say what became of each: cancelled_queued, cancelled_running or not_found.

        Returns when they have ended, or after `CANCEL_WAIT`: what cleans up longer goes on doing so.
        """
        found = dict.fromkeys(selector.ids or (), "not_found")
        stopped = []
        async for played in self._one_by_one(selector.takes):
            stopped.append(played)
            if played.phase not in ("accepting", "queued"):
                found[played.name] = "cancelled_running"
            elif found.get(played.name) != "cancelled_running":  # of several with one id, the word for the furthest
                found[played.name] = "cancelled_queued"
            self._stop(played, "cancelled", CANCEL_GRACE)
        tasks = [played.task for played in stopped if played.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_WAIT)
        return found

    @property
    def draining(self) -> bool:
        """Whether nothing new is accepted."""
        return self._admission.closed

    def load(self) -> Load:
        """How full the house is, now."""
        phases = [played.phase for played in self._alive]
        slots, policy = self._slots, self._policy
        grading, settling = phases.count("grading"), phases.count("settling")
        most = policy.max_concurrent, policy.max_queue
        counts = len(phases), slots.running, slots.waiting, grading, settling
        return Load(*counts, *most, self._admission.accepted, self._ended)

    async def recover(self, dialects: Mapping[str, Dialect]) -> int:
        """Take up what an earlier process accepted and did not finish. How many there were."""
        unfinished = await self._outbox.unfinished()
        for place, each in enumerate(unfinished, 1):
            await self._take_up(each, dialects.get(each.accepted.dialect))
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)
        return len(unfinished)

    async def expire(self) -> None:
        """End those whose time was over before their turn came."""
        now = monotonic()
        while self._slots.hurry(lambda played: played.until is not None and now > played.until, AT_ONCE):  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def drain(self, seconds: float, settle: float = 5.0) -> int:
        """Accept nothing more and let what runs and waits end within `seconds`; the rest is reported as cut short.

        How many could not be finished.
        """
        self._admission.closed = True
        if await self._alive.gone(seconds):
            return 0
        cut = 0
        async for played in self._one_by_one(lambda name: True):
            cut += 1
            self._stop(played, "shutdown")
        await self._alive.gone(settle)
        return cut

    async def aclose(self) -> None:
        """The process ends: what still plays is cut off without a verdict. The outbox knows it."""
        self._closing = True
        tasks = [task for played in self._alive for task in (played.task, played.holding) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_WAIT)

    async def _one_by_one(self, takes: Callable[[str], bool]) -> AsyncIterator[Played]:
        """Those with such a name that have not ended, a few in one go: each that is stopped takes its time to end.

        Those that wait come first, so that none of them gets the place of one that is stopped.
        """
        meant = [played for played in self._alive if takes(played.name)]
        meant.sort(key=lambda played: played.phase not in ("accepting", "queued"))
        for place, played in enumerate(meant, 1):
            if played.phase != "settling" and played.attempt_id in self._alive:
                yield played
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)

    def _enter(self, played: Played) -> None:
        """What has just been written down plays, or waits; unless it was cancelled meanwhile."""
        played.phase = "queued"
        if played.stop.reason is None:
            self._slots.enter(played.attempt_id, played)
        else:
            self._slots.give_back()
            self._run(played, self._end(played, stopped(played)))

    def _begin(self, played: Played) -> None:
        played.phase = "running" if played.left is None else "grading"
        played.has_slot = True
        self._run(played, self._play(played))

    def _run(self, played: Played, work: Coroutine[Any, Any, None]) -> None:
        if self._closing:
            work.close()
        else:
            begin(played, work, self._lost)

    def _lost(self, played: Played, error: BaseException | None) -> None:
        """A rollout whose task was ended on its way still gets its verdict, if need be one that nobody is told."""
        self._leave(played)
        if self._closing or played.attempt_id not in self._alive:
            return
        if error is not None:
            log.error("the outcome of rollout %s cannot be told", played.name, exc_info=error)
            self._run(played, self._bury(played, broken(played, error)))
        else:
            reason = played.stop.reason
            outcome = stopped(played) if reason else broken(played, RuntimeError("its task was cancelled"))
            self._run(played, self._end(played, outcome))

    def _leave(self, played: Played) -> None:
        if played.has_slot:
            played.has_slot = False
            self._slots.leave()

    async def _play(self, played: Played) -> None:
        try:
            outcome = await self._player.play(played)
        except Exception as error:  # ours, not the user's: the rollout must still end
            log.exception("rollout %s met a fault of the server", played.name)
            outcome = broken(played, error)
        finally:
            self._leave(played)
        await self._end(played, cancelled_after_all(played, outcome))

    async def _end(self, played: Played, outcome: Outcome) -> None:
        played.phase = "settling"
        try:
            stored = await self._player.settle(played, outcome)
        except Exception as error:  # ours again: it cannot be told as it is, so it is told that it cannot
            log.exception("the outcome of rollout %s cannot be stored", played.name)
            stored = await self._player.settle(played, broken(played, error))
        self._ended += 1
        self._alive.remove(played)
        self._heard(played, stored)

    async def _bury(self, played: Played, outcome: Outcome) -> None:
        try:
            await self._player.bury(played, outcome)
        finally:
            self._ended += 1
            self._alive.remove(played)
        self._heard(played, outcome)

    def _stop(self, played: Played, reason: str, grace: float | None = None) -> None:
        if played.stop.reason is not None:
            return
        played.stop.reason, played.stop.grace = reason, grace
        if played.phase == "queued" and self._slots.withdraw(played.attempt_id):
            self._run(played, self._end(played, stopped(played)))
        elif played.task is not None and played.phase != "settling":
            played.task.cancel()

    async def _take_up(self, unfinished: Unfinished, dialect: Dialect | None) -> None:
        accepted = unfinished.accepted
        try:
            if dialect is None:
                raise ValueError(f"nothing here speaks {accepted.dialect!r}")
            start = self._admission.parse(dialect, json.loads(accepted.request), accepted.rollout_id)
        except (Refused, ValueError, RecursionError) as error:
            log.error("rollout %s, accepted before the restart, no longer fits: %s", accepted.rollout_id, error)
            verdict = Verdict("failure", "restarted", None, f"not playable after a restart: {error}")
            await self._outbox.settle(accepted.attempt_id, verdict, None, ())
            return
        played = Played(
            accepted.attempt_id, dialect, start, RolloutRequest(start.rollout_id, start.prompt), monotonic()
        )
        played.phase = "queued"
        self._alive.add(played, accepted.keys)
        outcome = self._again(played, unfinished)
        if outcome is not None:
            self._run(played, self._end(played, outcome))
        else:
            self._slots.enter(played.attempt_id, played, reserved=False)

    def _again(self, played: Played, unfinished: Unfinished) -> Outcome | None:
        """Make a rollout of an earlier process ready to be played, or only graded; its outcome if it cannot be."""
        # Its controller hears nothing twice, whatever else is wrong with it.
        played.told = unfinished.left is not None
        try:
            played.request = self._admission.request(played.start)
            if unfinished.left is not None:
                played.left = replace(
                    from_record(json.loads(unfinished.left), played.request.row), request=played.request
                )
        except (Refused, LookupError, TypeError, ValueError, AttributeError) as error:
            log.error("rollout %s, accepted before the restart, no longer fits: %s", played.name, error)
            return restarted(played, f"server restarted, and cannot play it any more: {error}")
        if self._policy.on_restart == "fail":
            return restarted(played, "server restarted")
        if played.left is None:
            if "time" in played.start.limits:  # the controller's own deadline goes on while the server is away
                played.admitted -= max(0.0, time() - unfinished.accepted.accepted_at)
            played.until = self._admission.until(played.request, played.admitted)
        return None
