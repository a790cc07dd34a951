"""The way to a server at an address: the library's streamable HTTP, with answers of a bounded length."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from runner.tools.mcp.endpoint import MAX_MESSAGE, Flooded, UrlEndpoint


@asynccontextmanager
async def web(endpoint: UrlEndpoint, timeout: float) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server at an address. `timeout` is in seconds, for each step of a request."""
    times = httpx2.Timeout(timeout, read=None)  # how long an answer may take is the call's own affair
    transport = _Bounded(httpx2.AsyncHTTPTransport())
    headers = dict(endpoint.headers)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=times, transport=transport, follow_redirects=False) as client,
        streamable_http_client(endpoint.url, http_client=client) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Answers to what was asked are cut off when they get too long; the server's own stream goes on as it likes."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if request.method == "POST" and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Counted(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._inner:
            count += len(chunk)
            if count > MAX_MESSAGE:
                raise httpx2.ReadError(str(Flooded(f"it sent an answer of more than {MAX_MESSAGE >> 20} MiB")))
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
