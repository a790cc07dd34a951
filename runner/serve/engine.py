"""`Engine`: the rollouts of one process, from their acceptance to their stored verdict, as others see them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runner.build.live import Live
from runner.records.rollout import Outcome
from runner.serve.admission import Admission, Answer, Headers, Policy, Traced
from runner.serve.alive import Alive
from runner.serve.cancelling import Cancelling, Selector
from runner.serve.course import Course
from runner.serve.dialects.dialect import Dialect
from runner.serve.played import Played
from runner.serve.playing import Player
from runner.serve.recovery import How, Recovery
from runner.serve.slots import Slots
from runner.serve.start import Start
from runner.serve.status import status_of, status_of_known
from runner.store.outbox import Outbox

__all__ = ["Drained", "Engine", "Load", "Selector"]


@dataclass(frozen=True, slots=True)
class Load:
    """How full the house is. `held` are all in memory; `settling` ones have ended and are being written down."""

    held: int
    running: int
    queued: int
    grading: int
    settling: int
    max_concurrent: int
    max_queue: int
    accepted: int
    ended: int


@dataclass(frozen=True, slots=True)
class Drained:
    """How many a drain cut short, and how many of these have no verdict yet: the next start takes them up."""

    cut: int = 0
    left: int = 0

    @property
    def any(self) -> bool:
        """Whether anything could not be finished."""
        return bool(self.cut or self.left)


class Engine:
    """`check` refuses URLs that may not be called; `heard` is told of every verdict that is stored."""

    def __init__(
        self,
        live: Live,
        outbox: Outbox,
        player: Player,
        policy: Policy,
        check: Callable[[Start], None],
        heard: Callable[[Played, Outcome], None],
        traced: Traced | None = None,
        slots: Callable[[Callable[[Played], None]], Slots[Played]] | None = None,
    ) -> None:
        self._outbox = outbox
        self._player = player
        self._policy = policy
        self._alive = alive = Alive()
        most = policy.max_concurrent, policy.max_queue
        self._course = course = Course(player, alive, slots or (lambda begin: Slots(*most, begin)), heard)
        self._admission = Admission(
            live.plan, outbox, alive, course.slots, policy, check=check, enter=course.enter, traced=traced
        )
        self._cancelling = Cancelling(outbox, alive, course)
        self.drained = Drained()
        self._recovery = Recovery(self._admission, outbox, alive, course, policy.on_restart)

    def start(
        self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Headers = (), attempt_id: str = ""
    ) -> Coroutine[Any, Any, Answer]:
        """Accept one rollout. The answer is given when it is on disk. Raises `Refused`.

        `attempt_id` is what to call the attempt, if this start may have been accepted by another worker as that one.
        """
        return self._admission.start(dialect, body, raw, headers, attempt_id)

    async def status(self, rollout_id: str) -> dict[str, Any]:
        """What is known about a rollout, in the words of the status endpoint."""
        phase = self.phase(rollout_id)
        if phase is not None:
            return status_of(rollout_id, phase)
        known = await self._outbox.find(rollout_id)
        return status_of(rollout_id, "unknown") if known is None else status_of_known(known)

    def phase(self, rollout_id: str) -> str | None:
        """The status word of a rollout that this process holds; None if it holds none of that name."""
        alive = self._alive.named(rollout_id)
        return None if alive is None else alive.status

    async def cancel(self, selector: Selector) -> dict[str, str]:
        """Stop rollouts, and say what became of each: cancelled_queued, cancelled_running or not_found.

        Raises `Refused` (503) if that cannot be written down.
        """
        return await self._cancelling.cancel(selector)

    async def cancel_attempts(self, attempt_ids: Iterable[str]) -> None:
        """Stop those that somebody else has written down as cancelled."""
        await self._cancelling.cancel_attempts(attempt_ids)

    @property
    def draining(self) -> bool:
        """Whether nothing new is accepted."""
        return self._admission.closed

    @property
    def trouble(self) -> str:
        """Why verdicts cannot be stored now, or nothing."""
        return self._player.trouble

    @property
    def lost(self) -> bool:
        """Whether the state file will never take a verdict again."""
        return self._player.lost

    def load(self) -> Load:
        """How full the house is, now."""
        phases = [played.phase for played in self._alive]
        slots, policy = self._course.slots, self._policy
        grading, settling = phases.count("grading"), phases.count("settling")
        most = policy.max_concurrent, policy.max_queue
        counts = len(phases), slots.running, slots.waiting, grading, settling
        return Load(*counts, *most, self._admission.accepted, self._course.ended)

    async def recover(self, dialects: Mapping[str, Dialect]) -> Mapping[How, int]:
        """Take up what an earlier process accepted and did not finish. How many went which way."""
        return await self._recovery(dialects)

    async def expire(self) -> None:
        """End those whose time was over before their turn came."""
        await self._course.expire()

    async def drain(self, seconds: float, settle: float = 5.0) -> None:
        """Accept nothing more and let what runs and waits end within `seconds`; the rest is reported as cut short.

        It gets `settle` seconds for that. `drained` tells how it went.
        """
        self._admission.closed = True
        if await self._alive.gone(seconds):
            return
        cut = [played for played in self._alive if played.phase != "settling"]
        await self._course.stop(cut, "shutdown")
        await self._alive.gone(settle)
        self.drained = Drained(len(cut), len(self._alive))

    async def aclose(self) -> None:
        """The process ends: what still plays is cut off without a verdict. The outbox knows it."""
        await self._course.aclose()
        self.drained = Drained(self.drained.cut, len(self._alive))
