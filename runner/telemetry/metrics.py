"""`Metrics`: what a server did and does, counted for Prometheus. The only room of prometheus-client.

Every instance has a registry of its own, so that two servers in one process do not collide. The children of labels
are looked up once and kept: counting one rollout costs microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from platform import python_version
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from runner.records.completion import Completion
from runner.records.event import (
    Event,
    Graded,
    ModelAnswered,
    ModelFailed,
    RolloutEnded,
    RolloutStarted,
    ToolEnded,
)
from runner.telemetry.label_values import LabelValues
from runner.telemetry.loop_lag import LoopLag

ROLLOUT = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
MODEL = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
TOOL = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
HTTP = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LAG = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
COMMIT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


class Metrics:
    """A `Listener` that counts rollouts, and methods for what is no event.

    `prefix` begins every name. `agent_loop` names the workflow; with `default_labels` it is a label of the rollout
    metrics. `tools` are the names the file declares: any other name a model makes up counts as "unknown".
    Safe to call from any thread.
    """

    def __init__(
        self,
        prefix: str = "osmosis_rollout",
        *,
        agent_loop: str = "",
        default_labels: bool = True,
        version: str = "",
        tools: Collection[str] | None = None,
    ) -> None:
        self._registry = CollectorRegistry()
        self._prefix = prefix
        self._loop_labels: dict[str, str] = {"agent_loop": agent_loop} if default_labels else {}
        self._tool_name = LabelValues(tools, rest="unknown")
        self._reason, self._error, self._grader = LabelValues(), LabelValues(), LabelValues()
        self._endpoint = LabelValues(rest="unmatched")
        self._method = LabelValues(_METHODS, rest="OTHER")
        self._began: dict[str, float] = {}
        self._rollouts()
        self._inside()
        self._server()
        self._children: dict[tuple[Any, ...], Any] = {}
        self._gauge("service_info", "What serves", "version", "python_version").labels(version, python_version()).set(1)
        self.lag = LoopLag(self._loop_lag.observe)
        self._hears: dict[type[Event], Callable[[Any], None]] = {
            RolloutStarted: self._started,
            ModelAnswered: self._answered,
            ModelFailed: self._model_failed,
            ToolEnded: self._tool_ended,
            Graded: self._graded,
            RolloutEnded: self._ended,
        }

    def __call__(self, event: Event) -> None:
        hear = self._hears.get(type(event))
        if hear is not None:
            hear(event)

    # What is no event

    def http(self, method: str, endpoint: str, status: int, seconds: float) -> None:
        """A request was answered. `endpoint` is the pattern of the route, "" when no route fits: never the raw path."""
        method, endpoint = self._method(method), self._endpoint(endpoint)
        self._child(self._http_requests, method, endpoint, str(status)).inc()
        self._child(self._http_duration, method, endpoint).observe(seconds)

    def start(self, dialect: str, status: int) -> None:
        """A start was admitted or refused with the HTTP status `status`."""
        self._child(self._starts, dialect, str(status)).inc()

    def recovered(self, how: str, count: int = 1) -> None:
        """After a restart: `how` is "run", "graded", or "failed"."""
        self._child(self._recovered, how).inc(count)

    def cancelled(self, phase: str) -> None:
        """The controller cancelled a rollout that was "queued", "running", or "grading"."""
        self._child(self._cancelled, phase).inc()

    def callback(self, channel: str, result: str, seconds: float) -> None:
        """A callback was posted: `result` is "acknowledged", "retried", "unreachable", or "abandoned"."""
        self._child(self._posts, channel, result).inc()
        self._child(self._post_duration, channel).observe(seconds)

    def committed(self, store: str, seconds: float) -> None:
        """A commit of `store` ("outbox", "journal") reached the disk after `seconds`."""
        self._child(self._commits, store).observe(seconds)

    def load(self, *, queued: int, running: int, grading: int, max_concurrent: int, max_queue: int) -> None:
        """What the engine is busy with. Told before each exposition, not at each change."""
        self._queue_depth.set(queued)
        self._queue_max.set(max_queue)
        self._slots.set(running)
        self._slots_max.set(max_concurrent)
        self._grading.set(grading)

    def outbox(self, counts: Mapping[str, int], oldest: float) -> None:
        """`Outbox.counts()`, and the age in seconds of the oldest owed callback. Told before each exposition."""
        for phase, count in counts.items():
            self._child(self._outbox, phase).set(count)
        self._oldest.set(oldest)

    async def watch_loop(self, interval: float = 0.1) -> None:
        """Sample the lag of the event loop every `interval` seconds, until cancelled."""
        await self.lag.watch(interval)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The exposition and its content type: OpenMetrics when the Accept header `accept` asks for it."""
        self._lag_p99.set(self.lag.p99)
        encode, content_type = choose_encoder(accept)
        return encode(_Lean(self._registry)), content_type

    # Events

    def _started(self, event: RolloutStarted) -> None:
        self._began[event.rollout_id] = event.at
        self._active.inc()
        self._started_total.inc()

    def _answered(self, event: ModelAnswered) -> None:
        completion: Completion = event.completion
        self._model_success.inc()
        self._model_success_time.observe(completion.latency)
        if completion.retries:
            self._model_retries.inc(completion.retries)
        if completion.usage is not None:
            self._prompt_tokens.inc(completion.usage.input_tokens)
            self._completion_tokens.inc(completion.usage.output_tokens)

    def _model_failed(self, event: ModelFailed) -> None:
        status = "timeout" if _timed_out(event) else "error"
        self._child(self._model_requests, status).inc()
        self._child(self._model_duration, status).observe(event.seconds)
        if event.retries:
            self._model_retries.inc(event.retries)

    def _tool_ended(self, event: ToolEnded) -> None:
        name, status = self._tool_name(event.call.name), event.status
        self._child(self._tool_calls, name, status).inc()
        self._child(self._tool_duration, name).observe(event.seconds)
        if status != "ok":
            self._child(self._tool_errors, name, status).inc()

    def _graded(self, event: Graded) -> None:
        name = self._grader(event.grader)
        self._child(self._grades, name, "scored" if event.value is not None else "failed").inc()
        self._child(self._grade_duration, name).observe(event.seconds)

    def _ended(self, event: RolloutEnded) -> None:
        self._active.dec()
        began = self._began.pop(event.rollout_id, None)
        status = event.status
        self._child(self._completed, status, self._reason(event.stop_reason)).inc()
        if began is not None:
            self._child(self._rollout_duration, status).observe(event.at - began)
        if status == "failed":
            self._child(self._failed, self._error(event.stop_reason)).inc()

    # Instruments

    def _rollouts(self) -> None:
        loop = tuple(self._loop_labels)
        self._started_total = self._own(self._counter("rollouts_started_total", "Rollouts that began", *loop))
        self._completed = self._counter(
            "rollouts_completed_total", "Rollouts that ended, however", *loop, "status", "finish_reason"
        )
        self._failed = self._counter("rollouts_failed_total", "Rollouts that failed", *loop, "error_type")
        self._active = self._own(self._gauge("rollouts_active", "Rollouts being played or graded now", *loop))
        self._rollout_duration = self._histogram(
            "rollout_duration_seconds", "From the begin of a rollout to its end", ROLLOUT, *loop, "status"
        )
        self._cancelled = self._counter("rollouts_cancelled_total", "Cancelled by the controller", "phase")
        self._recovered = self._counter("rollouts_recovered_total", "Unfinished ones found at a start", "how")

    def _inside(self) -> None:
        self._model_requests = self._counter("llm_requests_total", "Model calls", "status")
        self._model_duration = self._histogram(
            "llm_request_duration_seconds", "How long model calls took", MODEL, "status"
        )
        self._model_retries = self._counter("llm_retries_total", "Tries of model calls beyond the first")
        self._model_success = self._model_requests.labels("success")
        self._model_success_time = self._model_duration.labels("success")
        tokens = self._counter("llm_tokens_total", "Tokens as endpoints counted them", "type")
        self._prompt_tokens, self._completion_tokens = tokens.labels("prompt"), tokens.labels("completion")
        self._tool_calls = self._counter("tool_calls_total", "Tool calls", "tool_name", "status")
        self._tool_duration = self._histogram(
            "tool_call_duration_seconds", "How long tool calls took", TOOL, "tool_name"
        )
        self._tool_errors = self._counter("tool_errors_total", "Tool calls gone wrong", "tool_name", "error_type")
        self._grades = self._counter("grades_total", "Answers of graders", "grader", "status")
        self._grade_duration = self._histogram("grade_duration_seconds", "How long graders took", MODEL, "grader")

    def _server(self) -> None:
        self._http_requests = self._counter(
            "http_requests_total", "Requests answered", "method", "endpoint", "status_code"
        )
        self._http_duration = self._histogram(
            "http_request_duration_seconds", "Requests answered", HTTP, "method", "endpoint"
        )
        self._starts = self._counter("starts_total", "Starts admitted or refused", "dialect", "status_code")
        self._posts = self._counter("callback_posts_total", "Posts of callbacks", "channel", "result")
        self._post_duration = self._histogram(
            "callback_post_duration_seconds", "How long posts of callbacks took", MODEL, "channel"
        )
        self._commits = self._histogram("commit_duration_seconds", "Commits until on disk", COMMIT, "store")
        self._queue_depth = self._gauge("queue_depth", "Rollouts that wait for a slot")
        self._queue_max = self._gauge("queue_max", "Rollouts that may wait for a slot")
        self._slots = self._gauge("slots_in_use", "Rollouts whose agent runs")
        self._slots_max = self._gauge("slots_max", "Rollouts whose agent may run at once")
        self._grading = self._gauge("rollouts_grading", "Rollouts whose agent ended and whose graders run")
        self._outbox = self._gauge("outbox_rollouts", "What the outbox holds, by phase", "phase")
        self._oldest = self._gauge("outbox_oldest_owed_seconds", "Age of the oldest callback not acknowledged")
        self._loop_lag = self._histogram("event_loop_lag_seconds", "How late the event loop runs what is due", LAG)
        self._lag_p99 = self._gauge("event_loop_lag_p99_seconds", "The 99th percentile of the last ten minutes")

    def _counter(self, name: str, told: str, *labels: str) -> Counter:
        return Counter(f"{self._prefix}_{name}", told, labels, registry=self._registry)

    def _gauge(self, name: str, told: str, *labels: str) -> Gauge:
        return Gauge(f"{self._prefix}_{name}", told, labels, registry=self._registry)

    def _histogram(self, name: str, told: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"{self._prefix}_{name}", told, labels, buckets=buckets, registry=self._registry)

    def _own(self, metric: Any) -> Any:
        """The one child of a metric that has no labels but those of this instance."""
        return metric.labels(**self._loop_labels) if self._loop_labels else metric

    def _child(self, metric: Any, *values: str) -> Any:
        """The child of `metric` for these values, the instance's own labels put before them where it has them."""
        key = metric, *values
        child = self._children.get(key)
        if child is None:
            looped = metric in (self._completed, self._failed, self._rollout_duration)
            child = self._children[key] = metric.labels(*(self._loop_labels.values() if looped else ()), *values)
        return child


def _timed_out(event: ModelFailed) -> bool:
    """Whether time ran out: failures of models have no kind of their own for that, but their words are ours."""
    failure = event.failure
    return "timeout" in failure.kind or "no answer within" in failure.message


class _Lean(Collector):
    """A registry without the `_created` series, which double the exposition and merge badly."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Any]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
