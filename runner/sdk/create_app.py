"""`create_app`: an agent loop of the first generation as an ASGI application that any server can run.

There is no file: what it would say comes from the parameters and settings, and everything behind the door is what
`osmosis-run serve` runs. Its state lives in a temporary folder, as that generation forgot everything at a restart.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.build.plan import Plan, build
from runner.config.layers import Override
from runner.config.load import load
from runner.config.quantity import size_text
from runner.workflows.loop.errors import AgentLoopValidationError
from runner.workflows.loop.hosting import PreparedLoop, prepare_loop
from runner.workflows.loop.settings import RolloutSettings, get_settings
from runner.workflows.loop.validation import validate_agent_loop
from runner.workflows.typed import WorkflowMisfit

if TYPE_CHECKING:
    from runner.serve.house import House

Hook = Callable[[], Awaitable[None]]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

DRAIN = 30.0
"""Seconds that rollouts may go on after the server was asked to stop: `[serve] drain`."""

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
    return LoopApp(loop, keys, (api_key or None, debug_dir), (on_startup, on_shutdown))


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


class LoopApp:
    """The application. It opens with the server's lifespan, or with the first request where a server has none.

    Until then it costs nothing: a module that makes one may be imported for its agent loop alone. `access` is the key
    and the folder of the event logs, `hooks` what is called when it has opened and before it closes.
    """

    def __init__(
        self,
        loop: PreparedLoop,
        keys: Mapping[str, Any],
        access: tuple[str | None, str | Path | None] = (None, None),
        hooks: tuple[Hook | None, Hook | None] = (None, None),
    ) -> None:
        self.title = f"Osmosis RolloutServer ({loop.loop.name})"
        self._loop = loop
        self._keys = keys
        self._key, self._events = access
        self._on_startup, self._on_shutdown = hooks
        self._stack = AsyncExitStack()
        self._house: House | None = None
        self._entering: asyncio.Lock | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One ASGI connection: the lifespan, or a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        house = self._house or await self.open()
        await house.app(_whole(scope), receive, send)

    async def open(self) -> House:
        """Open what serves; what is open already where it is."""
        if self._entering is None:
            self._entering = asyncio.Lock()
        async with self._entering:
            if self._house is None:
                if self._on_startup is not None:
                    await self._on_startup()
                self._house = await self._stack.enter_async_context(self._opened())
        return self._house

    def _opened(self) -> AbstractAsyncContextManager[House]:
        from runner.serve.house import Opening, open_house

        folder = Path(tempfile.mkdtemp(prefix="osmosis-run-"))
        self._stack.callback(weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True))
        events = None if self._events is None else Path(self._events)
        return open_house(_plan(self._loop, self._keys, folder), Opening(key=self._key, events=events))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await self.aclose()
        except Exception as error:
            await send({"type": "lifespan.shutdown.failed", "message": f"{type(error).__name__}: {error}"})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    async def aclose(self) -> None:
        """Let what plays end in its time, deliver, tell `on_shutdown`, and close. It may be opened again."""
        house, self._house = self._house, None
        if house is None:
            return
        try:
            await house.drain(DRAIN)
            if self._on_shutdown is not None:
                await self._on_shutdown()
        finally:
            stack, self._stack = self._stack, AsyncExitStack()
            self._entering = None
            await stack.aclose()


def _plan(loop: PreparedLoop, keys: Mapping[str, Any], folder: Path) -> Plan:
    file = folder / "workflow.toml"
    file.write_text("[workflow]\n")
    overrides = [Override.from_option(key, value, f"create_app: {key} = {value}") for key, value in keys.items()]
    # The environment reached the settings already, and settings from code win over it.
    plan = build(load(file, overrides, environ={}))
    return replace(plan, make_workflow=loop, offered=loop.offered)


def _whole(scope: Message) -> Message:
    """The scope with the keys that ASGI makes optional."""
    if scope.get("raw_path") is not None:
        return scope
    from urllib.parse import quote

    return {**scope, "raw_path": quote(scope["path"]).encode("ascii")}
