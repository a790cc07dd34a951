"""`Deliveries`: what is owed is posted, in order and at least once, until it is acknowledged or abandoned.

Each rollout is a lane: its next callback goes out when the one before is acknowledged or abandoned, with the payload
that the outbox holds and no other. Thousands of lanes cost no tasks and one timer: they queue at their origins
(`turns.py`). A callback that is abandoned stays in the outbox and is posted again after a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from runner.models.connections import Connections
from runner.models.retry import Clock, SystemClock
from runner.serve.delivery.judging import Judge, describe
from runner.serve.delivery.origins import Origin
from runner.serve.delivery.owing import Bodies, Lane, Owing, origin_of
from runner.serve.delivery.posting import NOTHING, CallbackPolicy, Posted, Tried, post
from runner.serve.delivery.reading import UNUSABLE, Reading
from runner.serve.delivery.turns import Turn, Turns
from runner.store.errors import StoreError
from runner.store.outbox import Delivery, Outbox, Owed

__all__ = ["Backlog", "CallbackPolicy", "Deliveries", "Posted"]

_PAGE = 500
"""Callbacks taken or abandoned in one go, before others get the event loop."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much is owed: not acknowledged yet (`pending`, those being posted with it), and abandoned since the start.

    `oldest` is the age of what has waited longest, in seconds; `away` names the origins that do not answer.
    """

    pending: int
    posting: int
    abandoned: int
    oldest: float
    away: tuple[str, ...]


def _ignore(posted: Posted) -> None:
    pass


def _any(url: str) -> str:
    return ""


class Deliveries:
    """Posts what is owed. Bound to one event loop; `heard` is told of every post and must neither block nor raise.

    `forbidden` says why a URL may not be posted to, or nothing: what was owed before may have been forbidden since.
    """

    def __init__(
        self,
        outbox: Outbox,
        connections: Connections,
        policy: CallbackPolicy,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        heard: Callable[[Posted], None] = _ignore,
        forbidden: Callable[[str], str] = _any,
    ) -> None:
        self._outbox = outbox
        self._connections = connections
        self._policy = policy
        self._clock = clock or SystemClock()
        self._heard = heard
        self._forbidden = forbidden
        self._bodies = Bodies(outbox.owed_of, policy.held)
        rng = rng or Random()
        self._judge = Judge(policy, self._clock, rng)
        self._turns = Turns(policy, self._clock, rng, self._start)
        self._lanes: dict[str, Lane] = {}
        self._tasks: dict[asyncio.Task[None], Lane | None] = {}
        self._pending = 0
        self._abandoned = 0
        self._noted = False
        self._changed = asyncio.Event()

    def owe(self, deliveries: Sequence[Delivery]) -> None:
        """Take callbacks that were just stored, a rollout's in their order. A channel already owed is not replaced."""
        now = self._clock.monotonic()
        for delivery in deliveries:
            self._add(delivery, now, now, whole=True)
        self._turns.pump()

    async def recover(self) -> int:
        """Take all that the outbox says is owed, abandoned ones too; how many that is. Raises StoreError."""
        found = await self._outbox.owing(bodies=False)
        now, unix = self._clock.monotonic(), self._clock.time()
        taken = 0
        for place, delivery in enumerate(found, 1):
            wait = min(self._policy.max_wait, max(0.0, delivery.next_at - unix))
            taken += self._add(delivery, now, now + wait, whole=False)
            if place % _PAGE == 0:
                await asyncio.sleep(0)
        self._turns.pump()
        return taken

    def backlog(self) -> Backlog:
        """How much is owed now."""
        first = next(iter(self._lanes.values()), None)  # lanes are made in the order of their age
        oldest = max(0.0, self._clock.time() - first.owing[0].first_at) if first else 0.0
        return Backlog(self._pending, self._turns.posting, self._abandoned, oldest, self._turns.away())

    async def settle(self, seconds: float) -> int:
        """Deliver what can be within `seconds`, at shutdown; how many callbacks are still owed then.

        Whoever waits for a back-off is tried at once. Ends early when nothing more can happen in that time.
        """
        end = self._clock.monotonic() + seconds
        self._turns.hurry()
        while self._pending or self._tasks:
            left = end - self._clock.monotonic()
            soonest = self._turns.next_at()
            if left <= 0 or not (self._tasks or (soonest is not None and soonest <= end)):
                break
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                break
        if self._noted:
            with contextlib.suppress(TimeoutError, StoreError):
                async with asyncio.timeout(max(0.0, end - self._clock.monotonic())):
                    await self._outbox.written()
        return self._pending

    async def aclose(self) -> None:
        """Stop posting. What was just acknowledged is still written down; the rest stays owed in the outbox."""
        self._turns.stop()
        for task, lane in self._tasks.items():
            if lane is not None and not lane.writing:
                task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._bodies.aclose()

    def _add(self, delivery: Delivery, now: float, due: float, *, whole: bool) -> bool:
        lane = self._lanes.get(delivery.attempt_id)
        if lane is None:
            lane = self._lanes[delivery.attempt_id] = Lane(delivery.attempt_id, delivery.rollout_id, now)
        elif delivery.channel in [each.channel for each in lane.owing]:
            return False
        owed = delivery.owed
        origin = origin_of(owed.url)
        held = self._bodies.keep(owed) if whole else None
        gives_up_at = now + self._policy.give_up
        lane.owing.append(Owing(delivery.channel, origin, held, delivery.first_at, delivery.tries, gives_up_at))
        self._pending += 1
        if len(lane.owing) == 1:
            self._turns.queue(lane, due)
        return True

    def _start(self, origin: Origin, lane: Lane) -> None:
        self._follow(self._post_on(origin, lane), lane)

    def _follow(self, work: Coroutine[Any, Any, None], lane: Lane | None) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = lane
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler({"message": "a delivery failed", "exception": error})

    async def _post_on(self, origin: Origin, lane: Lane) -> None:
        """Post the next callback of a lane, and then whatever has its turn by then: a new task for each costs more."""
        task = asyncio.current_task()
        assert task is not None
        turn: Turn | None = (origin, lane)
        try:
            while turn is not None:
                self._tasks[task] = turn[1]
                await self._deliver(*turn)
                turn = self._turns.next()
        finally:
            self._turns.pump()

    async def _deliver(self, origin: Origin, lane: Lane) -> None:
        """Post the next callback of a lane once, and write down what came of it."""
        owing = lane.owing[0]
        started = self._clock.monotonic()
        try:
            owed = owing.owed
            tried = await (self._read_and_post(lane, owing) if owed is None else self._post(owing.origin, owed))
            lane.writing = True
            if tried is None:
                self._advance(lane, owing)
            else:
                posted = self._judge.judge(origin, lane, tried, started)
                if posted.result == "abandoned":
                    posted = await self._abandon_for_good(lane, owing, posted)
                else:
                    posted = self._note(lane, owing, posted)
                self._heard(posted)
                if posted.result == "abandoned" and self._clock.monotonic() >= owing.gives_up_at:
                    self._give_up(origin, posted.problem)
        finally:
            lane.writing = False
            self._turns.done(origin, lane)

    async def _read_and_post(self, lane: Lane, owing: Owing) -> Tried | None:
        """Post a callback whose body is only on disk. None if the outbox says that it is no longer owed."""
        if not owing.origin:
            return Tried(UNUSABLE, blame=False)
        try:
            owed = await self._bodies.fetch(lane.attempt_id, owing.channel)
        except StoreError as error:
            return Tried(Reading("again", f"its body could not be read back: {error}"), blame=False)
        return None if owed is None else await self._post(owing.origin, owed)

    def _post(self, origin: str, owed: Owed) -> Coroutine[Any, Any, Tried]:
        why = self._forbidden(owed.url) if origin else ""
        if why or not origin:
            return _unposted(Reading("refused", f"its URL {why}") if origin else UNUSABLE)
        return post(self._connections, owed, self._policy)

    def _note(self, lane: Lane, owing: Owing, posted: Posted) -> Posted:
        """Have the outbox note a post that was acknowledged, or is tried again, and queue what is next of the lane.

        It is not waited for. What is not written, with the process or a full disk, is posted once more after a
        restart; and because the outbox takes news in their order, so is then what came after it.
        """
        again = posted.result == "retry"
        try:
            if again:
                next_at = self._clock.time() + posted.wait
                self._outbox.tried(lane.attempt_id, owing.channel, owing.tries, next_at, posted.problem)
            else:
                self._outbox.acknowledged(lane.attempt_id, owing.channel)
                self._noted = True
        except StoreError as error:
            posted = _unwritten(posted, error)
        if again:
            self._bodies.spare(owing)
            self._turns.queue(lane, self._clock.monotonic() + posted.wait)
        else:
            self._advance(lane, owing)
        return posted

    async def _abandon_for_good(self, lane: Lane, owing: Owing, posted: Posted) -> Posted:
        """Write down that a callback is given up, and queue what is next of the lane."""
        try:
            await self._outbox.abandoned(lane.attempt_id, owing.channel, posted.problem)
        except StoreError as error:
            posted = _unwritten(posted, error)
        self._abandoned += 1
        self._advance(lane, owing)
        return posted

    def _advance(self, lane: Lane, owing: Owing) -> None:
        """Be done with the first callback of a lane; the next one goes out in the order of the lane's age."""
        lane.owing.popleft()
        self._bodies.drop(owing)
        self._pending -= 1
        if lane.owing:
            self._turns.queue(lane, lane.since)
        else:
            del self._lanes[lane.attempt_id]

    def _give_up(self, origin: Origin, problem: str) -> None:
        """One has been tried for long enough: so have others there, which had no turn while the origin was away."""
        overdue = origin.take_overdue(self._clock.monotonic())
        if overdue:
            self._follow(self._abandon(overdue, problem), None)

    async def _abandon(self, overdue: Sequence[Lane], problem: str) -> None:
        for start in range(0, len(overdue), _PAGE):
            await asyncio.gather(*(self._abandon_one(lane, problem) for lane in overdue[start : start + _PAGE]))
        self._turns.pump()

    async def _abandon_one(self, lane: Lane, problem: str) -> None:
        if lane.owing:
            owing = lane.owing[0]
            posted = describe(owing.origin, lane, "abandoned", problem, NOTHING, 0.0)
            self._heard(await self._abandon_for_good(lane, owing, posted))


async def _unposted(reading: Reading) -> Tried:
    return Tried(reading, blame=False)


def _unwritten(posted: Posted, error: StoreError) -> Posted:
    return replace(posted, problem=f"{posted.problem or posted.result}; this could not be written down ({error})")
