"""`create_app`: an agent loop of the first generation as an ASGI application that any server can run.

There is no file: what it would say comes from the parameters and settings, and everything behind the door is what
`osmosis-run serve` runs. Its state lives in a temporary folder, as that generation forgot everything at a restart.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.config.quantity import size_text
from runner.sdk.hosted_app import DRAIN, Around, HostedApp, Hosting, plan_of
from runner.workflows.loop.errors import AgentLoopValidationError
from runner.workflows.loop.hosting import PreparedLoop, prepare_loop
from runner.workflows.loop.settings import RolloutSettings, get_settings
from runner.workflows.loop.validation import validate_agent_loop
from runner.workflows.typed import WorkflowMisfit

if TYPE_CHECKING:
    from runner.build.plan import Plan

Hook = Callable[[], Awaitable[None]]

__all__ = ["DRAIN", "LoopApp", "create_app"]

log = logging.getLogger(__name__)


def create_app(
    agent_loop: Any,
    max_concurrent: int | None = None,
    record_ttl_seconds: float | None = None,
    settings: RolloutSettings | None = None,
    *,
    enable_metrics_endpoint: bool = True,
    api_key: str | None = None,
    credentials: Any = None,
    server_host: str | None = None,
    server_port: int | None = None,
    debug_dir: str | Path | None = None,
    on_startup: Hook | None = None,
    on_shutdown: Hook | None = None,
) -> LoopApp:
    """An application that serves `agent_loop`. None, and 0, is what `settings` say, which are the process's by default.

    `api_key` is what callers must present, `debug_dir` where each rollout's events are written. A platform is told
    nothing: `credentials`, `server_host` and `server_port` are taken and warned about. Raises
    `AgentLoopValidationError`, TypeError for a class that cannot be made, ValueError for a number that cannot be.
    """
    try:
        loop = prepare_loop(agent_loop, {})
    except WorkflowMisfit as misfit:
        errors = [] if isinstance(agent_loop, type) else validate_agent_loop(agent_loop).errors
        raise AgentLoopValidationError(errors) if errors else TypeError(misfit.message) from misfit
    if any(each is not None for each in (credentials, server_host, server_port)):
        log.warning("create_app registers the server nowhere: credentials, server_host and server_port have no effect")
    said = settings or get_settings()
    if (max_concurrent or 0) < 0 or (record_ttl_seconds or 0) < 0:
        raise ValueError(f"{max_concurrent=} and {record_ttl_seconds=} cannot be negative")
    keys = _keys(said)
    keys["serve.max_concurrent"] = max_concurrent or said.server.max_concurrent_rollouts
    keys["serve.record_ttl"] = _seconds(record_ttl_seconds or said.server.record_ttl_seconds)
    keys["workflow.name"] = str(loop.loop.name)
    if not enable_metrics_endpoint:
        keys["serve.metrics.expose"] = False
    keys["limits.time"] = "24h"  # that generation had no deadline of its own
    hosting = Hosting(
        title=f"Osmosis RolloutServer ({loop.loop.name})",
        plan=partial(_plan, loop, keys),
        around=_around(on_startup, on_shutdown),
        key=api_key or None,
        events=None if debug_dir is None else Path(debug_dir),
    )
    return LoopApp(hosting)


def _keys(settings: RolloutSettings) -> dict[str, Any]:
    """The keys that stand for what was set: what was not keeps this server's own default."""
    keys: dict[str, Any] = {}
    for group, table in _TABLES.items():
        section = getattr(settings, group)
        for name in section.model_fields_set & table.keys():
            value = getattr(section, name)
            for key, read in table[name]:
                if value is not None:
                    keys[f"serve.{key}"] = read(value)
    if "max_metadata_size_bytes" in settings.model_fields_set:
        keys["serve.max_metadata"] = size_text(settings.max_metadata_size_bytes)
    return keys


def _seconds(value: float) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") + "s"


def _tries(retries: int) -> int:
    return retries + 1


def _as_it_is(value: Any) -> Any:
    return value


def _lower(value: str) -> str:
    return value.lower()


_TABLES: Mapping[str, Mapping[str, tuple[tuple[str, Callable[[Any], Any]], ...]]] = {
    "client": {
        "timeout_seconds": (("chat.timeout", _seconds),),
        "max_retries": (("chat.retries.attempts", _tries),),
        "complete_rollout_retries": (("callbacks.attempts", _tries),),
        "retry_base_delay": (("chat.base_wait", _seconds), ("callbacks.base_wait", _seconds)),
        "retry_max_delay": (("chat.retries.max_wait", _seconds), ("callbacks.max_wait", _seconds)),
        "max_connections": (("connections.max", _as_it_is),),
        "max_keepalive_connections": (("connections.idle", _as_it_is),),
    },
    "server": {
        "cleanup_interval_seconds": (("cleanup_interval", _seconds),),
        "request_timeout_seconds": (("request_timeout", _seconds),),
    },
    "logging": {
        "level": (("log.level", _lower),),
        "format": (("log.format", _as_it_is),),
        "include_timestamp": (("log.timestamp", _as_it_is),),
        "include_caller": (("log.caller", _as_it_is),),
    },
    "tracing": {
        "enabled": (("trace.enabled", _as_it_is),),
        "service_name": (("trace.service_name", _as_it_is),),
        "exporter": (("trace.exporter", _as_it_is),),
        "endpoint": (("trace.endpoint", _as_it_is),),
        "sample_rate": (("trace.sample_rate", _as_it_is),),
        "propagators": (("trace.propagators", list),),
    },
    "metrics": {
        "enabled": (("metrics.enabled", _as_it_is),),
        "prefix": (("metrics.prefix", _as_it_is),),
        "include_default_labels": (("metrics.default_labels", _as_it_is),),
        "expose_endpoint": (("metrics.expose", _as_it_is),),
    },
}
"""By group and name of a setting, the keys of `[serve]` that it sets, and how its value is written there."""


class LoopApp(HostedApp):
    """The application of an agent loop."""


def _around(on_startup: Hook | None, on_shutdown: Hook | None) -> Around:
    @asynccontextmanager
    async def around() -> AsyncIterator[None]:
        if on_startup is not None:
            await on_startup()
        yield
        if on_shutdown is not None:
            await on_shutdown()

    return around


def _plan(loop: PreparedLoop, keys: Mapping[str, Any], folder: Path) -> Plan:
    # The environment reached the settings already, and settings from code win over it.
    plan = plan_of(keys, folder, "create_app")
    return replace(plan, make_workflow=loop, offered=loop.offered)
