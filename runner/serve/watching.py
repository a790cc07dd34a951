"""`Watching`: all that looks on while a worker serves: log, metrics, spans, event logs, archive. It never acts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from runner.build.plan import Plan
from runner.records.event import Listener
from runner.records.rollout import Outcome
from runner.serve.admission import Headers
from runner.serve.archive.archiving import Archiving
from runner.serve.delivery.posting import Posted
from runner.serve.played import Played, label_of
from runner.serve.recovery import How
from runner.serve.tally import Tally
from runner.telemetry.event_log import EventLog
from runner.telemetry.listeners import listening
from runner.telemetry.open_spans import open_spans
from runner.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from runner.telemetry.metrics import Metrics
    from runner.telemetry.spans import Spans

log = logging.getLogger(__name__)


class Watching:
    """`events` is the folder of event logs, a log of its own, or None. Raises `ConfigFailure` (no tracing library).

    `listen` hears what happens inside rollouts; the other methods are told what happens around them.
    """

    def __init__(
        self, plan: Plan, events: Path | EventLog | None = None, version: str = "", archiving: Archiving | None = None
    ) -> None:
        section = plan.config.serve
        self.metrics = _metrics(plan, version) if section.metrics.enabled else None
        self._spans = _spans(plan) if section.trace.enabled else None
        self._archiving = archiving
        self._events = EventLog(events) if isinstance(events, Path) else events
        self._apart = section.dedupe == "run"
        self._level = logging.INFO if section.log.rollouts else logging.DEBUG
        self.tally = Tally()
        self.listen: Listener = listening(self.metrics, self._spans, self._events)

    @property
    def traces(self) -> bool:
        """Whether spans are made."""
        return self._spans is not None

    def traced(self, played: Played, headers: Headers) -> None:
        """A rollout is about to be accepted: it goes on in the trace that its request came with."""
        if self._spans is not None:
            found = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
            start = played.start
            self._spans.accepted(played.label, found, model=start.chat.model, dialect=start.dialect)

    def headers_for(self, label: str) -> Mapping[str, str]:
        """The headers that carry a rollout's trace on to the model."""
        return {} if self._spans is None else self._spans.headers_for(label)

    def committed(self, seconds: float) -> None:
        """What was accepted, ended and delivered lately is on disk."""
        if self.metrics is not None:
            self.metrics.committed("outbox", seconds)

    def started(self, dialect: str, status: int) -> None:
        """A start was answered."""
        if self.metrics is not None:
            self.metrics.start(dialect, status)

    def http(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        if self.metrics is not None:
            self.metrics.http(method, route, status, seconds)
        if self._spans is not None:
            self._spans.http(method, route, status, seconds)

    def posted(self, posted: Posted) -> None:
        """A callback was posted."""
        if posted.result == "abandoned":
            log.error("callback %s of rollout %s is given up: %s", posted.channel, posted.rollout_id, posted.problem)
        elif posted.result == "retry":
            log.info(
                "callback %s of rollout %s to %s, try %d: %s; again in %.1f s",
                posted.channel,
                posted.rollout_id,
                posted.origin,
                posted.number,
                posted.problem,
                posted.wait,
            )
        if self._archiving is not None:
            self._archiving.posted(posted)
        if self.metrics is not None:
            self.metrics.callback(posted.channel, _result(posted), posted.seconds)
        if self._spans is not None:
            taken = posted.result == "acknowledged"
            label = label_of(posted.rollout_id, posted.attempt_id) if self._apart else posted.rollout_id
            self._spans.posted(label, posted.channel, posted.result, posted.seconds, attempt=posted.number, ack=taken)

    def recovered(self, found: Mapping[How, int]) -> None:
        """Rollouts of an earlier process were taken up: how many went which way."""
        if self.metrics is not None:
            for how, count in found.items():
                self.metrics.recovered(how, count)

    def ended(self, played: Played, outcome: Outcome) -> None:
        """A verdict is stored."""
        self.tally.end(outcome)
        if self._archiving is not None:
            self._archiving.ended(played, outcome)
        if self.metrics is not None and outcome.status == "cancelled":
            self.metrics.cancelled(_phase(played, outcome))
        if log.isEnabledFor(self._level):
            reward = "no reward" if outcome.reward is None else f"reward {outcome.reward:g}"
            how = outcome.status, outcome.stop_reason, reward, monotonic() - played.admitted
            log.log(self._level, "rollout %s (%s) %s: %s, %s, %.2f s", played.name, played.dialect.name, *how)
        failure = outcome.failure
        if failure is None:
            return
        where = f" at {failure.where}" if failure.where else ""
        # A traceback helps whoever wrote the code; that of a model that does not answer is all ours.
        detail = f"\n{failure.detail}" if failure.detail and failure.boundary != "model" else ""
        what = f"{failure.boundary}/{failure.kind}: {failure.message}{where}{detail}"
        log.warning("rollout %s %s: %s", played.name, outcome.status, what)

    async def aclose(self) -> None:
        """Write out what waits, within seconds."""
        if self._events is not None:
            await asyncio.to_thread(self._events.close)
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)


def _metrics(plan: Plan, version: str) -> Metrics:
    from runner.telemetry.metrics import Metrics  # a tenth of a second to import

    section = plan.config.serve.metrics
    tools = [spec.name for spec in plan.offered]
    return Metrics(
        section.prefix, agent_loop=plan.name, default_labels=section.default_labels, version=version, tools=tools
    )


def _spans(plan: Plan) -> Spans:
    section = plan.config.serve.trace
    return open_spans(
        Tracing(
            section.service_name,
            section.exporter,
            section.endpoint,
            section.sample_rate,
            section.propagators,
            plan.name,
        )
    )


def _result(posted: Posted) -> str:
    if posted.result == "retry":
        return "unreachable" if posted.status is None else "retried"
    return posted.result


def _phase(played: Played, outcome: Outcome) -> str:
    """In which phase a rollout was cancelled: one that never began has no timing."""
    if played.left is not None:
        return "grading"
    return "running" if outcome.timing else "queued"
