"""`Connection`: one server, connected when it is needed, and again after it was lost.

The library's client lives in a task of its own, since it has to be left by the task that entered it; calls come from
any. A call that was under way when the server was lost has failed: whether it took effect nobody knows, so it is not
made again. The next call connects anew, after a pause that grows with each failure in a row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from runner.tools.mcp.endpoint import CommandEndpoint, Endpoint

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import CallToolResult, Tool

_CHECK_SECONDS = 5.0
_BASE_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_MOST_PAGES = 100
_CLOSE_SECONDS = 10.0


class ServerLost(Exception):
    """The server could not be reached, or went away. The message says what is known of why."""


class ServerRefused(Exception):
    """The server answered a call with an error of the protocol."""


@dataclass(slots=True)
class _Held:
    """A client in its task: `ready` when it can be asked, `gone` when it is no more."""

    ready: asyncio.Future[Client]
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    why: str = ""


class Connection:
    """`name` is the section's; `start_time` and `timeout` are in seconds, for connecting and for one call."""

    def __init__(self, name: str, endpoint: Endpoint, *, start_time: float, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._endpoint = endpoint
        self._start_time = start_time
        self._held: _Held | None = None
        self._connecting = asyncio.Lock()
        self._failures = 0
        self._again_at = 0.0
        self._closed = False

    async def tools(self) -> list[Tool]:
        """What the server offers. Raises `ServerLost`."""
        client = await self._client()
        found: list[Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._start_time):
                for _ in range(_MOST_PAGES):
                    page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        return found
        except Exception as error:
            await self._drop()
            raise ServerLost(self._said(f"does not list its tools: {_words(error)}")) from error
        raise ServerLost(self._said(f"lists more than {_MOST_PAGES} pages of tools"))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool. Raises `ServerLost`, `ServerRefused`, and `TimeoutError` when it takes longer than `timeout`."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        client, held = await self._client(), self._held
        try:
            async with asyncio.timeout(self.timeout):
                result = await client.call_tool(tool, dict(arguments))
        except TimeoutError:
            await self._check(client)
            raise
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                await self._drop()
                raise ServerLost(self._said("went away while it was asked", held)) from error
            raise ServerRefused(str(error)) from error
        except (OSError, RuntimeError, ValueError, ExceptionGroup) as error:
            if held is not None and held.task is not None and held.task.done():
                await self._drop()
                raise ServerLost(self._said(f"went away while it was asked: {_words(error)}", held)) from error
            raise ServerRefused(_words(error)) from error
        self._failures = 0
        return result

    async def aclose(self) -> None:
        """Leave the server; one that was started is ended."""
        self._closed = True
        await self._drop()

    async def _client(self) -> Client:
        async with self._connecting:
            if self._closed:
                raise ServerLost(self._said("is not asked any more: the rollout has ended"))
            if self._held is not None and self._held.task is not None and not self._held.task.done():
                return await asyncio.shield(self._held.ready)
            await self._drop()
            if monotonic() < self._again_at:
                await asyncio.sleep(self._again_at - monotonic())
            return await self._connect()

    async def _connect(self) -> Client:
        held = self._held = _Held(asyncio.get_running_loop().create_future())
        held.task = asyncio.get_running_loop().create_task(self._hold(held), context=Context())
        try:
            async with asyncio.timeout(self._start_time):
                return await asyncio.shield(held.ready)
        except TimeoutError:
            await self._failed()
            raise ServerLost(self._said(f"was not there within {self._start_time:g} s", held)) from None
        except ServerLost:
            await self._failed()
            raise
        except asyncio.CancelledError:
            await self._drop()
            raise

    async def _failed(self) -> None:
        await self._drop()
        self._failures += 1
        self._again_at = monotonic() + min(_LONGEST_PAUSE, _BASE_PAUSE * 2.0 ** min(self._failures - 1, 20))

    async def _hold(self, held: _Held) -> None:
        """Be the task that enters the client and leaves it."""
        from mcp.client import Client

        try:
            async with self._streams(held) as transport, Client(_Given(transport), mode=_MODE, cache=None) as client:
                held.ready.set_result(client)
                await held.leave.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # groups of the library's tasks among them; told to whoever asks next
            held.why = held.why or _words(error)
            logging.getLogger(__name__).debug("MCP server %r: %s", self.name, held.why)
            if not isinstance(error, Exception | BaseExceptionGroup):
                raise
        finally:
            if not held.ready.done():
                held.ready.set_exception(ServerLost(self._said(f"cannot be reached: {held.why}", held)))
                held.ready.exception()  # nobody may be left to ask

    @asynccontextmanager
    async def _streams(self, held: _Held) -> AsyncIterator[tuple[Any, Any]]:
        if isinstance(self._endpoint, CommandEndpoint):
            from runner.tools.mcp.pipe import Said, pipe

            said = Said()
            try:
                async with pipe(self._endpoint, said) as streams:
                    yield streams
            finally:
                held.why = str(said.flooded) if said.flooded else _last_words(said.text)
        else:
            from runner.tools.mcp.web import web

            async with web(self._endpoint, self._start_time) as streams:
                yield streams

    async def _check(self, client: Client) -> None:
        """After a call took too long: a server that answers nothing at all any more is left, and connected anew.

        It is asked for its tools: a ping is no part of the newest protocol.
        """
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            async with asyncio.timeout(min(_CHECK_SECONDS, self.timeout)):
                await client.list_tools(cache_mode="bypass")
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                await self._failed()
        except Exception:
            await self._failed()

    async def _drop(self) -> None:
        held, self._held = self._held, None
        if held is None or held.task is None:
            return
        held.leave.set()
        if not held.ready.done():
            held.task.cancel()  # it is still trying to get in
        done, _ = await asyncio.wait({held.task}, timeout=_CLOSE_SECONDS)
        if not done:
            held.task.cancel()
            await asyncio.wait({held.task}, timeout=_CLOSE_SECONDS)

    def _said(self, what: str, held: _Held | None = None) -> str:
        why = held.why if held is not None else ""
        more = f" ({why})" if why and why not in what else ""
        return f"the MCP server `{self.name}` {what}{more}"


_MODE = "auto"


class _Given:
    """Streams that are open already, as the transport that the client asks for."""

    def __init__(self, streams: tuple[Any, Any]) -> None:
        self._streams = streams

    async def __aenter__(self) -> tuple[Any, Any]:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        """Whoever opened the streams closes them."""


def _words(error: BaseException) -> str:
    """What an error says; of a group, what its first does."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _last_words(text: str) -> str:
    return f"its last words: {text.splitlines()[-1][:300]}" if text else ""
