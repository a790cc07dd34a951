"""`Player`: an accepted rollout becomes a stored verdict, and the callbacks that it owes.

What the controller hears is stored before it is sent, and each channel has one final value: an agent's end that may
have been reported is graded again after a restart, never played again.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Protocol

from runner.build.live import Live
from runner.models.model import Model
from runner.records.artifacts import artifacts_at
from runner.records.event import Listener
from runner.records.rollout import Outcome
from runner.runtime.grading import grade_outcome
from runner.runtime.rollout import run_rollout
from runner.runtime.stop import current_stop, reason_to_stop
from runner.serve.dialects.dialect import CANCELLED, SUCCESS, Settled
from runner.serve.ends import CANCELLED_IN_GRADING, cancelled, shut_down
from runner.serve.holding import Holding
from runner.serve.owed import deliveries_of, owed_for
from runner.serve.played import Played
from runner.store.errors import StoreError, Unusable
from runner.store.outbox import Contradiction, Delivery, Outbox, Owed, Verdict, Withdrawn
from runner.telemetry.listeners import heard_as
from runner.telemetry.log_context import bind

_AGAIN = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between two tries to store a verdict on a disk that does not take it; the last one repeats."""

log = logging.getLogger(__name__)


class Models(Protocol):
    """Makes the model that answers for one rollout. It is dropped with it; connections are shared."""

    def model_for(self, played: Played) -> Model: ...


class Player:
    """Plays, grades and stores. `owe` is told what was just stored."""

    def __init__(
        self,
        live: Live,
        outbox: Outbox,
        models: Models,
        listen: Listener,
        owe: Callable[[Sequence[Delivery]], None],
        *,
        report_cancelled: bool,
        artifacts: Callable[[str], Path] | None = None,
    ) -> None:
        self._live = live
        self._outbox = outbox
        self._models = models
        self._listen = listen
        self._owe = owe
        self._holding = Holding(outbox, owe)
        self._report_cancelled = report_cancelled
        self._artifacts = artifacts
        self.trouble = ""
        """Why verdicts cannot be stored now; "" when they can."""
        self.lost = False
        """Whether none will ever be: the state file is gone."""

    async def play(self, played: Played) -> Outcome:
        """The outcome of the rollout; nothing is stored yet. Never raises, except cancellation without a reason."""
        if played.left is not None:
            return await self._grade(played.left)
        if self._artifacts is not None:
            artifacts_at.set(self._artifacts(played.label))  # in the task's own context, so it needs no reset
        model = self._models.model_for(played)
        try:
            return await run_rollout(
                self._live.answered_by(model),
                played.request,
                self._listen if played.label == played.name else heard_as(played.label, self._listen),
                started=played.admitted,
                graded=played.start.grade,
                left=partial(self._left, played),
            )
        finally:
            await model.aclose()

    async def settle(self, played: Played, outcome: Outcome) -> Outcome:
        """Store the verdict and what is owed for it, however often the disk refuses; the outcome as it was stored."""
        if played.holding is not None:
            await asyncio.wait({played.holding})  # it logs what goes wrong with it
        if outcome.status == "cancelled" and outcome.stop_reason == "shutdown":
            outcome = shut_down(outcome)
        try:
            await self._tell(played, outcome)
        except Withdrawn:  # its controller has cancelled it, and this process had not heard of that yet
            outcome = cancelled(outcome)
            await self._tell(played, outcome)
        return outcome

    def is_silent(self, played: Played) -> bool:
        """Whether nothing was said of it, and nothing is to be said of its being cancelled."""
        return not self._report_cancelled and not played.told

    async def withdraw(self, many: Sequence[Played]) -> None:
        """Store of silent ones that they were cancelled before they played, in one write. Raises `StoreError`."""
        await self._outbox.withdraw([played.attempt_id for played in many])

    async def bury(self, played: Played, outcome: Outcome) -> None:
        """Store the verdict of a rollout whose callbacks cannot be made: the status endpoint tells of it."""
        message = "" if outcome.failure is None else outcome.failure.message
        try:
            await self._store(played, Verdict("failure", outcome.stop_reason, None, message), (), release=False)
        except Withdrawn:
            await self._store(played, Verdict("cancelled", "cancelled", None, "cancelled"), (), release=False)

    async def _tell(self, played: Played, outcome: Outcome) -> None:
        """Store the verdict with its callbacks, and have them posted. Raises `Withdrawn`."""
        if outcome.status == "cancelled" and not self._report_cancelled:
            settled, owed = Settled(CANCELLED, CANCELLED), []
        else:
            settled = played.dialect.settled(played.start, outcome)
            owed = owed_for(played, outcome, settled)
        silent = outcome.status == "cancelled" and not owed
        reward = outcome.reward if settled.word == SUCCESS else None
        reason = CANCELLED_IN_GRADING if silent and played.told else outcome.stop_reason
        verdict = Verdict(settled.word, reason, reward, settled.message or "")
        # Cancelled before anything was said of it: whoever starts it again wants it played, and hears nothing else.
        if await self._store(played, verdict, owed, release=silent and not played.told):
            self._owe(deliveries_of(played, owed, first=1 if played.told else 0))

    async def _store(self, played: Played, verdict: Verdict, owed: Sequence[Owed], *, release: bool) -> bool:
        """Store the verdict, however often that takes. False: another one stands, and nothing is owed for this one.

        Raises `Withdrawn` for a rollout that was cancelled, and any verdict but that.
        """
        failed = False
        for pause in chain(_AGAIN, repeat(_AGAIN[-1])):
            try:
                await self._outbox.settle(played.attempt_id, verdict, owed, release=release)
            except Withdrawn:
                raise
            except Contradiction as error:
                # After a failure it is most likely our own, which had reached the disk after all.
                log.warning("the verdict of %s was stored before: %s", played.name, error)
                return failed
            except Unusable as error:
                self._lose(played, error)
                return False
            except StoreError as error:
                failed, self.trouble = True, str(error)
                log.error("the verdict of %s is not stored yet: %s; again in %g s", played.name, error, pause)
                await asyncio.sleep(pause)
            else:
                self.trouble = ""
                return True
        raise AssertionError("unreachable")

    def _lose(self, played: Played, error: Unusable) -> None:
        """No later try will succeed, and what is not on disk is not told: after a restart it might be contradicted."""
        log.error("the verdict of %s is lost: %s", played.name, error)
        self.trouble = str(error)
        if not self.lost:
            self.lost = True
            log.critical("no verdict can be stored any more, so none is told: %s (%s)", error, error.hint)

    def _left(self, played: Played, left: Outcome) -> None:
        played.left = left
        played.phase = "grading"
        if played.start.grade and self._live.plan.graders:
            self._holding.watch(played)

    async def _grade(self, left: Outcome) -> Outcome:
        """A rollout that was being graded when the process ended."""
        try:
            return await grade_outcome(self._live, left)
        except asyncio.CancelledError:
            return replace(left, status="cancelled", stop_reason=reason_to_stop())


def begin(
    played: Played, work: Coroutine[Any, Any, None], gone: Callable[[Played, BaseException | None], None]
) -> None:
    """Run `work` in a task of its own that can be stopped with a reason; `gone` is called if it never got to its end.

    A task that is cancelled before its first step runs nothing of its coroutine, no `finally` either.
    """
    context = contextvars.copy_context()
    context.run(_enter, played)
    played.task = asyncio.get_running_loop().create_task(work, context=context)
    played.task.add_done_callback(partial(_done, played, gone))


def _enter(played: Played) -> None:
    current_stop.set(played.stop)
    bind(rollout_id=played.name, attempt_id=played.attempt_id)


def _done(played: Played, gone: Callable[[Played, BaseException | None], None], task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if task.cancelled() or error is not None:
        gone(played, error)
