"""Where spans go, and in which headers a trace travels. Imported only when tracing is on.

Spans are sent by opentelemetry's own thread from a bounded queue: a collector that is down costs spans, never time.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Sequence

from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.b3 import B3MultiFormat
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from runner.records.failure import ConfigFailure
from runner.telemetry.tracing import Tracing

POST_TIME = 5
"""Seconds for one post to a collector, its retries included."""

OTLP = "http://localhost:4318/v1/traces"
ZIPKIN = "http://localhost:9411/api/v2/spans"

_PROPAGATORS: dict[str, type[TextMapPropagator]] = {
    "tracecontext": TraceContextTextMapPropagator,
    "baggage": W3CBaggagePropagator,
    "b3": B3MultiFormat,
}
_TALKATIVE = (
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace",
    "opentelemetry.sdk.trace.export",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.zipkin.json",
)


def exporter_of(tracing: Tracing) -> SpanExporter | None:
    """The exporter, not yet connected; None for "none". Raises ConfigFailure for a name or an address that is none."""
    if tracing.exporter == "none":
        return None
    if tracing.exporter == "console":
        return ConsoleSpanExporter(out=sys.stderr)
    if tracing.endpoint is not None and not tracing.endpoint.startswith(("http://", "https://")):
        raise ConfigFailure(
            f"the trace endpoint {tracing.endpoint!r} does not begin with http:// or https://", kind="bad_endpoint"
        )
    if tracing.exporter == "zipkin":
        from opentelemetry.exporter.zipkin.json import ZipkinExporter

        return ZipkinExporter(endpoint=tracing.endpoint or ZIPKIN, timeout=POST_TIME)
    if tracing.exporter in ("otlp", "jaeger"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(endpoint=_with_path(tracing.endpoint or OTLP), timeout=POST_TIME)
    raise ConfigFailure(f"no trace exporter is called {tracing.exporter!r}", kind="bad_exporter")


def _with_path(endpoint: str) -> str:
    """A collector's address as the URL that takes spans over HTTP."""
    rest = endpoint.split("://", 1)[1]
    return endpoint if "/" in rest.rstrip("/") else f"{endpoint.rstrip('/')}/v1/traces"


def propagator_of(names: Sequence[str]) -> TextMapPropagator:
    """The headers of all the named propagators. Raises ConfigFailure for a name that is none."""
    unknown = [name for name in names if name not in _PROPAGATORS]
    if unknown:
        there = ", ".join(_PROPAGATORS)
        raise ConfigFailure(f"no trace propagator is called {unknown[0]!r}; there are {there}", kind="bad_propagator")
    return CompositePropagator([_PROPAGATORS[name]() for name in names])


class Export:
    """Sends the spans of `provider` until `close`; what opentelemetry has to say about it is let through rarely."""

    def __init__(self, provider: TracerProvider, exporter: SpanExporter | None) -> None:
        self._provider = provider
        self._calm = Seldom()
        self._closed = False
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(self._calm)
        if exporter is not None:
            provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=8192, schedule_delay_millis=1000))

    def close(self, wait: float) -> None:
        """Send what is left, for `wait` seconds at most. Idempotent."""
        if self._closed:
            return
        self._closed = True
        ending = threading.Thread(target=self._provider.shutdown, name="span-flush", daemon=True)
        ending.start()
        ending.join(wait)
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(self._calm)


class Seldom(logging.Filter):
    """Lets one record through in `seconds`, without the traceback of a connection that was refused."""

    def __init__(self, seconds: float = 60.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._last = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        if record.exc_info and record.exc_info[1] is not None:
            record.msg, record.args = f"{record.getMessage()} {record.exc_info[1]}", ()
            record.exc_info = record.exc_text = None
        return True
