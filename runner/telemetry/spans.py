"""`Spans`: a rollout as a trace, its model calls and tool calls as spans, its grades as events.

What was said is never recorded, only that it was: names, counts, tokens, and kinds of errors. Spans begin and end when
an event is heard. Imported only when tracing is on, see `tracing`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context

from runner.records.event import (
    AgentEnded,
    Event,
    Graded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    RolloutEnded,
    RolloutStarted,
    ToolEnded,
    ToolStarted,
)
from runner.telemetry import span_names as names
from runner.telemetry.span_export import Export
from runner.telemetry.tracing import Tracing

MOST_KNOWN = 65_536
"""Rollouts whose place in a trace is remembered at most; the oldest is forgotten, and its callbacks carry no trace."""


@dataclass(slots=True)
class _Rollout:
    """The place of a rollout in a trace: where it hangs, and what is open."""

    parent: Context
    root: Span | None = None
    context: Context | None = None
    open: dict[tuple[str, Any], Span] = field(default_factory=dict)
    model: str = ""


class Spans:
    """A `Listener` that records spans, and methods for what is no event. Open it with `tracing.open_spans`."""

    def __init__(self, tracing: Tracing, exporter: SpanExporter | None, propagator: TextMapPropagator) -> None:
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(tracing.sample_rate)),
            resource=Resource.create({SERVICE_NAME: tracing.service_name}),
            shutdown_on_exit=False,
        )
        self._export = Export(self._provider, exporter)
        self._tracer = self._provider.get_tracer("osmosis-run")
        self._propagator = propagator
        self._agent_loop = tracing.agent_loop
        self._rollouts: OrderedDict[str, _Rollout] = OrderedDict()
        self._hears = {
            RolloutStarted: self._started,
            ModelCalled: self._model_called,
            ModelAnswered: self._answered,
            ModelFailed: self._model_failed,
            ToolStarted: self._tool_started,
            ToolEnded: self._tool_ended,
            AgentEnded: self._agent_ended,
            Graded: self._graded,
            RolloutEnded: self._ended,
        }

    def __call__(self, event: Event) -> None:
        hear: Any = self._hears.get(type(event))
        if hear is None:
            return
        rollout = self._rollouts.get(event.rollout_id)
        if type(event) is RolloutStarted:
            hear(event, rollout or self._remember(event.rollout_id, _Rollout(Context())))
        elif rollout is not None and rollout.root is not None:
            hear(event, rollout)

    def accepted(self, rollout_id: str, headers: Mapping[str, str], *, model: str = "", **facts: Any) -> None:
        """A start was accepted: its rollout goes on in the trace that the request's `headers` name, if they do.

        `facts` are attributes of the span `rollout.init`: duplicate, tool_count, dialect.
        """
        caller = self._propagator.extract({name.lower(): value for name, value in headers.items()}, Context())
        facts = {"rollout_id": rollout_id, "agent_loop": self._agent_loop, **facts}
        init = self._tracer.start_span(names.INIT, caller, SpanKind.SERVER, facts)
        init.end()
        self._remember(rollout_id, _Rollout(set_span_in_context(init, caller), model=model))

    def headers_for(self, rollout_id: str) -> Mapping[str, str]:
        """The headers that carry the rollout's trace to whom it asks next; none for a rollout that is not known."""
        rollout = self._rollouts.get(rollout_id)
        if rollout is None:
            return {}
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._innermost(rollout))
        return carrier

    def ids(self, rollout_id: str) -> Mapping[str, str]:
        """`trace_id` and `span_id` of the rollout, in hex, for the log's context; empty when it is not being played."""
        rollout = self._rollouts.get(rollout_id)
        if rollout is None or rollout.root is None:
            return {}
        where = rollout.root.get_span_context()
        return {"trace_id": f"{where.trace_id:032x}", "span_id": f"{where.span_id:016x}"}

    def posted(self, rollout_id: str, channel: str, status: str, seconds: float, **facts: Any) -> None:
        """A callback was posted, which took `seconds` until now. `facts`: attempt, ack (whether it counts as taken)."""
        rollout = self._rollouts.get(rollout_id)
        parent = Context() if rollout is None else rollout.context or rollout.parent
        facts = {"rollout_id": rollout_id, "channel": channel, "status": status, **facts}
        self._past(names.LLM_COMPLETE, parent, SpanKind.CLIENT, seconds, facts)

    def http(self, method: str, route: str, status: int, seconds: float, **facts: Any) -> None:
        """A request was answered, which took `seconds` until now. `facts`: request_id, error."""
        facts = {"http.method": method, "http.route": route, "http.url": route, "http.status_code": status, **facts}
        self._past(names.HTTP, Context(), SpanKind.SERVER, seconds, facts)

    def forget(self, rollout_id: str) -> None:
        """Nothing more will come of this rollout: it is settled and told, or was cancelled before it began."""
        rollout = self._rollouts.pop(rollout_id, None)
        if rollout is not None and rollout.root is not None and rollout.root.is_recording():  # not ended yet
            self._leave(rollout)
            rollout.root.end()

    def close(self, wait: float = 5.0) -> None:
        """End what is open and send what is left, for `wait` seconds at most. Idempotent."""
        for rollout_id in list(self._rollouts):
            self.forget(rollout_id)
        self._export.close(wait)

    # Events

    def _started(self, event: RolloutStarted, rollout: _Rollout) -> None:
        facts: dict[str, Any] = {
            names.OPERATION: names.INVOKE_WORKFLOW,
            names.OLD_NAME: names.RUN,
            names.WORKFLOW_NAME: self._agent_loop,
            names.CONVERSATION: event.rollout_id,
            "rollout_id": event.rollout_id,
            "row_id": event.row_id,
            "attempt": event.attempt,
        }
        name = f"{names.INVOKE_WORKFLOW} {self._agent_loop}".rstrip()
        rollout.root = self._tracer.start_span(name, rollout.parent, SpanKind.INTERNAL, facts)
        rollout.context = set_span_in_context(rollout.root, rollout.parent)

    def _model_called(self, event: ModelCalled, rollout: _Rollout) -> None:
        facts: dict[str, Any] = {
            names.OPERATION: names.CHAT,
            names.OLD_NAME: names.LLM_CHAT,
            names.PROVIDER: "openai",
            names.CONVERSATION: event.rollout_id,
            "rollout_id": event.rollout_id,
            "turn": event.turn,
            "message_count": len(event.messages),
        }
        if rollout.model:
            facts[names.REQUEST_MODEL] = rollout.model
        name = f"{names.CHAT} {rollout.model}".rstrip()
        rollout.open["chat", event.turn] = self._tracer.start_span(name, rollout.context, SpanKind.CLIENT, facts)

    def _answered(self, event: ModelAnswered, rollout: _Rollout) -> None:
        span = rollout.open.pop(("chat", event.turn), None)
        if span is None or not span.is_recording():
            return _end(span)
        done = event.completion
        facts: dict[str, Any] = {"status": "success", "attempt": done.retries + 1}
        if done.model:
            facts[names.RESPONSE_MODEL] = done.model
            if not rollout.model:
                span.update_name(f"{names.CHAT} {done.model}")
        if done.response_id:
            facts[names.RESPONSE_ID] = done.response_id
        if done.finish_reason:
            facts[names.FINISH_REASONS] = (done.finish_reason,)
        if done.usage is not None:
            facts[names.INPUT_TOKENS] = facts["prompt_tokens"] = done.usage.input_tokens
            facts[names.OUTPUT_TOKENS] = facts["completion_tokens"] = done.usage.output_tokens
        span.set_attributes(facts)
        return span.end()

    def _model_failed(self, event: ModelFailed, rollout: _Rollout) -> None:
        facts = {"status": event.failure.kind, "attempt": event.retries + 1}
        _end(rollout.open.pop(("chat", event.turn), None), facts, event.failure.kind)

    def _tool_started(self, event: ToolStarted, rollout: _Rollout) -> None:
        facts: dict[str, Any] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.OLD_NAME: names.TOOL,
            names.TOOL_NAME: event.call.name,
            names.TOOL_CALL: event.call.id,
            names.TOOL_TYPE: "function",
            "rollout_id": event.rollout_id,
            "turn": event.turn,
        }
        name = f"{names.EXECUTE_TOOL} {event.call.name}"
        span = self._tracer.start_span(name, rollout.context, SpanKind.INTERNAL, facts)
        rollout.open["tool", event.call] = span

    def _tool_ended(self, event: ToolEnded, rollout: _Rollout) -> None:
        span = rollout.open.pop(("tool", event.call), None)
        _end(span, {"status": event.status}, "" if event.status == "ok" else event.status)

    def _agent_ended(self, event: AgentEnded, rollout: _Rollout) -> None:
        if rollout.root is not None:
            rollout.root.add_event("agent_ended", {"finish_reason": event.left.stop_reason})

    def _graded(self, event: Graded, rollout: _Rollout) -> None:
        facts: dict[str, Any] = {names.EVALUATION_NAME: event.grader, "seconds": event.seconds}
        if event.value is None:
            facts[names.ERROR_TYPE] = "grader_failed"
        else:
            facts[names.EVALUATION_SCORE] = event.value
        if rollout.root is not None:
            rollout.root.add_event(names.EVALUATION, facts)

    def _ended(self, event: RolloutEnded, rollout: _Rollout) -> None:
        """The place in the trace stays known until `forget`: its callbacks still have to find it."""
        self._leave(rollout)
        facts: dict[str, Any] = {"status": event.status, "finish_reason": event.stop_reason}
        if event.reward is not None:
            facts["reward"] = event.reward
        wrong = event.stop_reason if event.status == "failed" else ""
        if wrong and rollout.root is not None:
            facts["error"] = wrong
            rollout.root.add_event(names.ERROR, {names.ERROR_TYPE: wrong})
        _end(rollout.root, facts, wrong)

    # Places

    def _remember(self, rollout_id: str, rollout: _Rollout) -> _Rollout:
        self._rollouts[rollout_id] = rollout
        if len(self._rollouts) > MOST_KNOWN:
            self.forget(next(iter(self._rollouts)))
        return rollout

    def _innermost(self, rollout: _Rollout) -> Context:
        """Where the rollout is now: its last model call that is open, else its root, else where it hangs."""
        chats = [span for (kind, _), span in rollout.open.items() if kind == "chat"]
        if chats:
            return set_span_in_context(chats[-1], rollout.context)
        return rollout.context or rollout.parent

    def _leave(self, rollout: _Rollout) -> None:
        """Close what was under way when the rollout ended."""
        for span in rollout.open.values():
            _end(span, {"status": "abandoned"}, "abandoned")
        rollout.open.clear()

    def _past(self, name: str, parent: Context, kind: SpanKind, seconds: float, facts: Mapping[str, Any]) -> None:
        now = time.time_ns()
        span = self._tracer.start_span(name, parent, kind, facts, start_time=now - int(seconds * 1e9))
        span.end(now)


def _end(span: Span | None, facts: Mapping[str, Any] | None = None, wrong: str = "") -> None:
    if span is None:
        return
    if facts:
        span.set_attributes(facts)
    if wrong:
        span.set_attribute(names.ERROR_TYPE, wrong)
        span.set_status(StatusCode.ERROR, wrong)
    span.end()
