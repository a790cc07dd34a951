"""`serve_agent_loop`: an agent loop of the first generation served until a signal, as its `osmosis serve` did."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.sdk.create_app import create_app
from runner.sdk.hosted_app import DRAIN, HostedApp
from runner.workflows.loop.errors import ServeError
from runner.workflows.loop.settings import RolloutSettings
from runner.workflows.loop.validation import validate_agent_loop

if TYPE_CHECKING:
    from runner.serve.house import House

KEY_PREFIX = "osm_rollout_"

log = logging.getLogger(__name__)


def serve_agent_loop(
    agent_loop: Any,
    *,
    host: str = "0.0.0.0",  # noqa: S104 (what that generation listened at; a key is made where none is given)
    port: int = 9000,
    validate: bool = True,
    log_level: str = "info",
    reload: bool = False,
    settings: RolloutSettings | None = None,
    skip_register: bool = False,
    api_key: str | None = None,
    local_debug: bool = False,
    debug_dir: str | Path | None = None,
) -> int:
    """Serve until SIGTERM or Ctrl-C, then let what plays end. How many rollouts could not be finished.

    Without `api_key` one is made and logged; `local_debug` asks for none. No platform is told, so no login is needed
    and `skip_register` changes nothing. Raises `AgentLoopValidationError`, and `ServeError` for options that
    contradict each other and an address that cannot be listened at.
    """
    if local_debug and api_key:
        raise ServeError("local_debug asks for no key: leave out api_key, or local_debug")
    if reload:
        raise ServeError("reload cannot start an object again: use `osmosis-run serve FILE --reload`")
    if validate:
        validate_agent_loop(agent_loop).raise_if_invalid()
    key = None if local_debug else api_key or KEY_PREFIX + secrets.token_urlsafe(32)
    app = create_app(agent_loop, settings=settings, api_key=key, debug_dir=debug_dir)

    made = None if api_key else key

    def ready(url: str) -> None:
        log.info("serving at %s%s", url, "" if made is None else "; callers present the key that is on stdout")
        if made is not None:
            print(made, flush=True)  # noqa: T201 (the one thing that a caller must be told, and no log may hold)

    return serve_app(app, (host, port), log_level, ready)


def serve_app(app: HostedApp, address: tuple[str, int], log_level: str, ready: Callable[[str], None]) -> int:
    """Serve an application until a signal, then let what plays end. `ready` is told the URL when it answers.

    How many rollouts could not be finished. Raises `ServeError`.
    """
    from runner.serve.http.loop import loop_factory
    from runner.serve.http.server import CannotServe, Serving, listen, run_worker, url_of
    from runner.telemetry.logs import configure

    @asynccontextmanager
    async def house(worker: int) -> AsyncIterator[House]:
        try:
            yield await app.open()
        finally:
            await app.aclose()

    try:
        logs = configure(log_level)
        sockets = listen(*address)
    except (OSError, ValueError) as error:
        raise ServeError(f"cannot serve at {address[0]}:{address[1]}: {error}") from error
    url = url_of(sockets[0], {})
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as running:
            return running.run(run_worker(house, sockets, Serving(DRAIN, {}, lambda: ready(url))))
    except CannotServe as error:
        raise ServeError(str(error)) from error
    finally:
        for each in sockets:
            each.close()
        logs.close()
