"""`Letter`: the unchanging part of a POST, made once: where it goes, by which way, and its head. No sockets."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.request import getproxies, proxy_bypass

from runner.models.address import Origin, address_of


class Proxies:
    """The proxies that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY ask for, as they stood when it was made."""

    def __init__(self) -> None:
        self._proxies = getproxies()

    def of(self, scheme: str, host: str) -> str | None:
        """The proxy for a host, None for the direct way."""
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if not proxy or proxy_bypass(host):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"


class Letter:
    """Where a POST goes and what its head says, ready to be sent any number of times. A few hundred bytes."""

    __slots__ = ("head", "headers", "origin", "proxy", "url")

    def __init__(self, url: str, headers: Mapping[str, str], proxies: Proxies) -> None:
        """Raises ValueError, with a sentence, for an address to which nothing can be sent."""
        address = address_of(url)
        self.origin: Origin = address.origin
        self.proxy = proxies.of(address.scheme, address.origin[0])
        every = {"content-type": "application/json", "accept-encoding": "identity", **headers}
        self.url = url
        self.headers: Mapping[str, str] = {}
        self.head: bytes | None = None
        if address.scheme == "http" and self.proxy is None:
            lines = "".join([f"{name}: {text}\r\n" for name, text in every.items()])
            self.head = (
                f"POST {address.target} HTTP/1.1\r\nhost: {address.authority}\r\n{lines}content-length: "
            ).encode("latin-1")
        else:
            self.headers = every

    @property
    def direct(self) -> bool:
        """Whether it goes without the library."""
        return self.head is not None
