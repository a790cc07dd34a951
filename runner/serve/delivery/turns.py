"""`Turns`: which callback is posted next, over all origins: the one scheduler, with one timer.

Origins that have something to post stand in a line and take turns, one post each, so that a controller with a long
backlog does not keep the others waiting. Origins that wait for a time are in a heap; the timer is for its first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import TypeAlias

from runner.models.retry import Clock, Timer
from runner.serve.delivery.backoff import Backoff
from runner.serve.delivery.origins import Origin
from runner.serve.delivery.owing import Lane
from runner.serve.delivery.posting import CallbackPolicy

Turn: TypeAlias = tuple[Origin, Lane]
"""A lane whose next callback is to be posted, and the origin where that is."""


class Turns:
    """Calls `start(origin, lane)` when a lane's next callback is to be posted; `done` gives its place back."""

    def __init__(
        self, policy: CallbackPolicy, clock: Clock, rng: Random, start: Callable[[Origin, Lane], None]
    ) -> None:
        self._policy = policy
        self._backoff = Backoff(policy.base_wait, policy.max_wait)
        self._clock = clock
        self._rng = rng
        self._start = start
        self._origins: dict[str, Origin] = {}
        self._line: deque[Origin] = deque()
        self._wakes: list[tuple[float, int, Origin]] = []
        self._woken = 0
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._stopped = False
        self.posting = 0

    def queue(self, lane: Lane, due: float) -> None:
        """Let a lane wait for its turn at the origin of its next callback. `pump` starts what may start."""
        name = lane.owing[0].origin
        origin = self._origins.get(name)
        if origin is None:
            origin = self._origins[name] = Origin(name, self._policy.concurrency, self._backoff, self._rng)
        origin.add(lane, due)
        if not origin.in_line:
            self._line_up(origin)

    def done(self, origin: Origin, lane: Lane) -> None:
        """A post that was started has ended."""
        origin.leave(lane)
        self.posting -= 1
        if origin.in_line:
            return
        if origin.waiting:
            self._line_up(origin)
        else:
            self._forget(origin)

    def pump(self) -> None:
        """Start what may start, one post per origin and turn."""
        while (turn := self.next()) is not None:
            self._start(*turn)
        self._set_timer()

    def next(self) -> Turn | None:
        """Whose turn it is to be posted now; it takes a place until `done`."""
        if not self._line:
            return None
        now = self._clock.monotonic()
        while self._line and self.posting < self._policy.at_once and not self._stopped:
            origin = self._line.popleft()
            lane = origin.next(now)
            if lane is not None:
                self._line.append(origin)
                self.posting += 1
                return origin, lane
            origin.in_line = False
            self._rest(origin)
        return None

    def hurry(self) -> None:
        """Try at once whoever waits for a back-off."""
        now = self._clock.monotonic()
        for origin in self._origins.values():
            origin.hurry(now)
            if not origin.in_line:
                self._line_up(origin)
        self.pump()

    def next_at(self) -> float | None:
        """When something may happen that is not under way, on the clock; None for never."""
        if self._line:
            return self._clock.monotonic()
        return self._wakes[0][0] if self._wakes else None

    def away(self) -> tuple[str, ...]:
        """The origins that do not answer."""
        return tuple(origin.name for origin in self._origins.values() if origin.away)

    def stop(self) -> None:
        """Start nothing more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _line_up(self, origin: Origin) -> None:
        origin.in_line = True
        self._line.append(origin)

    def _rest(self, origin: Origin) -> None:
        """See that an origin with nothing to do now is looked at again in time, or forget it."""
        at = origin.next_at()
        if at is None:
            self._forget(origin)
        elif origin.wakes_at is None or at < origin.wakes_at:
            origin.wakes_at = at
            self._woken += 1
            heappush(self._wakes, (at, self._woken, origin))

    def _forget(self, origin: Origin) -> None:
        """Keep nothing about an origin to which nothing is owed."""
        if origin.idle and self._origins.get(origin.name) is origin:
            del self._origins[origin.name]

    def _set_timer(self) -> None:
        if not self._wakes or self._stopped:
            return
        first = self._wakes[0][0]
        if self._timer is not None:
            if self._timer_at <= first:
                return
            self._timer.cancel()
        self._timer_at = first
        self._timer = self._clock.call_later(max(0.0, first - self._clock.monotonic()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._wakes and self._wakes[0][0] <= now:
            at, _, origin = heappop(self._wakes)
            if origin.wakes_at == at:
                origin.wakes_at = None
                if not origin.in_line:
                    self._line_up(origin)
        self.pump()
