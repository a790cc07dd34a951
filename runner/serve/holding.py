"""`Holding`: while graders think, the controller hears how the agent ended. It is on disk before."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from runner.serve.owed import deliveries_of
from runner.serve.played import Played
from runner.store.outbox import Delivery, Outbox, Withdrawn
from runner.store.record import encode, to_record

HOLD_AFTER = 0.05
"""Seconds of grading after which the agent's end is stored and reported by itself. Most graders are quicker."""

log = logging.getLogger(__name__)


class Holding:
    """`owe` is told what was just stored. One timer for all that are graded: most never need it."""

    def __init__(self, outbox: Outbox, owe: Callable[[Sequence[Delivery]], None]) -> None:
        self._outbox = outbox
        self._owe = owe
        self._watched: deque[tuple[float, Played]] = deque()
        self._looking = False

    def watch(self, played: Played) -> None:
        """Its graders begin now: unless they have ended after `HOLD_AFTER`, its agent's end is reported then."""
        loop = asyncio.get_running_loop()
        self._watched.append((loop.time() + HOLD_AFTER, played))
        if not self._looking:
            self._looking = True
            loop.call_later(HOLD_AFTER, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        while self._watched and self._watched[0][0] <= now:
            _, played = self._watched.popleft()
            # Cancelled, its graders are still leaving, and its controller wants to hear nothing of it.
            if played.phase == "grading" and played.stop.reason != "cancelled":
                played.holding = loop.create_task(self._hold(played))
        self._looking = bool(self._watched)
        if self._looking:
            loop.call_at(self._watched[0][0], self._look, loop)

    async def _hold(self, played: Played) -> None:
        """Store how the agent ended, so that the controller hears of it while graders think."""
        assert played.left is not None
        try:
            ended = played.dialect.ended(played.start, played.left)
            if ended is None:
                return
            await self._outbox.hold(played.attempt_id, encode(to_record(played.left, {})), [ended])
        except Withdrawn:
            return  # as above: it ends as cancelled
        except Exception as error:  # the disk's, or ours: its grade brings the same news
            log.error("the agent's end of %s is reported with its grade: %s", played.name, error)
            return
        played.told = True
        self._owe(deliveries_of(played, [ended], first=0))
