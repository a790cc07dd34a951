"""`Tracing`: how rollouts are traced, and whether what that needs is installed. Imports nothing of opentelemetry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from runner.records.failure import ConfigFailure

Exporter = Literal["otlp", "jaeger", "zipkin", "console", "none"]

INSTALL = "pip install 'osmosis-run[otel]'"

_NEEDED = ("opentelemetry.sdk", "opentelemetry.propagators.b3")
_OF_EXPORTER = {
    "otlp": "opentelemetry.exporter.otlp.proto.http",
    "jaeger": "opentelemetry.exporter.otlp.proto.http",
    "zipkin": "opentelemetry.exporter.zipkin.json",
}


@dataclass(frozen=True, slots=True)
class Tracing:
    """`[serve.trace]` as plain values. `sample_rate` is the share of traces begun here that are recorded, 0 to 1.

    jaeger is spoken to over OTLP, which it understands; `endpoint` None is the exporter's usual one on this machine.
    """

    service_name: str = "osmosis-rollout"
    exporter: Exporter = "otlp"
    endpoint: str | None = None
    sample_rate: float = 1.0
    propagators: Sequence[str] = ("tracecontext", "b3")
    agent_loop: str = ""


def check_installed(tracing: Tracing) -> None:
    """Raises ConfigFailure where something of opentelemetry is missing."""
    missing = [name for name in (*_NEEDED, _OF_EXPORTER.get(tracing.exporter, "")) if name and not _installed(name)]
    if missing:
        raise ConfigFailure(f"tracing needs {missing[0]}, which is not installed: {INSTALL}", kind="otel_missing")


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
