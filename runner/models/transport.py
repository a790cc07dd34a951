"""One POST to a chat endpoint, and nothing else: the only file that imports an HTTP library (aiohttp).

Plain http without a proxy takes the lean pool of `http1.py`; TLS and proxies (from the usual environment variables)
go through aiohttp, whose cost does not matter at the rates such endpoints allow.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from runner.models.http1 import Pool
from runner.models.http1_parser import Answer, ProtocolError, Sink, TooLargeError

if TYPE_CHECKING:
    import aiohttp

MAX_BODY = 64 * 1024 * 1024


class TransportError(Exception):
    """No usable HTTP answer. `message` continues the sentence "`HOST`: …".

    `retry` is False where no retry can help; `oversized` and `timed_out` say what kind of trouble it was.
    """

    def __init__(self, message: str, *, retry: bool = True, oversized: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
        self.oversized = oversized
        self.timed_out = timed_out


class Transport:
    """Posts JSON bodies to one URL with fixed headers. Bound to the event loop of its first `post`."""

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float, max_body: int = MAX_BODY) -> None:
        self._url = url
        self._timeout = timeout
        self._max_body = max_body
        self._headers = {"content-type": "application/json", "accept-encoding": "identity", **headers}
        parts = urlsplit(url)
        self._proxy = _proxy_for(parts.scheme, parts.hostname or "")
        self._pool: Pool | None = None
        self._session: aiohttp.ClientSession | None = None
        if parts.scheme == "http" and self._proxy is None:
            self._pool = Pool(parts.hostname or "", parts.port or 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = parts.netloc.rpartition("@")[2]
        lines = [
            f"POST {target} HTTP/1.1",
            f"host: {host}",
            *(f"{name}: {text}" for name, text in self._headers.items()),
        ]
        self._head = "\r\n".join(lines).encode("latin-1") + b"\r\ncontent-length: "

    async def post(self, body: bytes, sink: Sink | None = None) -> Answer:
        """Send `body`, give the answer. `sink` takes the body of an event stream. Raises TransportError."""
        try:
            if self._pool is not None:
                head = self._head + b"%d\r\n\r\n" % len(body)
                return await self._pool.post((head, body), self._timeout, self._max_body, sink)
            async with asyncio.timeout(self._timeout):
                return await self._post_by_library(body, sink)
        except TimeoutError as error:
            if error.errno is not None:
                raise TransportError("no connection in time") from error
            raise TransportError(f"no answer within {self._timeout:g} s", timed_out=True) from None
        except TooLargeError:
            raise TransportError(
                f"the answer is larger than {self._max_body / 1024 / 1024:g} MiB", retry=False, oversized=True
            ) from None
        except ProtocolError as error:
            raise TransportError(str(error)) from None
        except OSError as error:
            raise TransportError(_why(error)) from error

    async def aclose(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            await self._pool.aclose()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post_by_library(self, body: bytes, sink: Sink | None) -> Answer:
        import aiohttp

        for last in (False, True):
            try:
                return await self._post_once(body, sink)
            except aiohttp.ServerDisconnectedError:
                # Before any byte of an answer: most likely a kept-alive connection that had gone stale.
                if last:
                    raise TransportError("the connection was closed without an answer") from None
            except aiohttp.ClientConnectorCertificateError as error:
                raise TransportError(_certificate(error.certificate_error), retry=False) from error
            except aiohttp.ClientConnectorError as error:
                raise TransportError(_why(error.os_error)) from error
            except aiohttp.ClientError as error:
                raise TransportError(f"{type(error).__name__}: the exchange broke off") from error
        raise AssertionError("unreachable")

    async def _post_once(self, body: bytes, sink: Sink | None) -> Answer:
        session = self._open_session()
        options: dict[str, Any] = {"data": body, "allow_redirects": False}
        if self._proxy is not None:
            options["proxy"] = self._proxy
        async with session.post(self._url, **options) as response:
            headers = {name.lower(): text for name, text in response.headers.items()}
            if sink is None or response.status != 200 or "text/event-stream" not in headers.get("content-type", ""):
                return Answer(response.status, headers, await self._read(response))
            size = 0
            async for data in response.content.iter_any():
                size += len(data)
                if size > self._max_body:
                    raise TooLargeError
                if sink(data):
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(1.0):
                            await response.content.read(1)
                    break
            return Answer(response.status, headers, b"")

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) > self._max_body:
            raise TooLargeError
        parts: list[bytes] = []
        size = 0
        async for data in response.content.iter_any():
            size += len(data)
            if size > self._max_body:
                raise TooLargeError
            parts.append(data)
        return b"".join(parts)

    def _open_session(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
            )
        return self._session


def _proxy_for(scheme: str, host: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY ask for."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "this process may open no more files; raise the limit (`ulimit -n`) or lower the concurrency"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there (connection refused)"
    if isinstance(error, ConnectionError):
        return "the connection was reset"
    if isinstance(error, socket.gaierror):
        return "the name of the host is not known"
    return error.strerror or str(error) or type(error).__name__


def _certificate(error: Exception) -> str:
    reason = getattr(error, "verify_message", "") or str(error)
    return f"its certificate is not trusted ({reason}); if it is your own, name its authority in SSL_CERT_FILE"
