"""`open_spans`: tracing, when it is switched on; until then nothing of opentelemetry is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.telemetry.tracing import Tracing, check_installed

if TYPE_CHECKING:
    from runner.telemetry.spans import Spans


def open_spans(tracing: Tracing) -> Spans:
    """What records spans. Raises ConfigFailure where opentelemetry is not installed, or a name is not known."""
    check_installed(tracing)
    from runner.telemetry.span_export import exporter_of, propagator_of
    from runner.telemetry.spans import Spans

    return Spans(tracing, exporter_of(tracing), propagator_of(tracing.propagators))
