"""`Metrics`: what a server did and does, counted for Prometheus. Its names are those of the protocol.

It belongs to the thread of the event loop: whoever counts elsewhere has it told there. Counting one rollout costs
microseconds (`tallies.py`); the exposition is made when it is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from platform import python_version
from types import MappingProxyType
from typing import Any, TypeVar

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
from runner.telemetry.exposition import Family, exposition
from runner.telemetry.label_values import LabelValues
from runner.telemetry.loop_lag import LoopLag
from runner.telemetry.tallies import About, Labels, Spread, Tally

ROLLOUT = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
MODEL = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
TOOL = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
HTTP = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LAG = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
COMMIT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)

F = TypeVar("F", Tally, Spread)

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_ALONE: Labels = ()
"""The labels of a family that has none."""
_SUCCESS: Labels = ("success",)
_PROMPT: Labels = ("prompt",)
_COMPLETION: Labels = ("completion",)


class Metrics:
    """A `Listener` that counts rollouts, and methods for what is no event.

    `prefix` begins every name. `agent_loop` names the workflow; with `default_labels` it is a label of the rollout
    metrics. `tools` are the names the file declares: any other name a model makes up counts as "unknown".
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
        self._prefix = prefix
        self._loop = {"agent_loop": agent_loop} if default_labels else {}
        self._tool_name = LabelValues(tools, rest="unknown")
        self._reason, self._error, self._grader = LabelValues(), LabelValues(), LabelValues()
        self._endpoint = LabelValues(rest="unmatched")
        self._method = LabelValues(_METHODS, rest="OTHER")
        self._began: dict[str, float] = {}
        self._watched: asyncio.AbstractEventLoop | None = None
        self._families: list[Family] = []
        self._rollouts()
        self._inside()
        self._server()
        self._gauge("service_info", "What serves", "version", "python_version")[version, python_version()] = 1
        self.lag = LoopLag(self._loop_lag[_ALONE].add)
        self.hears: Mapping[type[Event], Callable[[Any], None]] = {
            RolloutStarted: self._started,
            ModelAnswered: self._answered,
            ModelFailed: self._model_failed,
            ToolEnded: self._tool_ended,
            Graded: self._graded,
            RolloutEnded: self._ended,
        }

    def __call__(self, event: Event) -> None:
        hear = self.hears.get(type(event))
        if hear is not None:
            hear(event)

    # What is no event

    def http(self, method: str, endpoint: str, status: int, seconds: float) -> None:
        """A request was answered. `endpoint` is the pattern of the route, "" when no route fits: never the raw path."""
        method, endpoint = self._method[method], self._endpoint[endpoint]
        self._http_requests[method, endpoint, str(status)] += 1
        self._http_duration[method, endpoint].add(seconds)

    def start(self, dialect: str, status: int) -> None:
        """A start was admitted or refused with the HTTP status `status`."""
        self._starts[dialect, str(status)] += 1

    def recovered(self, how: str, count: int = 1) -> None:
        """After a restart: `how` is "replayed", "regraded", "failed", or "cancelled"."""
        self._recovered[how,] += count

    def cancelled(self, phase: str) -> None:
        """The controller cancelled a rollout that was "queued", "running", or "grading"."""
        self._cancelled[phase,] += 1

    def callback(self, channel: str, result: str, seconds: float) -> None:
        """A callback was posted: `result` is "acknowledged", "retried", "unreachable", or "abandoned"."""
        self._posts[channel, result] += 1
        self._post_duration[channel,].add(seconds)

    def committed(self, store: str, seconds: float) -> None:
        """A commit of `store` ("outbox") reached the disk after `seconds`."""
        self._commits[store,].add(seconds)

    def load(self, *, queued: int, running: int, grading: int, max_concurrent: int, max_queue: int) -> None:
        """What the engine is busy with. Told before each exposition, not at each change."""
        self._queue_depth[_ALONE] = queued
        self._queue_max[_ALONE] = max_queue
        self._slots[_ALONE] = running
        self._slots_max[_ALONE] = max_concurrent
        self._grading[_ALONE] = grading

    def outbox(self, counts: Mapping[str, int], oldest: float) -> None:
        """`Outbox.counts()`, and the age in seconds of the oldest owed callback. Told before each exposition."""
        for phase, count in counts.items():
            self._outbox[phase,] = count
        self._oldest[_ALONE] = oldest

    async def watch_loop(self, interval: float = 0.1) -> None:
        """Sample the lag of the event loop every `interval` seconds, until cancelled. Its tasks are counted, too."""
        self._watched = asyncio.get_running_loop()
        await self.lag.watch(interval)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The exposition and its content type: OpenMetrics when the Accept header `accept` asks for it."""
        self._lag_p99[_ALONE] = self.lag.p99
        if self._watched is not None:
            self._tasks[_ALONE] = len(asyncio.all_tasks(self._watched))
        return exposition(self._prefix, self._families, accept)

    # Events

    def _started(self, event: RolloutStarted) -> None:
        self._began[event.rollout_id] = event.at
        self._active[_ALONE] += 1
        self._started_total[_ALONE] += 1

    def _answered(self, event: ModelAnswered) -> None:
        completion: Completion = event.completion
        self._model_requests[_SUCCESS] += 1
        self._model_duration[_SUCCESS].add(completion.latency)
        if completion.retries:
            self._model_retries[_ALONE] += completion.retries
        if completion.usage is not None:
            self._tokens[_PROMPT] += completion.usage.input_tokens
            self._tokens[_COMPLETION] += completion.usage.output_tokens

    def _model_failed(self, event: ModelFailed) -> None:
        status = "timeout" if _timed_out(event) else "error"
        self._model_requests[status,] += 1
        self._model_duration[status,].add(event.seconds)
        self._model_retries[_ALONE] += event.retries

    def _tool_ended(self, event: ToolEnded) -> None:
        name, status = self._tool_name[event.call.name], event.status
        self._tool_calls[name, status] += 1
        self._tool_duration[name,].add(event.seconds)
        if status != "ok":
            self._tool_errors[name, status] += 1

    def _graded(self, event: Graded) -> None:
        name = self._grader[event.grader]
        self._grades[name, "scored" if event.value is not None else "failed"] += 1
        self._grade_duration[name,].add(event.seconds)

    def _ended(self, event: RolloutEnded) -> None:
        self._active[_ALONE] -= 1
        began = self._began.pop(event.rollout_id, None)
        status = event.status
        self._completed[status, self._reason[event.stop_reason]] += 1
        if began is not None:
            self._rollout_duration[status,].add(event.at - began)
        if status == "failed":
            self._failed[self._error[event.stop_reason],] += 1

    # Families

    def _rollouts(self) -> None:
        loop = self._loop
        self._started_total = self._counter("rollouts_started_total", "Rollouts that began", fixed=loop)
        self._completed = self._counter(
            "rollouts_completed_total", "Rollouts that ended, however", "status", "finish_reason", fixed=loop
        )
        self._failed = self._counter("rollouts_failed_total", "Rollouts that failed", "error_type", fixed=loop)
        self._active = self._gauge("rollouts_active", "Rollouts being played or graded now", fixed=loop)
        self._rollout_duration = self._histogram(
            "rollout_duration_seconds", "From the begin of a rollout to its end", ROLLOUT, "status", fixed=loop
        )
        self._cancelled = self._counter("rollouts_cancelled_total", "Cancelled by the controller", "phase")
        self._recovered = self._counter("rollouts_recovered_total", "Unfinished ones found at a start", "how")

    def _inside(self) -> None:
        self._model_requests = self._counter("llm_requests_total", "Model calls", "status", always=(_SUCCESS,))
        self._model_duration = self._histogram(
            "llm_request_duration_seconds", "How long model calls took", MODEL, "status", always=(_SUCCESS,)
        )
        self._model_retries = self._counter("llm_retries_total", "Tries of model calls beyond the first")
        self._tokens = self._counter(
            "llm_tokens_total", "Tokens as endpoints counted them", "type", always=(_PROMPT, _COMPLETION)
        )
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
        self._tasks = self._gauge("event_loop_tasks", "Tasks of the event loop that have not ended")
        self._lag_p99 = self._gauge("event_loop_lag_p99_seconds", "The 99th percentile of the last ten minutes")

    def _counter(self, name: str, told: str, *labels: str, **more: Any) -> Tally:
        return self._kept(Tally("counter", *_about(name, told, labels, **more)))

    def _gauge(self, name: str, told: str, *labels: str, **more: Any) -> Tally:
        return self._kept(Tally("gauge", *_about(name, told, labels, **more)))

    def _histogram(self, name: str, told: str, bounds: tuple[float, ...], *labels: str, **more: Any) -> Spread:
        return self._kept(Spread(bounds, *_about(name, told, labels, **more)))

    def _kept(self, family: F) -> F:
        self._families.append(family)
        return family


def _about(
    name: str, told: str, labels: Labels, fixed: Mapping[str, str] = MappingProxyType({}), always: Sequence[Labels] = ()
) -> tuple[About, *tuple[Labels, ...]]:
    """What a family is, and what of it is told from the start: of one without labels, its only sample."""
    return About(name, told, labels, fixed), *(always if labels else (_ALONE,))


def _timed_out(event: ModelFailed) -> bool:
    """Whether time ran out: failures of models have no kind of their own for that, but their words are ours."""
    failure = event.failure
    return "timeout" in failure.kind or "no answer within" in failure.message
