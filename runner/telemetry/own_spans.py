"""`Tracer`: spans that a user's own code makes. Imported only when tracing was configured, see `tracing`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span

from runner.telemetry.span_export import Export, exporter_of, propagator_of
from runner.telemetry.tracing import Tracing


class Tracer:
    """Makes spans and sends them as `tracing` says. Raises ConfigFailure for an endpoint that is none."""

    def __init__(self, tracing: Tracing) -> None:
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(tracing.sample_rate)),
            resource=Resource.create({SERVICE_NAME: tracing.service_name}),
            shutdown_on_exit=True,
        )
        self._export = Export(self._provider, exporter_of(tracing))
        self._tracer = self._provider.get_tracer("osmosis-run")
        self._propagator = propagator_of(tracing.propagators)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
        """A span for as long as the block; an exception is noted on it and goes on."""
        with self._tracer.start_as_current_span(name, attributes=dict(attributes)) as span:
            yield span

    def inject(self, carrier: dict[str, str]) -> dict[str, str]:
        """Put the current trace into `carrier`, headers for whom is asked next."""
        self._propagator.inject(carrier)
        return carrier

    def extract(self, carrier: Mapping[str, str]) -> Context:
        """The trace that `carrier`, the headers of a request, goes on."""
        return self._propagator.extract({name.lower(): value for name, value in carrier.items()}, Context())

    def close(self) -> None:
        """Send what is left."""
        self._export.close(5.0)
