"""One POST, and nothing else: the only file that imports an HTTP library (aiohttp).

Plain http without a proxy takes the lean pool of `http1.py`; TLS and proxies (from the usual environment variables)
go through aiohttp, whose cost does not matter at the rates such endpoints allow. No redirect is ever followed: the
bearer would go with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from runner.models.address import Origin
from runner.models.http1 import CrowdedError, Pool
from runner.models.http1_connection import Bounds
from runner.models.http1_parser import Answer, ProtocolError, Sink, TooLargeError, is_event_stream
from runner.models.letter import Letter, Proxies

if TYPE_CHECKING:
    import aiohttp

MAX_BODY = 64 * 1024 * 1024


class TransportError(Exception):
    """No usable HTTP answer. `message` continues the sentence "`HOST`: …".

    `retry` is False where no retry can help; `oversized` and `timed_out` say what kind of trouble it was; `status` is
    that of an answer that began and could not be used.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: bool = True,
        oversized: bool = False,
        timed_out: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.oversized = oversized
        self.timed_out = timed_out
        self.status = status


def addressed(url: str, headers: Mapping[str, str], proxies: Proxies) -> Letter:
    """A letter to `url`. Raises TransportError for an address to which nothing can be sent."""
    try:
        return Letter(url, headers, proxies)
    except ValueError as error:
        raise TransportError(str(error), retry=False) from None


class Session:
    """The library's connections to any number of origins. Bound to the event loop of its first `post`.

    At most `max` are open to an origin. Where `idle` is given, whatever is sent while that many posts to the same
    origin are under way asks for its connection to be closed afterwards: the library can drop none by itself.
    """

    def __init__(self, *, max: int | None = None, idle: int | None = None) -> None:
        self._max = max
        self._idle = idle
        self._active: Counter[Origin] = Counter()
        self._session: aiohttp.ClientSession | None = None

    async def post(self, letter: Letter, body: bytes, bounds: Bounds, sink: Sink | None) -> Answer:
        """Raises TimeoutError, TooLargeError, TransportError."""
        import aiohttp

        end = asyncio.get_running_loop().time() + bounds.seconds
        for last in (False, True):
            try:
                return await self._counted(letter, body, bounds, sink, end)
            except aiohttp.ServerDisconnectedError:
                # Before any byte of an answer: most likely a kept-alive connection that had gone stale.
                if last:
                    raise TransportError("the connection was closed without an answer") from None
            except aiohttp.InvalidURL as error:
                raise TransportError("the address is not one that can be sent to", retry=False) from error
            except aiohttp.ClientConnectorCertificateError as error:
                raise TransportError(_certificate(error.certificate_error), retry=False) from error
            except aiohttp.ClientConnectorError as error:
                raise TransportError(_why(error.os_error)) from error
            except aiohttp.ClientError as error:
                raise TransportError(f"{type(error).__name__}: the exchange broke off") from error
        raise AssertionError("unreachable")

    async def _counted(self, letter: Letter, body: bytes, bounds: Bounds, sink: Sink | None, end: float) -> Answer:
        headers = letter.headers
        self._active[letter.origin] += 1
        try:
            if self._idle is not None and self._active[letter.origin] > self._idle:
                headers = {**headers, "connection": "close"}
            return await self._exchange(letter, headers, body, bounds, sink, end)
        finally:
            self._active[letter.origin] -= 1
            if not self._active[letter.origin]:
                del self._active[letter.origin]

    async def _exchange(
        self, letter: Letter, sent: Mapping[str, str], body: bytes, bounds: Bounds, sink: Sink | None, end: float
    ) -> Answer:
        session = self._open()
        async with asyncio.timeout_at(end):
            response = await session.post(
                letter.url, data=body, headers=sent, allow_redirects=False, proxy=letter.proxy
            )
        async with response:
            headers = {name.lower(): text for name, text in response.headers.items()}
            answer = Answer(response.status, headers, b"")
            if bounds.body_wait is not None:
                end = min(end, asyncio.get_running_loop().time() + bounds.body_wait)
                await _read_some(response, bounds.size, end, answer)
            else:
                async with asyncio.timeout_at(end):
                    if sink is not None and is_event_stream(response.status, headers):
                        await _read_events(response, bounds.size, sink)
                    else:
                        answer.body = await _read_whole(response, bounds.size)
            return answer

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, limit_per_host=self._max or 0, ttl_dns_cache=60),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def aclose(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def _read_events(response: aiohttp.ClientResponse, limit: int, sink: Sink) -> None:
    size = 0
    async for data in response.content.iter_any():
        size += len(data)
        if size > limit:
            raise TooLargeError
        if sink(data):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await response.content.read(1)
            return


async def _read_whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise TooLargeError
    parts: list[bytes] = []
    size = 0
    async for data in response.content.iter_any():
        size += len(data)
        if size > limit:
            raise TooLargeError
        parts.append(data)
    return b"".join(parts)


async def _read_some(response: aiohttp.ClientResponse, limit: int, end: float, answer: Answer) -> None:
    """Put into `answer` what comes of its body: at most `limit` bytes, until `end`."""
    import aiohttp

    body = bytearray()
    try:
        async with asyncio.timeout_at(end):
            async for data in response.content.iter_any():
                body += data
                if len(body) > limit:
                    raise TooLargeError
    except (TimeoutError, TooLargeError, aiohttp.ClientError, OSError):
        answer.whole = False
        response.close()  # what is left of the body must not meet the next request
    answer.body = bytes(body[:limit])


Carrier: TypeAlias = Pool | Session
"""What takes a letter to its origin: a pool what is `direct`, the library's session anything else."""


class Carriers(Protocol):
    """Where shared connections come from: `connections.Connections`."""

    proxies: Proxies

    def carrier(self, letter: Letter) -> Carrier: ...


async def send(carrier: Carrier, letter: Letter, body: bytes, bounds: Bounds, sink: Sink | None = None) -> Answer:
    """Post once. `sink` takes the body of an event stream. Raises TransportError."""
    try:
        if isinstance(carrier, Pool):
            assert letter.head is not None
            return await carrier.post((letter.head + b"%d\r\n\r\n" % len(body), body), bounds, sink)
        return await carrier.post(letter, body, bounds, sink)
    except TimeoutError as error:
        if error.errno is not None:
            raise TransportError("no connection in time") from error
        raise TransportError(f"no answer within {bounds.seconds:g} s", timed_out=True) from None
    except TooLargeError as error:
        large = f"the answer is larger than {bounds.size / 1024 / 1024:g} MiB"
        raise TransportError(large, retry=False, oversized=True, status=error.status) from None
    except ProtocolError as error:
        raise TransportError(str(error), timed_out=isinstance(error, CrowdedError), status=error.status) from None
    except OSError as error:
        raise TransportError(_why(error)) from error


class Transport:
    """Posts JSON bodies to one URL with fixed headers. Bound to the event loop of its first `post`.

    With `connections` it is but an address: hundreds of bytes, and nothing to close. Without, it keeps its own.
    """

    __slots__ = ("_bounds", "_connections", "_letter", "_own")

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        timeout: float,
        max_body: int = MAX_BODY,
        connections: Carriers | None = None,
    ) -> None:
        """Raises TransportError for an address to which nothing can be sent."""
        self._letter = addressed(url, headers, Proxies() if connections is None else connections.proxies)
        self._bounds = Bounds(timeout, max_body)
        self._connections = connections
        self._own: Carrier | None = None
        if connections is None:
            self._own = Pool(*self._letter.origin) if self._letter.direct else Session()

    def post(self, body: bytes, sink: Sink | None = None) -> Coroutine[Any, Any, Answer]:
        """Send `body`, give the answer. `sink` takes the body of an event stream. Raises TransportError."""
        carrier = self._own
        if carrier is None:
            assert self._connections is not None
            # Asked each time: an origin that nobody used for a while has been forgotten.
            carrier = self._connections.carrier(self._letter)
        return send(carrier, self._letter, body, self._bounds, sink)

    async def aclose(self) -> None:
        """Close its own connections; shared ones are closed by whoever shares them."""
        if self._own is not None:
            await self._own.aclose()


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
