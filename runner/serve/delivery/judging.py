"""Whether a callback that was posted is done with, tried again, or given up; and what that says about its origin."""

from __future__ import annotations

from random import Random

from runner.models.retry import Clock
from runner.serve.delivery.backoff import Backoff
from runner.serve.delivery.origins import Origin
from runner.serve.delivery.owing import Lane, Owing
from runner.serve.delivery.posting import CallbackPolicy, Posted, Result, Tried


class Judge:
    """Turns what came of a post into its `Posted`, and tells the origin and the lane."""

    def __init__(self, policy: CallbackPolicy, clock: Clock, rng: Random) -> None:
        self._policy = policy
        self._backoff = Backoff(policy.base_wait, policy.max_wait)
        self._clock = clock
        self._rng = rng

    def judge(self, origin: Origin, lane: Lane, tried: Tried, started: float) -> Posted:
        """What becomes of the next callback of `lane`, of which a post began at `started`."""
        now = self._clock.monotonic()
        owing = lane.owing[0]
        owing.tries += 1
        meaning = tried.reading.meaning
        if meaning == "acknowledged":
            origin.answered(now, acknowledged=True)
            return describe(origin.name, lane, "acknowledged", "", tried, now - started)
        if meaning == "again":
            owing.absent = None
        problem = tried.reading.problem
        if meaning == "refused" or (meaning == "absent" and self._is_there(origin, owing, now)):
            if tried.blame:
                origin.answered(now, acknowledged=False)
            return describe(origin.name, lane, "abandoned", problem, tried, now - started)
        asked = self._backoff.asked(tried.headers, self._clock.time(), self._rng) if tried.headers else None
        if tried.blame:
            origin.failed(lane, now, asked)
        owing.failures += 1
        over = self._over(owing, meaning == "absent", now)
        if over:
            return describe(origin.name, lane, "abandoned", f"{problem}; given up after {over}", tried, now - started)
        lane.asked = asked is not None
        wait = asked if asked is not None else self._backoff.wait(owing.failures, self._rng)
        return describe(origin.name, lane, "retry", problem, tried, now - started, wait)

    def _is_there(self, origin: Origin, owing: Owing, now: float) -> bool:
        """Whether a 404 is the controller's own: it took another callback since this one met nothing but 404s."""
        if owing.absent is None:
            owing.absent = (origin.acknowledged, now)
        return origin.acknowledged > owing.absent[0]

    def _over(self, owing: Owing, absent: bool, now: float) -> str:
        """After what a callback is given up, or nothing."""
        policy = self._policy
        if policy.attempts is not None and owing.failures >= policy.attempts:
            return f"{owing.failures} posts (`[serve.callbacks] attempts`)"
        if now >= owing.gives_up_at:
            return f"{policy.give_up:g} s (`[serve.callbacks] give_up`)"
        if absent and owing.absent is not None and now - owing.absent[1] >= policy.absence:
            return f"{policy.absence:g} s of the same answer"
        return ""


def describe(
    origin: str, lane: Lane, result: Result, problem: str, tried: Tried, seconds: float, wait: float = 0.0
) -> Posted:
    """The event about the next callback of `lane`."""
    owing = lane.owing[0]
    return Posted(
        lane.attempt_id, lane.rollout_id, owing.channel, origin, owing.tries,
        tried.status, problem, seconds, result, tried.report, wait,
    )  # fmt: skip
