"""`Connection`: requests, streams of lines and WebSockets to one server. The only file here that imports aiohttp.

No redirect is followed, since the proof would go with it. Nothing is tried again here, but for one thing: a refused
proof that can change is asked for anew, once.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.credentials import Credentials, Proof
from runner.sandboxes.kubernetes.kubeconfig import Access

if TYPE_CHECKING:
    import aiohttp

Query: TypeAlias = Sequence[tuple[str, str]]

_CONNECT_SECONDS = 15.0
_PING_SECONDS = 20.0
"""How often a quiet socket is pinged: what stands between closes idle ones, some within a minute."""
_MAX_FRAME = 32 << 20
_refusal: ContextVar[list[bytes] | None] = ContextVar("kubernetes_refusal", default=None)


class UnreachableError(Exception):
    """No answer. `began` is whether the server may have had the request."""

    def __init__(self, message: str, *, began: bool) -> None:
        super().__init__(message)
        self.began = began


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` is 101 for a socket that is open; `retry_after` is in seconds, None where the server says nothing."""

    status: int
    body: bytes = b""
    retry_after: float | None = None


class Socket:
    """An open WebSocket. `protocol` is what the server chose, "" for none."""

    def __init__(self, inner: aiohttp.ClientWebSocketResponse) -> None:
        self._inner = inner
        self.protocol = inner.protocol or ""
        self._pinging = asyncio.get_running_loop().create_task(self._ping())

    async def send(self, data: bytes) -> None:
        """Raises `UnreachableError` when it is closed. Waits while the other side does not read."""
        try:
            await self._inner.send_bytes(data)
        except (ConnectionError, RuntimeError, OSError) as error:
            raise UnreachableError(f"the connection broke off: {error}", began=True) from error

    async def receive(self) -> bytes | None:
        """The next binary frame; None when the other side has closed it, or the connection broke."""
        import aiohttp

        while True:
            message = await self._inner.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                data: bytes = message.data
                return data
            if message.type is not aiohttp.WSMsgType.TEXT:
                return None

    async def close(self) -> None:
        """Close it, without waiting long for the other side."""
        self._pinging.cancel()
        with suppress(TimeoutError, ConnectionError, OSError):
            async with asyncio.timeout(1.0):
                await self._inner.close()

    async def _ping(self) -> None:
        # No deadline on the pong: a server that waits for a command to read its input answers none, and is well.
        with suppress(ConnectionError, RuntimeError, OSError):
            while True:
                await asyncio.sleep(_PING_SECONDS)
                await self._inner.ping()


class Connection:
    """To the server of `access`, with its proof. Bound to the event loop of its first use."""

    def __init__(self, access: Access, credentials: Credentials | None = None) -> None:
        self.access = access
        self._credentials = credentials or Credentials(access)
        self._session: aiohttp.ClientSession | None = None
        self._session_of: tuple[bytes | None, bytes | None] | None = None
        self._old: list[aiohttp.ClientSession] = []
        self._proxy = access.proxy or _proxy_of(access.server)
        self._closed = False

    async def send(
        self, method: str, path: str, *, query: Query = (), body: Any = None, kind: str = "json", seconds: float = 30.0
    ) -> Answer:
        """One request; `kind` is of the body: json, or merge-patch+json. Raises `UnreachableError`, `SandboxError`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": f"application/{kind}"}
        async with (
            _told(seconds, f"no answer within {seconds:g} s"),
            self._asked(method, path, query, data, headers) as (response),
        ):
            return Answer(response.status, await response.read(), _seconds(response.headers.get("Retry-After")))

    async def lines(self, path: str, *, query: Query, seconds: float) -> AsyncIterator[bytes]:
        """The lines of an answer as they come, for at most `seconds`; an answer other than 200 is one line: its body.

        Raises `UnreachableError` when it breaks off, `TimeoutError` when the time is over, `SandboxError`.
        """
        async with asyncio.timeout(seconds), _told(None, ""), self._asked("GET", path, query, None, {}) as response:
            if response.status != 200:
                yield await response.read()
                return
            rest = b""
            async for chunk in response.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line

    async def socket(self, path: str, *, query: Query, protocols: Sequence[str]) -> Socket | Answer:
        """An open socket, or the answer of a server that refuses. Raises `UnreachableError`, `SandboxError`."""
        for last in (False, True):
            proof = await self._credentials.proof()
            made = await self._handshake(proof, path, query, protocols)
            if isinstance(made, Socket) or made.status != 401 or last or not self._credentials.can_change:
                return made
            self._credentials.refused(proof)
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        self._closed = True
        for session in [*self._old, *([self._session] if self._session is not None else [])]:
            await session.close()
        self._old.clear()
        self._session = self._session_of = None

    async def _handshake(self, proof: Proof, path: str, query: Query, protocols: Sequence[str]) -> Socket | Answer:
        import aiohttp

        # The library throws away what a server says to a refused handshake; a tracer of the session keeps it.
        bodies: list[bytes] = []
        mark = _refusal.set(bodies)
        try:
            async with _told(_CONNECT_SECONDS, "the connection was not opened in time"):
                session = await self._open(proof)
                inner = await session.ws_connect(
                    self.access.server + path,
                    params=list(query),
                    protocols=protocols,
                    headers=_headers(proof),
                    proxy=self._proxy,
                    server_hostname=self.access.tls_name,
                    max_msg_size=_MAX_FRAME,
                    autoclose=True,
                )
                return Socket(inner)
        except aiohttp.WSServerHandshakeError as error:
            after = error.headers.get("Retry-After") if error.headers is not None else None
            return Answer(error.status, b"".join(bodies), _seconds(after))
        finally:
            _refusal.reset(mark)

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, query: Query, data: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        for last in (False, True):
            proof = await self._credentials.proof()
            session = await self._open(proof)
            response = await session.request(
                method,
                self.access.server + path,
                params=list(query),
                data=data,
                headers={"Accept": "application/json", **headers, **_headers(proof)},
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self.access.tls_name,
            )
            async with response:
                if response.status != 401 or last or not self._credentials.can_change:
                    yield response
                    return
            self._credentials.refused(proof)

    async def _open(self, proof: Proof) -> aiohttp.ClientSession:
        import aiohttp

        if self._closed:
            raise UnreachableError("the run has ended", began=False)
        wanted = (proof.certificate, proof.key)
        if self._session is None or self._session_of != wanted:
            tls: ssl.SSLContext | bool = True
            if self.access.server.startswith("https:"):
                tls = await asyncio.to_thread(_tls, self.access, proof)
            if self._session is not None:
                self._old.append(self._session)  # sockets of it may still be open
            tracer = aiohttp.TraceConfig()
            tracer.on_request_end.append(_keep_refusal)
            connector = aiohttp.TCPConnector(ssl=tls, limit=0)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trace_configs=[tracer])
            self._session_of = wanted
        return self._session


async def _keep_refusal(session: Any, context: Any, params: Any) -> None:
    kept = _refusal.get()
    if kept is not None and params.response.status != 101:
        kept.append((await params.response.read())[:65536])


@asynccontextmanager
async def _told(seconds: float | None, late: str) -> AsyncIterator[None]:
    """The library's errors in our words."""
    import aiohttp

    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except aiohttp.ServerTimeoutError as error:
        raise UnreachableError("the server cannot be reached: no connection in time", began=False) from error
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise UnreachableError(late, began=True) from error
    except aiohttp.WSServerHandshakeError:
        raise
    except aiohttp.ClientConnectorError as error:
        raise UnreachableError(f"the server cannot be reached: {error}", began=False) from error
    except (aiohttp.ClientError, ConnectionError, ssl.SSLError) as error:
        raise UnreachableError(f"the connection broke off: {str(error) or type(error).__name__}", began=True) from error


def _headers(proof: Proof) -> dict[str, str]:
    return {} if proof.authorization is None else {"Authorization": proof.authorization}


def _seconds(text: str | None) -> float | None:
    """A Retry-After in seconds; one that is a date is none: a server of this kind never says one."""
    return float(text) if text is not None and text.isdecimal() else None


def _tls(access: Access, proof: Proof) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.ca.decode() if access.ca is not None else None)
        if access.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if proof.certificate is not None:
            with tempfile.TemporaryDirectory() as folder:  # private to us; the library reads only files
                held = Path(folder) / "held.pem"
                held.touch(mode=0o600)
                held.write_bytes(proof.certificate + b"\n" + (proof.key or b""))
                context.load_cert_chain(held)
    except (ssl.SSLError, ValueError) as error:
        message = f"no way to a cluster: the certificates of {access.where} cannot be used: {error}"
        raise SandboxError(message, kind="sandbox_unavailable") from error
    return context


def _proxy_of(server: str) -> str | None:
    """The proxy that the usual variables name for a server."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(server)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
