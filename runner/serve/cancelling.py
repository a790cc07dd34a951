"""`Cancelling`: whom a cancel is for, and how they are stopped: on disk at once, within a second, in one sweep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from time import monotonic

from runner.serve.alive import Alive
from runner.serve.course import Course
from runner.serve.played import Played
from runner.serve.start import Refused
from runner.store.errors import StoreError
from runner.store.outbox import Outbox

CANCEL_WAIT = 0.8
"""Seconds that the answer to a cancel waits for what it cancelled to have ended."""
CANCEL_GRACE = 0.6
"""Seconds that cancelled user code gets to clean up: its slot is free within the second that a cancel may take."""
_SOON = {"retry-after": "1"}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Selector:
    """Whom a cancel is for: exactly one of the three is given."""

    ids: tuple[str, ...] | None = None
    prefix: str | None = None
    everything: bool = False

    def takes(self, rollout_id: str) -> bool:
        """Whether it means this rollout."""
        if self.ids is not None:
            return rollout_id in self._named
        return self.everything or (self.prefix is not None and rollout_id.startswith(self.prefix))

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(self.ids or ())


class Cancelling:
    """Cancels what this process holds."""

    def __init__(self, outbox: Outbox, alive: Alive, course: Course) -> None:
        self._outbox = outbox
        self._alive = alive
        self._course = course

    async def cancel(self, selector: Selector) -> dict[str, str]:
        """Stop rollouts, and say what became of each: cancelled_queued, cancelled_running or not_found.

        Returns when they have ended, or after `CANCEL_WAIT`: what cleans up longer goes on doing so. That they are
        cancelled is on disk by then, so a process that is killed does not play them again. Raises `Refused` (503) if
        it cannot be written down: they are stopped all the same.
        """
        found = dict.fromkeys(selector.ids or (), "not_found")
        meant = [each for each in self._alive if each.phase != "settling" and selector.takes(each.name)]
        for played in meant:
            if played.phase not in ("accepting", "queued"):
                found[played.name] = "cancelled_running"
            elif found.get(played.name) != "cancelled_running":  # of several with one id, the word for the furthest
                found[played.name] = "cancelled_queued"
        if meant:
            await self._stop(meant)
        return found

    async def cancel_attempts(self, attempt_ids: Iterable[str]) -> None:
        """Stop those that somebody else has written down as cancelled."""
        wanted = set(attempt_ids)
        await self._course.stop([each for each in self._alive if each.attempt_id in wanted], "cancelled", CANCEL_GRACE)

    async def _stop(self, meant: list[Played]) -> None:
        over = monotonic() + CANCEL_WAIT
        written = asyncio.ensure_future(self._outbox.cancel([played.attempt_id for played in meant]))
        stopping = asyncio.ensure_future(self._course.stop(meant, "cancelled", CANCEL_GRACE))
        await asyncio.wait({written, stopping}, timeout=CANCEL_WAIT)
        tasks = [played.task for played in meant if played.task is not None and not played.task.done()]
        if tasks and (left := over - monotonic()) > 0:
            await asyncio.wait(tasks, timeout=left)
        try:
            if not written.done():
                written.add_done_callback(_say)
                raise StoreError("the state file is not written to at the moment")
            written.result()
        except StoreError as error:
            log.error("a cancel of %d rollouts is not written down: %s", len(meant), error)
            text = "they are stopped, but the server cannot write that down now; ask again"
            raise Refused(503, text, _SOON) from None


def _say(written: asyncio.Future[None]) -> None:
    if not written.cancelled() and (error := written.exception()) is not None:
        log.error("a cancel is not written down: %s", error)
