"""Play one call until it succeeds: a slot of the limiter for each try, a wait between two, an end after so many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

from runner.models.limiter import Limiter
from runner.models.refusal import Setback
from runner.models.retry import Clock, Retries, delay
from runner.records.completion import Completion
from runner.records.failure import ContextOverflow, ModelError, ModelRefused
from runner.records.quick import quick


@quick
class Persistence:
    """How to insist: shared by all calls of a model."""

    retries: Retries
    limiter: Limiter | None
    clock: Clock
    rng: Random

    async def __call__(self, once: Callable[[], Awaitable[Completion]], tokens: int = 0) -> Completion:
        """The completion of the first try that works; `retries` counts the failed ones.

        `once` raises Setback. `tokens` is the expected size of the call, for a tokens-per-minute limit.
        The slot is given back while waiting. Raises the ModelError of the last try.
        """
        failed = 0
        while True:
            try:
                completion = await self._try(once, tokens)
            except Setback as setback:
                failed += 1
                if not setback.retry or failed >= self.retries.attempts:
                    raise _final(setback, failed) from setback.__cause__
                wait = delay(failed, setback.retry_after, self.rng, self.retries.max_wait, self.retries.base_wait)
            else:
                return replace(completion, retries=failed) if failed else completion
            await self.clock.sleep(wait)

    async def _try(self, once: Callable[[], Awaitable[Completion]], tokens: int) -> Completion:
        limiter = self.limiter
        if limiter is None:
            return await once()
        await limiter.acquire(tokens)
        healthy, used = False, None
        try:
            completion = await once()
            healthy = True
            used = completion.usage.total_tokens if completion.usage is not None else None
        except Setback as setback:
            if setback.throttled:
                limiter.throttled(setback.retry_after)
            raise
        finally:
            limiter.release(healthy=healthy, expected=tokens, used=used)
        return completion


def _final(setback: Setback, failed: int) -> ModelError:
    error = setback.error
    error.retries = failed - 1
    if (failed == 1 and not setback.retry) or isinstance(error, (ModelRefused, ContextOverflow)):
        return error
    tries = "1 try" if failed == 1 else f"{failed} tries"
    message = f"{error}; gave up after {tries}"
    return type(error)(message, kind=error.kind, where=error.where, status=error.status, retries=failed - 1)
