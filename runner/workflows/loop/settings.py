"""The first generation's settings, with the ranges that its SDK documents; `settings_from` reads the environment's.

Made in code they hold what they are told and else the defaults: only `get_settings` reads the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import EllipsisType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from runner.config.dotenv import read_dotenv
from runner.diag.diagnostic import Report

PREFIX = "OSMOSIS_ROLLOUT_"


class _Settings(BaseModel):
    model_config = ConfigDict(extra="ignore", validate_assignment=True, allow_inf_nan=False)


class RolloutClientSettings(_Settings):
    """How chat and callbacks are posted. Times are in seconds."""

    timeout_seconds: float = Field(default=300.0, ge=1, le=3600)
    max_retries: int = Field(default=3, ge=0, le=10)
    complete_rollout_retries: int = Field(default=2, ge=0, le=10)
    retry_base_delay: float = Field(default=1.0, ge=0.1, le=60)
    retry_max_delay: float = Field(default=30.0, ge=1, le=300)
    max_connections: int = Field(default=100, ge=1, le=1000)
    max_keepalive_connections: int = Field(default=20, ge=1, le=100)


class RolloutServerSettings(_Settings):
    """What the server holds. Times are in seconds."""

    max_concurrent_rollouts: int = Field(default=100, ge=1, le=10_000)
    record_ttl_seconds: float = Field(default=3600.0, ge=60, le=86_400)
    cleanup_interval_seconds: float = Field(default=60.0, ge=10, le=3600)
    request_timeout_seconds: float = Field(default=600.0, ge=10, le=3600)
    registration_readiness_timeout_seconds: float = Field(default=10.0, ge=1, le=60)
    registration_readiness_poll_interval_seconds: float = Field(default=0.2, ge=0.05, le=5)
    registration_shutdown_timeout_seconds: float = Field(default=30.0, ge=1, le=300)


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [word.strip().strip("\"'") for word in value.strip("[]").split(",") if word.strip()]


class RolloutLoggingSettings(_Settings):
    """What the server writes as it works."""

    level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)] = "INFO"
    format: Literal["json", "console", "plain"] = "json"
    include_timestamp: bool = True
    include_caller: bool = False


class RolloutTracingSettings(_Settings):
    """OpenTelemetry spans."""

    enabled: bool = False
    service_name: str = "osmosis-rollout"
    exporter: Literal["otlp", "jaeger", "zipkin", "console", "none"] = "otlp"
    endpoint: str | None = None
    sample_rate: float = Field(default=1.0, ge=0, le=1)
    propagators: Annotated[list[str], BeforeValidator(_words)] = Field(default=["tracecontext", "b3"])


class RolloutMetricsSettings(_Settings):
    """Numbers for Prometheus."""

    enabled: bool = False
    prefix: str = "osmosis_rollout"
    include_default_labels: bool = True
    expose_endpoint: bool = True


class RolloutSettings(_Settings):
    """All of them. `RolloutSettings(...)`, as the guide writes it with three dots, is every default."""

    client: RolloutClientSettings = Field(default_factory=RolloutClientSettings)
    server: RolloutServerSettings = Field(default_factory=RolloutServerSettings)
    logging: RolloutLoggingSettings = Field(default_factory=RolloutLoggingSettings)
    tracing: RolloutTracingSettings = Field(default_factory=RolloutTracingSettings)
    metrics: RolloutMetricsSettings = Field(default_factory=RolloutMetricsSettings)
    max_metadata_size_bytes: int = Field(default=2**20, ge=1024, le=104_857_600)

    def __init__(self, rest: EllipsisType = ..., /, **said: Any) -> None:
        super().__init__(**said)


_GROUPS = {"client": "CLIENT_", "server": "SERVER_", "logging": "LOG_", "tracing": "TRACE_", "metrics": "METRICS_"}
_settings: RolloutSettings | None = None


def get_settings() -> RolloutSettings:
    """The process's settings: those of `configure`, else read from the environment and `.env`, once.

    Raises ValueError, which names the variable, for a value out of its range.
    """
    global _settings
    if _settings is None:
        _settings = settings_from(os.environ, Path(".env"))
    return _settings


def configure(settings: RolloutSettings) -> None:
    """Make `settings` the process's."""
    global _settings
    _settings = settings


def reset_settings() -> None:
    """Forget the process's settings: they are read again when they are next asked for."""
    global _settings
    _settings = None


def settings_from(environ: Mapping[str, str], dotenv: Path | None = None) -> RolloutSettings:
    """The settings that `environ`, and under it the file `dotenv`, say. Unknown and empty variables say nothing.

    Raises ValueError, which names the variable, for a value out of its range.
    """
    entries = [] if dotenv is None else read_dotenv(dotenv, dotenv.name, Report(), environ, _ours)
    said = {entry.name.upper(): entry.value for entry in entries}
    said |= {name.upper(): value for name, value in environ.items() if _ours(name)}
    said = {name.removeprefix(PREFIX): value.strip() for name, value in said.items() if value.strip()}
    table: dict[str, Any] = {group: _under(prefix, said) for group, prefix in _GROUPS.items()}
    if "MAX_METADATA_SIZE_BYTES" in said:
        table["max_metadata_size_bytes"] = said["MAX_METADATA_SIZE_BYTES"]
    try:
        return RolloutSettings.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        group, *rest = first["loc"]
        name = PREFIX + _GROUPS.get(str(group), str(group)) + (str(rest[0]) if rest else "")
        raise ValueError(f"{name.upper()}={first['input']}: {first['msg']}") from error


def _ours(name: str) -> bool:
    return name.upper().startswith(PREFIX)


def _under(prefix: str, said: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(prefix).lower(): value for name, value in said.items() if name.startswith(prefix)}
