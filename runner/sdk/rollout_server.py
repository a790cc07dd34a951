"""`create_rollout_server`: a backend of the second or third generation as an ASGI application that any server can run.

It speaks both of their dialects, told apart by each request, and answers their status and cancel routes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from runner.sdk.execution import ExecutionBackend
from runner.sdk.hosted_app import HostedApp, Hosting

if TYPE_CHECKING:
    from runner.sdk.local_backend import LocalBackend

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def create_rollout_server(
    *, backend: ExecutionBackend, lifespan: Lifespan | None = None, configure_logging: bool = True
) -> RolloutServer:
    """An application that serves `backend`, a `LocalBackend`.

    `lifespan(app)` is an async context manager around everything: rollouts have ended when it is left. With
    `configure_logging` what the server logs is shown on stderr, unless the process has a log already. Raises TypeError.
    """
    from runner.sdk.local_backend import LocalBackend

    if not isinstance(backend, LocalBackend):
        found = type(backend).__name__
        raise TypeError(f"create_rollout_server serves a LocalBackend, found {found}: name workflow and grader in one")
    return RolloutServer(backend, lifespan, configure_logging)


class RolloutServer(HostedApp):
    """The application of a backend."""

    def __init__(self, backend: LocalBackend, lifespan: Lifespan | None, configure_logging: bool) -> None:
        self.backend = backend

        @asynccontextmanager
        async def around() -> AsyncIterator[None]:
            with _Logging(configure_logging):
                if lifespan is None:
                    yield
                    return
                async with lifespan(self):
                    yield

        # The environment counts: a platform says there where a container may keep its archive.
        super().__init__(Hosting(backend.name, partial(backend.plan, environ=os.environ), around))


class _Logging:
    """Logs to stderr inside the block, where `on` and nobody else does."""

    def __init__(self, on: bool) -> None:
        self._on = on and not logging.getLogger().handlers
        self._logs: Any = None

    def __enter__(self) -> None:
        if self._on:
            from runner.telemetry.logs import configure

            self._logs = configure("info")

    def __exit__(self, *_: object) -> None:
        if self._logs is not None:
            self._logs.close()
