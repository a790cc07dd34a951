"""`Course`: what becomes of a rollout on disk: it waits, plays, and ends with a stored verdict, come what may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from time import monotonic
from typing import Any

from runner.records.rollout import Outcome
from runner.serve.alive import Alive
from runner.serve.ends import broken, cancelled_after_all, stopped
from runner.serve.played import Played
from runner.serve.playing import Player, begin
from runner.serve.slots import Slots
from runner.store.errors import StoreError

AT_ONCE = 50
"""Rollouts that are stopped in one go, before others get the event loop: each takes some time to end."""
_PAGE = 1000
"""Rollouts that one write settles: others wait for it."""
CLOSE_WAIT = 3.0
"""Seconds that cut-off tasks get to end when the process does."""

log = logging.getLogger(__name__)


class Course:
    """`slots` makes the slots for what begins a rollout; `heard` is told of every verdict that is stored."""

    def __init__(
        self,
        player: Player,
        alive: Alive,
        slots: Callable[[Callable[[Played], None]], Slots[Played]],
        heard: Callable[[Played, Outcome], None],
    ) -> None:
        self._player = player
        self._alive = alive
        self._heard = heard
        self._closing = False
        self.slots = slots(self._begin)
        self.ended = 0

    def enter(self, played: Played) -> None:
        """What has just been written down plays, or waits; unless it was cancelled meanwhile."""
        played.phase = "queued"
        if played.stop.reason is None:
            self.slots.enter(played.attempt_id, played)
        else:
            self.slots.give_back()
            self.end(played, stopped(played))

    def take_up(self, played: Played, outcome: Outcome | None) -> None:
        """What an earlier process accepted plays, or waits, or ends with `outcome`."""
        played.phase = "queued"
        if outcome is None:
            self.slots.enter(played.attempt_id, played, reserved=False)
        else:
            self.end(played, outcome)

    def end(self, played: Played, outcome: Outcome) -> None:
        """Store an outcome of a rollout that does not play."""
        played.phase = "settling"
        self._run(played, self._end(played, outcome))

    async def stop(self, many: Iterable[Played], reason: str, grace: float | None = None) -> None:
        """Have them end, a few in one go. Those that wait leave the queue first: none gets the place of another."""
        meant = [played for played in many if played.stop.reason is None and played.phase != "settling"]
        for played in meant:
            played.stop.reason, played.stop.grace = reason, grace
        queued = self.slots.withdraw(played.attempt_id for played in meant if played.phase == "queued")
        for played in queued:
            played.phase = "settling"
        at_once = [played for played in queued if reason == "cancelled" and self._player.is_silent(played)]
        withdrawing = asyncio.ensure_future(self._withdraw(at_once))
        told = set(queued).difference(at_once)
        for place, played in enumerate(meant, 1):
            if played in told:
                self.end(played, stopped(played))
            elif played.phase != "settling" and played.task is not None:
                played.task.cancel()
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)
        await withdrawing

    async def _withdraw(self, many: Sequence[Played]) -> None:
        """Those that were cancelled while they waited, of which nothing is said: no task for each, and few writes."""
        for first in range(0, len(many), _PAGE):
            await self._withdraw_page(many[first : first + _PAGE])

    async def _withdraw_page(self, many: Sequence[Played]) -> None:
        try:
            await self._player.withdraw(many)
        except StoreError as error:
            log.error("%d cancelled rollouts are not stored yet: %s", len(many), error)
            for played in many:
                self.end(played, stopped(played))
            return
        for place, played in enumerate(many, 1):
            self._gone(played)
            self._say(played, stopped(played))
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def expire(self) -> None:
        """End those whose time was over before their turn came."""
        now = monotonic()
        while self.slots.hurry(lambda played: played.until is not None and now > played.until, AT_ONCE):  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """The process ends: what still plays is cut off without a verdict. The outbox knows it."""
        self._closing = True
        tasks = [task for played in self._alive for task in (played.task, played.holding) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_WAIT)

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
            if error is not None:
                log.error("rollout %s has ended, with a fault of the server", played.name, exc_info=error)
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
            self.slots.leave()

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
        self._gone(played)
        self._say(played, stored)

    async def _bury(self, played: Played, outcome: Outcome) -> None:
        try:
            await self._player.bury(played, outcome)
        finally:
            self._gone(played)
        self._say(played, outcome)

    def _say(self, played: Played, outcome: Outcome) -> None:
        try:
            self._heard(played, outcome)
        except Exception:  # it is stored and owed all the same
            log.exception("rollout %s has ended, and who looks on met a fault", played.name)

    def _gone(self, played: Played) -> None:
        self.ended += 1
        self._alive.remove(played)
