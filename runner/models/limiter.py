"""How many calls of one model may be under way: a fixed or an adaptive limit, with requests and tokens per minute.

First come, first served. A slot is handed over to the first waiter inside `release`, so that nobody can overtake;
each call costs O(1) however many wait, and a cancelled waiter loses nothing for the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from runner.models.bucket import Bucket
from runner.models.retry import Clock, SystemClock, Timer

if TYPE_CHECKING:
    from asyncio import Future

_HISTORY = 1000
_COOL_DOWN = 15.0
_CUT = 0.8
_MAX_PAUSE = 60.0


class Limiter(Protocol):
    """What a model needs of a limiter. Every `acquire` that returns is followed by one `release`."""

    async def acquire(self, tokens: int = 0) -> None:
        """Wait for a slot. `tokens` is what the call is expected to use."""
        ...

    def release(self, *, healthy: bool, expected: int = 0, used: int | None = None) -> None:
        """Give the slot back. `healthy`: the endpoint answered; `used` corrects the tokens `expected` at first."""
        ...

    def throttled(self, retry_after: float | None) -> None:
        """The endpoint answered 429."""
        ...


class FixedLimit:
    """At most `limit` calls at once, `rpm` requests and `tpm` tokens a minute; None is no limit.

    `history` holds (Unix time, limit), oldest first, at most 1,000 entries. `active` and `waiting` are counts.
    """

    def __init__(
        self, limit: int | None, *, rpm: float | None = None, tpm: float | None = None, clock: Clock | None = None
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.limit = limit
        self.active = 0
        self.history: list[tuple[float, int]] = []
        self._queue: deque[tuple[Future[None], int]] = deque()
        self._paused_until = 0.0
        now = self.clock.monotonic()
        self._requests = Bucket(rpm, now) if rpm else None
        self._tokens = Bucket(tpm, now) if tpm else None
        self._timer: Timer | None = None
        self._note()

    @property
    def waiting(self) -> int:
        return sum(not future.done() for future, _ in self._queue)

    async def acquire(self, tokens: int = 0) -> None:
        if not self._queue and self._wait(tokens) == 0.0:
            self._enter(tokens)
            return
        import asyncio

        future: Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((future, tokens))
        self._advance()  # sets the alarm if the head of the queue waits for time, not for a slot
        try:
            await future
        except BaseException:
            if future.done() and not future.cancelled():
                # The slot had been handed over in the instant of the cancellation.
                self.active -= 1
                self._settle(tokens)
            else:
                future.cancel()
            self._advance()
            raise

    def release(self, *, healthy: bool, expected: int = 0, used: int | None = None) -> None:
        self.active -= 1
        if used is not None:
            self._settle(expected - used)
        self._observe(healthy)
        if self._queue:
            self._advance()

    def throttled(self, retry_after: float | None) -> None:
        """Nobody starts a call until the endpoint's own `Retry-After` has passed (at most a minute)."""
        if retry_after:
            until = self.clock.monotonic() + min(retry_after, _MAX_PAUSE)
            self._paused_until = max(self._paused_until, until)

    def _observe(self, healthy: bool) -> None:
        """A call ended; an adaptive limit learns from it."""

    def _full(self) -> bool:
        return self.limit is not None and self.active >= self.limit

    def _wait(self, tokens: int) -> float:
        """0 if a call may start now, seconds if it must wait for time to pass, infinity if for a slot."""
        if self._full():
            return float("inf")
        if not self._paused_until and self._requests is None and self._tokens is None:
            return 0.0
        now = self.clock.monotonic()
        wait = self._paused_until - now
        if wait <= 0.0:
            wait = self._paused_until = 0.0
        if self._requests is not None:
            wait = max(wait, self._requests.wait(1, now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(tokens, now))
        return wait

    def _enter(self, tokens: int) -> None:
        self.active += 1
        if self._requests is not None:
            self._requests.take(1)
        self._settle(-tokens)

    def _settle(self, tokens: int) -> None:
        if self._tokens is not None:
            self._tokens.take(-tokens)

    def _advance(self) -> None:
        """Let in as many of the queue as may go."""
        queue = self._queue
        while queue:
            future, tokens = queue[0]
            if future.done():
                queue.popleft()  # its caller was cancelled
                continue
            wait = self._wait(tokens)
            if wait > 0.0:
                if wait != float("inf") and self._timer is None:
                    self._timer = self.clock.call_later(wait, self._wake)
                return
            queue.popleft()
            self._enter(tokens)
            future.set_result(None)

    def _wake(self) -> None:
        self._timer = None
        self._advance()

    def _note(self) -> None:
        if self.limit is not None:
            self.history.append((self.clock.time(), self.limit))
            if len(self.history) > _HISTORY:
                del self.history[0]


class AdaptiveLimit(FixedLimit):
    """Finds the endpoint's own limit between `minimum` and `maximum`.

    Doubles while it is full and every call succeeds, until the first 429; from then on grows by a tenth. Only a 429
    cuts it, to eight tenths, once in 15 seconds: time-outs and 5xx are not a sign of too many calls. In those 15 s it
    does not grow either.
    """

    def __init__(
        self,
        minimum: int = 4,
        start: int = 32,
        maximum: int = 1024,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(min(max(start, minimum), maximum), rpm=rpm, tpm=tpm, clock=clock)
        self.limit: int
        self._minimum = minimum
        self._maximum = maximum
        self._slow_start = True
        self._cut_at = float("-inf")
        self._successes = 0

    def throttled(self, retry_after: float | None) -> None:
        super().throttled(retry_after)
        now = self.clock.monotonic()
        self._slow_start = False
        self._successes = 0
        if now - self._cut_at < _COOL_DOWN:
            return  # these calls had started before the last cut
        self._cut_at = now
        self._change(max(self._minimum, int(self.limit * _CUT)))

    def _observe(self, healthy: bool) -> None:
        # `active` was just lowered, so the limit was in use if the others fill it but for one.
        if not healthy:
            self._successes = 0
            return
        if self.active + 1 < self.limit and not self._queue:
            return
        self._successes += 1
        if self._successes < self.limit or self.clock.monotonic() - self._cut_at < _COOL_DOWN:
            return
        self._successes = 0
        grown = self.limit * 2 if self._slow_start else self.limit + max(1, self.limit // 10)
        self._change(min(self._maximum, grown))

    def _change(self, limit: int) -> None:
        if limit != self.limit:
            self.limit = limit
            self._note()
