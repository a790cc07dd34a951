"""Requests to the server under test, over the lean connections of the chat path: the client is not what is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from pydantic_core import to_json

from runner.models.http1 import Pool
from runner.models.http1_connection import Bounds
from runner.models.http1_parser import Answer, ProtocolError

if TYPE_CHECKING:
    import ssl

_LARGEST = 64 * 1024 * 1024


class Unreachable(Exception):
    """The server gave no answer. The message continues the sentence "the server at URL: …"."""


class Untrusted(Unreachable):
    """The server showed a certificate that nobody we believe has signed, or that is another's."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose certificates are believed: those of the authorities in `ca` (a PEM file) alone, else those of the system;
    with `insecure` everybody's."""

    ca: Path | None = None
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        """Raises ValueError when `ca` holds no certificate, OSError when it cannot be read."""
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.ca)
        except ssl.SSLError:
            raise ValueError(f"{self.ca}: holds no certificate in PEM form") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


SYSTEM = Trust()


class Client:
    """Asks one server at `http://host:port` or `https://…`. `key` is its bearer key, or empty.

    Raises ValueError for other URLs, and what `Trust.context` raises.
    """

    def __init__(self, url: str, key: str = "", *, timeout: float = 30.0, trust: Trust = SYSTEM) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{url}` is not an address like http://127.0.0.1:9000 or https://rollouts.example.org")
        self.url = url.rstrip("/")
        self.key = key
        self._base = parts.path.rstrip("/")
        self._host = parts.netloc
        self._timeout = timeout
        tls = trust.context() if parts.scheme == "https" else None
        self._pool = Pool(parts.hostname, parts.port or (80 if tls is None else 443), tls=tls)

    async def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Send one request. `headers` are laid over ours; an empty one is left out. Raises Unreachable."""
        ours = {"host": self._host, "content-type": "application/json"}
        if self.key:
            ours["authorization"] = f"Bearer {self.key}"
        ours |= {name.lower(): value for name, value in (headers or {}).items()}
        lines = [f"{method} {self._base}{path} HTTP/1.1", *(f"{name}: {text}" for name, text in ours.items() if text)]
        head = "\r\n".join(lines).encode("utf-8") + b"\r\ncontent-length: %d\r\n\r\n" % len(body)
        try:
            return await self._pool.post((head, body), Bounds(self._timeout, _LARGEST))
        except TimeoutError:
            raise Unreachable(f"{method} {path}: no answer within {self._timeout:g} s") from None
        except (OSError, ProtocolError) as error:
            if why := getattr(error, "verify_message", ""):
                raise Untrusted(f"its certificate is not trusted: {why}") from None
            raise Unreachable(f"{method} {path}: {error}") from None

    async def post(self, path: str, value: Any) -> Answer:
        """POST a JSON value (bytes as they are). Raises Unreachable."""
        return await self.send("POST", path, value if isinstance(value, bytes) else to_json(value))

    async def status(self, rollout_id: str) -> Answer:
        """`GET /rollout/{id}/status`."""
        return await self.send("GET", f"/rollout/{quote(rollout_id, safe='')}/status")

    async def cancel(
        self, ids: Sequence[str] | None = None, prefix: str | None = None, everything: bool = False
    ) -> Answer:
        """`POST /rollout/cancel` with one selector."""
        selector: dict[str, Any] = {"all": True} if everything else {"prefix": prefix} if ids is None else {"ids": ids}
        return await self.post("/rollout/cancel", selector)

    async def aclose(self) -> None:
        await self._pool.aclose()
