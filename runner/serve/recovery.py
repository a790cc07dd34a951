"""`Recovery`: what an earlier process accepted and did not finish is taken up: played, graded again, or ended."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic, time
from typing import Literal, TypeAlias

from runner.records.rollout import Outcome, RolloutRequest
from runner.serve.admission import Admission
from runner.serve.alive import Alive
from runner.serve.course import Course
from runner.serve.dialects.dialect import Dialect
from runner.serve.ends import restarted, stopped
from runner.serve.played import Played
from runner.serve.start import Refused
from runner.store.outbox import Outbox, Unfinished, Verdict
from runner.store.record import from_record

How: TypeAlias = Literal["replayed", "regraded", "failed", "cancelled"]
"""What becomes of a rollout that is taken up: it plays from its begin, its end is only graded again, or it ends."""

AT_ONCE = 20
"""Rollouts that are taken up in one go, before others get the event loop."""

log = logging.getLogger(__name__)


class Recovery:
    """`on_restart` is `[serve]`'s: "run" or "fail"."""

    def __init__(self, admission: Admission, outbox: Outbox, alive: Alive, course: Course, on_restart: str) -> None:
        self._admission = admission
        self._outbox = outbox
        self._alive = alive
        self._course = course
        self._on_restart = on_restart

    async def __call__(self, dialects: Mapping[str, Dialect]) -> Counter[How]:
        """Take up all of it; how many went which way. Raises `StoreError`."""
        found: Counter[How] = Counter()
        for place, each in enumerate(await self._outbox.unfinished(), 1):
            found[await self._take_up(each, dialects.get(each.accepted.dialect))] += 1
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    async def _take_up(self, unfinished: Unfinished, dialect: Dialect | None) -> How:
        accepted = unfinished.accepted
        try:
            if dialect is None:
                raise ValueError(f"nothing here speaks {accepted.dialect!r}")
            start = dialect.parse(json.loads(accepted.request), accepted.rollout_id)
        except (Refused, ValueError, RecursionError) as error:
            return await self._give_up(unfinished, error)
        request, label = (
            RolloutRequest(start.rollout_id, start.prompt),
            self._admission.label(start, accepted.attempt_id),
        )
        played = Played(accepted.attempt_id, dialect, start, request, monotonic(), label=label)
        # Its controller hears nothing twice, whatever else is wrong with it.
        played.told = unfinished.left is not None
        self._alive.add(played, accepted.keys)
        how, outcome = self._prepare(played, unfinished)
        self._course.take_up(played, outcome)
        return how

    async def _give_up(self, unfinished: Unfinished, error: Exception) -> How:
        """A start that cannot be read any more: where its callbacks go cannot be read either."""
        accepted = unfinished.accepted
        name, why = accepted.rollout_id, f"not playable after a restart: {error}"
        log.error("rollout %s is %s; its controller cannot be told", name, why)
        verdict = Verdict("failure", "restarted", None, why)
        if unfinished.cancelled:
            verdict = Verdict("cancelled", "cancelled", None, "cancelled")
        await self._outbox.settle(accepted.attempt_id, verdict, ())
        return "cancelled" if unfinished.cancelled else "failed"

    def _prepare(self, played: Played, unfinished: Unfinished) -> tuple[How, Outcome | None]:
        """Make it ready to be played, or only graded; its outcome if it cannot be."""
        if unfinished.cancelled:
            played.stop.reason = "cancelled"
            return "cancelled", stopped(played)
        try:
            if unfinished.left is None:  # what was asked for before may be forbidden now; grading calls nobody
                self._admission.check(played.start)
            played.request = self._admission.request(played.start)
            if unfinished.left is not None:
                left = from_record(json.loads(unfinished.left), played.request.row)
                played.left = replace(left, request=played.request)
        except (Refused, LookupError, TypeError, ValueError, AttributeError) as error:
            log.error("rollout %s, accepted before the restart, no longer fits: %s", played.name, error)
            return "failed", restarted(played, f"server restarted, and cannot play it any more: {error}")
        if self._on_restart == "fail":
            return "failed", restarted(played, "server restarted")
        if played.left is not None:
            return "regraded", None
        if "time" in played.start.limits:  # the controller's own deadline goes on while the server is away
            played.admitted -= max(0.0, time() - unfinished.accepted.accepted_at)
        played.until = self._admission.until(played.request, played.admitted)
        return "replayed", None
