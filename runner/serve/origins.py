"""`Origin`: whose turn it is at one controller, and whether it is there at all. Pure: no I/O, the time is handed in.

After `TRIP` failures in a row an origin counts as away: one probe goes out per back-off, whatever is owed to it. The
first answer that is one ends that; then as many go out at once as it has answered, up to the limit, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from random import Random

from runner.serve.backoff import Backoff
from runner.serve.owing import Lane

TRIP = 8
"""Failures in a row, with no answer between: even where three posts in ten fail it is no accident."""
_RAMP = 2
"""Posts at once after an absence; one more for each answer, so that they double with every round trip."""


class Origin:
    """The lanes whose next callback goes to one scheme, host and port. Times are seconds of one monotonic clock."""

    __slots__ = ("_allowed", "_away", "_backoff", "_limit", "_next_probe", "_order", "_pauses", "_probe", "_queue",
                 "_rng", "acknowledged", "failures", "in_line", "name", "posting", "wakes_at")  # fmt: skip

    def __init__(self, name: str, limit: int, backoff: Backoff, rng: Random) -> None:
        self.name = name
        self.posting = 0
        self.failures = 0
        self.acknowledged = 0
        self.in_line = False
        self.wakes_at: float | None = None
        self._queue: list[tuple[float, int, Lane]] = []
        self._order = 0
        self._limit = limit
        self._allowed = limit
        self._backoff = backoff
        self._rng = rng
        self._away = False
        self._next_probe = 0.0
        self._pauses = 0
        self._probe: Lane | None = None

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def away(self) -> bool:
        """Whether only probes go out."""
        return self._away

    @property
    def idle(self) -> bool:
        """Whether nothing would be forgotten with it."""
        return not (self._queue or self.posting or self._away)

    def add(self, lane: Lane, due: float) -> None:
        """Queue a lane. Those that are due longest go first."""
        self._order += 1
        heappush(self._queue, (due, self._order, lane))

    def next(self, now: float) -> Lane | None:
        """A lane to post now, or None. It takes a place until `answered`, `failed` or `left`."""
        if self.posting >= self._allowed:
            return None
        if self._away and (self._probe is not None or now < self._next_probe):
            return None
        while self._queue and self._queue[0][0] <= now:
            lane = heappop(self._queue)[2]
            if not lane.owing:
                continue  # forgotten
            self.posting += 1
            if self._away:
                self._probe = lane
            return lane
        return None

    def next_at(self) -> float | None:
        """When `next` may have something, or None: when a post has ended, or one is added."""
        if not self._queue or self.posting >= self._allowed or (self._away and self._probe is not None):
            return None
        return max(self._queue[0][0], self._next_probe) if self._away else self._queue[0][0]

    def answered(self, lane: Lane, now: float, *, acknowledged: bool) -> None:
        """A post had an answer that is one: the origin is there."""
        self._leave(lane)
        self.failures = 0
        self.acknowledged += acknowledged
        if self._away:
            self._away = False
            self._pauses = 0
            self._allowed = min(_RAMP, self._limit)
            self.hurry(now)
        elif self._allowed < self._limit:
            self._allowed += 1

    def failed(self, lane: Lane, now: float, asked: float | None) -> None:
        """A post failed in a way that passes. `asked` is the wait its answer asked for."""
        was_probe = self._probe is lane
        self._leave(lane)
        self.failures += 1
        if was_probe or (not self._away and self.failures >= TRIP):
            self._away = True
            self._allowed = self._limit
            self._pauses += 1
            self._next_probe = now + max(asked or 0.0, self._backoff.pause(self._pauses, self._rng))

    def left(self, lane: Lane) -> None:
        """A post ended without saying anything about the origin."""
        self._leave(lane)

    def hurry(self, now: float) -> None:
        """Let go at once whoever waits for a back-off, but not who was asked to wait."""
        self._next_probe = min(self._next_probe, now)
        if any(due > now and not lane.asked for due, _, lane in self._queue):
            self._queue = [(due if lane.asked else min(due, now), order, lane) for due, order, lane in self._queue]
            heapify(self._queue)

    def take(self, overdue: Iterable[Lane]) -> None:
        """Drop lanes from the queue."""
        gone = set(map(id, overdue))
        self._queue = [entry for entry in self._queue if id(entry[2]) not in gone]
        heapify(self._queue)

    def waiting(self) -> Iterable[Lane]:
        """The lanes in the queue, in no order."""
        return (lane for _, _, lane in self._queue)

    def _leave(self, lane: Lane) -> None:
        self.posting -= 1
        if self._probe is lane:
            self._probe = None
