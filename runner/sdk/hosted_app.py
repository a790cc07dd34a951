"""`HostedApp`: what serves a plan, as an ASGI application that any server can run.

Its state lives in a temporary folder, as the SDK forgot everything at a restart.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.serve.house import House

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Around = Callable[[], AbstractAsyncContextManager[Any]]

DRAIN = 30.0
"""Seconds that rollouts may go on after the server was asked to stop: `[serve] drain`."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """What an application serves and how: `plan` makes the plan, in a folder for its state.

    `around` is entered before anything is served, and left when everything has ended. `key` is what callers present,
    `events` the folder that each rollout's events are written to.
    """

    title: str
    plan: Callable[[Path], Plan]
    around: Around
    key: str | None = None
    events: Path | None = None


class HostedApp:
    """The application. It opens with the server's lifespan, or with the first request where a server has none.

    Until then it costs nothing: a module that makes one may be imported for its agent alone.
    """

    def __init__(self, hosting: Hosting) -> None:
        self.title = hosting.title
        self.state: dict[str, Any] = {}
        self.hosting = hosting
        self._user, self._stack = AsyncExitStack(), AsyncExitStack()
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
                await self._user.enter_async_context(self.hosting.around())
                try:
                    self._house = await self._stack.enter_async_context(self._opened())
                except BaseException:
                    await self._leave()
                    raise
        return self._house

    async def _leave(self) -> None:
        user, self._user = self._user, AsyncExitStack()
        await user.aclose()

    def _opened(self) -> AbstractAsyncContextManager[House]:
        from runner.serve.house import Opening, open_house
        from runner.telemetry.event_log import EventLog

        folder = Path(tempfile.mkdtemp(prefix="osmosis-run-"))
        self._stack.callback(weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True))
        hosting = self.hosting
        events = None if hosting.events is None else EventLog(hosting.events, stamped=False)
        return open_house(hosting.plan(folder), Opening(key=hosting.key, events=events))

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
        """Let what plays end in its time, deliver, leave what stands around it, and close. It may be opened again."""
        house, self._house = self._house, None
        if house is None:
            return
        try:
            await house.drain(DRAIN)
            await self._leave()
        finally:
            stack, self._stack = self._stack, AsyncExitStack()
            self._entering = None
            await stack.aclose()


def plan_of(settings: Mapping[str, Any], folder: Path, who: str, environ: Mapping[str, str] | None = None) -> Plan:
    """The plan of a file that says nothing, under `settings` by dotted key, which a finding calls parameters of `who`.

    Its state lies in `folder`. The environment is looked at where `environ` is given.
    """
    from runner.build.plan import build
    from runner.config.layers import Override
    from runner.config.load import load

    file = folder / "workflow.toml"
    file.write_text("[workflow]\n")
    overrides = [Override.from_option(key, value, f"{who}: {key} = {value}") for key, value in settings.items()]
    return build(load(file, overrides, environ=environ or {}))


def _whole(scope: Message) -> Message:
    """The scope with the keys that ASGI makes optional."""
    if scope.get("raw_path") is not None:
        return scope
    from urllib.parse import quote

    return {**scope, "raw_path": quote(scope["path"]).encode("ascii")}
