"""`[serve.log]`, `[serve.metrics]` and `[serve.trace]`: how a server tells what it does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.config.quantity import Delay
from runner.config.section import Array, Section


class LogSection(Section):
    """What the server writes to stderr as it works."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least urgent line that is written."""
    format: Literal["console", "json", "plain"] = "console"
    """`console` for people, in colour on a terminal; `json` one object per line, for machines; `plain` the same words
    as `console` without colour."""
    rollouts: bool = False
    """Write a line at level info for each rollout that ends: its id, dialect, outcome, stop reason, reward and seconds.
    Default: only those that fail."""
    summary: Delay = 30.0
    """How often a line at level info says what was accepted and how much ended since the last one, where anything did;
    `"0s"` for never."""
    timestamp: bool = True
    """Whether each line says when. Turn it off where the collector stamps lines itself."""
    caller: bool = False
    """Whether each line says which module and line of code wrote it."""


class MetricsSection(Section):
    """Numbers for Prometheus."""

    enabled: bool = True
    """Whether numbers are kept at all."""
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z_:][A-Za-z0-9_:]*$")] = "osmosis_rollout"
    """What the name of each number begins with."""
    default_labels: bool = True
    """Whether each number carries the labels of the deployment: the workflow's name and the worker's index."""
    expose: bool = True
    """Whether `GET /metrics` answers. It asks for no key, as scrapers bring none."""


class TraceSection(Section):
    """OpenTelemetry spans. Needs the `otel` extra."""

    enabled: bool = False
    """Whether spans are made."""
    service_name: Annotated[str, Field(pattern=r"^\S.*$")] = "osmosis-rollout"
    """The `service.name` of the spans."""
    exporter: Literal["otlp", "jaeger", "zipkin", "console", "none"] = "otlp"
    """Where spans go. `jaeger` is OTLP under its other name, since Jaeger takes that; `console` is stderr; `none`
    only carries the caller's trace on to the chat endpoint."""
    endpoint: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = None
    """The exporter's URL. Default: `http://localhost:4318/v1/traces`, for Zipkin `http://localhost:9411/api/v2/spans`."""
    sample_rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The share of rollouts whose spans are kept, where the caller's trace has not decided already."""
    propagators: Array[Literal["tracecontext", "baggage", "b3"]] = ("tracecontext", "b3")
    """The headers in which a trace comes in and goes on."""
