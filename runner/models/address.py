"""What a URL says to the one who sends: which host, what to write into the request line. Pure; no sockets.

The URL may come from a stranger (a controller names its own endpoints), so nothing of it reaches the wire unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

Origin: TypeAlias = tuple[str, int]
"""Host and port."""

_PORTS = {"http": 80, "https": 443}
_AS_IT_IS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""What may stand in a request line: anything printable but the space. An escape that is there stays one."""
_PLAIN = re.compile(r"https?://[A-Za-z0-9.:-]+/[!-\"$->@-~]*(?:\?[!-\"$-~]+)?")
"""An address that goes out as it stands, behind a host without oddities: nearly all of them."""


_PRINTABLE = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")


def header_value(text: str) -> str:
    """`text` if a header carries it unchanged, else percent-encoded."""
    fits = text.isascii() and text.isprintable() and text == text.strip()
    return text if fits else quote(text, safe=_PRINTABLE + " " if text == text.strip() else _PRINTABLE)


class Address(NamedTuple):
    """`authority` is the `host` header, `target` what stands behind `POST`."""

    scheme: str
    origin: Origin
    authority: str
    target: str


def start_of(url: str) -> str:
    """Everything before the path of a URL that goes out as it stands: what many have in common; "" for any other."""
    end = url.find("/", 8)
    return url[:end] if end > 0 and _PLAIN.fullmatch(url) is not None else ""


def address_of(url: str) -> Address:
    """Take a URL apart; user and password are left out. Raises ValueError, with a sentence."""
    start = start_of(url)
    if start:
        scheme, origin, authority = _place_of(start)
        return Address(scheme, origin, authority, url[len(start) :])
    return _any_address(url)


@lru_cache(1024)
def _place_of(start: str) -> tuple[str, Origin, str]:
    """What many URLs have in common: everything before the path."""
    address = _any_address(start)
    return address.scheme, address.origin, address.authority


def _any_address(url: str) -> Address:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("the address is not one of http or https with a host")
    host, authority = parts.hostname, parts.netloc.rpartition("@")[2]
    if not url.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise ValueError("the host of the address is no name") from None
        authority = host if parts.port is None else f"{host}:{parts.port}"
    if not authority.isprintable() or " " in authority:
        raise ValueError("the host of the address is no name")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, (host, parts.port or _PORTS[parts.scheme]), authority, quote(target, safe=_AS_IT_IS))


def unsendable_header(headers: Mapping[str, str]) -> str:
    """The name of the first header that HTTP cannot carry; empty if all can be sent."""
    every = "".join([*headers, *headers.values()])
    if every.isprintable() and every.isascii():  # all of them, nearly always
        return ""
    for name, text in headers.items():
        if not (text.isprintable() and text.isascii() and name.isprintable() and name.isascii()):
            return name
    return ""
