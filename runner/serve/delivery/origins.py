"""`Origin`: whose turn it is at one controller, and whether it is there at all. Pure: no I/O, the time is handed in.

After `TRIP` failures in a row an origin counts as away: one probe goes out per back-off, whatever is owed to it. The
first answer that is one ends that; then as many go out at once as it has answered, up to the limit, oldest first.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from random import Random

from runner.serve.delivery.backoff import Backoff
from runner.serve.delivery.owing import Lane

TRIP = 8
"""Failures in a row, with no answer between: even where three posts in ten fail it is no accident."""
_RAMP = 2
"""Posts at once after an absence; one more for each answer, so that they double with every round trip."""


class Origin:
    """The lanes whose next callback goes to one scheme, host and port. Times are seconds of one monotonic clock."""

    __slots__ = ("_allowed", "_backoff", "_limit", "_next_probe", "_order", "_pauses", "_probe", "_rng",
                 "acknowledged", "away", "failures", "in_line", "name", "posting", "waiting", "wakes_at")  # fmt: skip

    def __init__(self, name: str, limit: int, backoff: Backoff, rng: Random) -> None:
        self.name = name
        self.posting = 0
        self.failures = 0
        self.acknowledged = 0
        self.in_line = False
        self.wakes_at: float | None = None
        self.waiting: list[tuple[float, int, Lane]] = []
        """A heap: since when each is due, in which order they came, and the lanes."""
        self._order = 0
        self._limit = limit
        self._allowed = limit
        self._backoff = backoff
        self._rng = rng
        self.away = False
        self._next_probe = 0.0
        self._pauses = 0
        self._probe: Lane | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is owed to it: then nobody needs to know whether it is there."""
        return not (self.waiting or self.posting)

    def add(self, lane: Lane, due: float) -> None:
        """Queue a lane. Those that are due longest go first."""
        self._order += 1
        heappush(self.waiting, (due, self._order, lane))

    def next(self, now: float) -> Lane | None:
        """A lane to post now, or None. It takes a place until `leave`."""
        if self.posting >= self._allowed:
            return None
        if self.away and (self._probe is not None or now < self._next_probe):
            return None
        while self.waiting and self.waiting[0][0] <= now:
            lane = heappop(self.waiting)[2]
            if not lane.owing:
                continue  # forgotten
            self.posting += 1
            if self.away:
                self._probe = lane
            return lane
        return None

    def next_at(self) -> float | None:
        """When `next` may have something, or None: when a post has ended, or one is added."""
        if not self.waiting or self.posting >= self._allowed or (self.away and self._probe is not None):
            return None
        return max(self.waiting[0][0], self._next_probe) if self.away else self.waiting[0][0]

    def answered(self, now: float, *, acknowledged: bool) -> None:
        """A post had an answer that is one: the origin is there."""
        self.failures = 0
        self.acknowledged += acknowledged
        if self.away:
            self.away = False
            self._pauses = 0
            self._allowed = min(_RAMP, self._limit)
            self.hurry(now)
        elif self._allowed < self._limit:
            self._allowed += 1

    def failed(self, lane: Lane, now: float, asked: float | None) -> None:
        """A post failed in a way that passes. `asked` is the wait its answer asked for."""
        self.failures += 1
        if self._probe is lane or (not self.away and self.failures >= TRIP):
            self.away = True
            self._allowed = self._limit
            self._pauses += 1
            self._next_probe = now + max(asked or 0.0, self._backoff.pause(self._pauses, self._rng))

    def leave(self, lane: Lane) -> None:
        """A post has ended, and what it said was told before: its place is free."""
        self.posting -= 1
        if self._probe is lane:
            self._probe = None

    def hurry(self, now: float) -> None:
        """Let go at once whoever waits for a back-off, but not who was asked to wait."""
        self._next_probe = min(self._next_probe, now)
        if any(due > now and not lane.asked for due, _, lane in self.waiting):
            self.waiting = [(due if lane.asked else min(due, now), order, lane) for due, order, lane in self.waiting]
            heapify(self.waiting)

    def take_overdue(self, now: float) -> list[Lane]:
        """Take out of the queue the lanes whose next callback has been tried for long enough."""
        overdue = [entry for entry in self.waiting if entry[2].owing and entry[2].owing[0].gives_up_at <= now]
        if overdue:
            self.waiting = [
                entry for entry in self.waiting if not entry[2].owing or entry[2].owing[0].gives_up_at > now
            ]
            heapify(self.waiting)
        return [lane for _, _, lane in sorted(overdue)]
