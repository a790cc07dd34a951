"""`Letter`: the unchanging part of a POST, made once: where it goes, by which way, and its head. No sockets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias
from urllib.request import getproxies, proxy_bypass

from runner.models.address import Origin, address_of, start_of

_MANY = 1024
_ALWAYS = {"content-type": "application/json", "accept-encoding": "identity"}
_ALWAYS_LINES = "".join([f"{name}: {text}\r\n" for name, text in _ALWAYS.items()])

Way: TypeAlias = tuple[Origin, str | None, str]
"""Where letters of one scheme, host and port go: the origin, the proxy, and the head from behind the target up to the
headers; "" for those that the library sends."""


class Proxies:
    """The proxies that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY ask for, as they stood when it was made."""

    def __init__(self) -> None:
        self._proxies = getproxies()
        self._ways: dict[str, Way] = {}

    def of(self, scheme: str, host: str) -> str | None:
        """The proxy for a host, None for the direct way."""
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if not proxy or proxy_bypass(host):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"

    def way(self, url: str) -> tuple[Way, str]:
        """By which way a letter to `url` goes, and its target. Raises ValueError, with a sentence."""
        start = start_of(url)
        way = self._ways.get(start)
        if way is not None:
            return way, url[len(start) :]
        address = address_of(url)
        proxy = self.of(address.scheme, address.origin[0])
        direct = address.scheme == "http" and proxy is None
        way = address.origin, proxy, f" HTTP/1.1\r\nhost: {address.authority}\r\n" if direct else ""
        if start and len(self._ways) < _MANY:
            self._ways[start] = way
        return way, address.target


class Letter:
    """Where a POST goes and what its head says, ready to be sent any number of times. A few hundred bytes."""

    __slots__ = ("head", "headers", "origin", "proxy", "url")

    def __init__(self, url: str, headers: Mapping[str, str], proxies: Proxies) -> None:
        """Raises ValueError, with a sentence, for an address to which nothing can be sent."""
        (origin, proxy, rest), target = proxies.way(url)
        self.origin: Origin = origin
        self.proxy = proxy
        self.url = url
        self.headers: Mapping[str, str] = {}
        self.head: bytes | None = None
        if not rest:
            self.headers = {**_ALWAYS, **headers}
            return
        always = _ALWAYS_LINES
        if not headers.keys().isdisjoint(_ALWAYS):
            always, headers = "", {**_ALWAYS, **headers}
        head = f"POST {target}{rest}{always}"
        for name, text in headers.items():
            head += f"{name}: {text}\r\n"
        self.head = f"{head}content-length: ".encode("latin-1")

    @property
    def direct(self) -> bool:
        """Whether it goes without the library."""
        return self.head is not None
