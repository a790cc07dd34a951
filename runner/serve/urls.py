"""`UrlPolicy`: which URLs a start may name for chat and callbacks. No name is ever looked up.

A URL is read by one strict grammar, not by a lenient parser: what two programs might read differently (credentials,
backslashes, dot segments, odd hosts) is refused, so that what was matched is what will be called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from runner.serve.start import Refused, Start

_PORTS = {"http": "80", "https": "443"}
_URL = re.compile(r"([^/?#]*//[^/?#]*)(/[!-\"$-.0->@-\[\]-~/]*)?(\?[!-\"$-\[\]-~]*)?", re.ASCII)
"""Origin, path and query."""
_ORIGIN = re.compile(
    r"(?P<scheme>[hH][tT][tT][pP][sS]?)://"
    r"(?P<host>[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{0,5}))?",
    re.ASCII,
)
_PATTERN = re.compile(
    r"(?P<scheme>[a-z*]+)://(?P<host>\[[^\]/@]+\]|[^:/@\[\]]+)(?::(?P<port>\*|[0-9]{1,5}))?(?P<path>/.*)?"
)
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+/?")
"""What nearly all have behind their origin: segments of which none could be `.` or `..`, and no query."""
_DOTS = re.compile(r"(?:/|%2f|%5c)(?:\.|%2e){1,2}(?:/|%2f|%5c|$)", re.IGNORECASE)
_MAY_HAVE_DOTS = re.compile(r"/\.|%[25]")

_FIELDS = {"agent-loop": ("server_url", "server_url", "server_url")}
_OTHERS = ("chat_completions_url", "completion_callback_url", "grader_callback_url")
"""By dialect: what the wire calls the URL of chat, of the completion callback, of the grader callback."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    scheme: re.Pattern[str]
    host: re.Pattern[str]
    port: str
    path: re.Pattern[str]

    def takes(self, scheme: str, host: str, port: str, path: str) -> bool:
        wanted = self.port or _PORTS[scheme]
        return (
            (wanted in ("*", port))
            and self.scheme.fullmatch(scheme) is not None
            and self.host.fullmatch(host) is not None
            and self.path.fullmatch(path) is not None
        )


class UrlPolicy:
    """`patterns` are `scheme://host[:port][/path]`, with `*` for anything inside one of the four.

    Without a port a pattern means the scheme's own, with `*` as its host any; without a path it means any.
    Raises ValueError, naming the pattern, for one that is none.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._shown = tuple(patterns)
        self._patterns = tuple(map(_compiled, self._shown))
        open_to = {each.scheme.pattern for each in self._patterns if _takes_any(each)}
        # The usual case, everything allowed, is decided by the grammar alone.
        self._any = frozenset({"http", "https"}) if ".*" in open_to else frozenset(open_to)
        self._open = len(self._any) == len(_PORTS)

    def check(self, field: str, url: str, *, query: bool = True) -> None:
        """Raise `Refused` (422, naming `field`) unless `url` may be called. With `query=False` it may have none."""
        if why := self.forbidden(url, query=query):
            raise refused_url(field, why)

    def forbidden(self, url: str, *, query: bool = True) -> str:
        """Why `url` may not be called, as what is said of it; "" if it may."""
        found = _lately_read(url) if len(url) < _SHORT else read_url(url)
        if isinstance(found, str):
            return found
        where, has_query = found
        if has_query and not query:
            return HAS_QUERY
        if where[0] not in self._any and not any(pattern.takes(*where) for pattern in self._patterns):
            return "is not among the addresses that `[serve] allow_callbacks` lets this server call"
        return ""

    def barred(self, url: str) -> str:
        """`forbidden` of a URL that was read by this grammar before: only the patterns may have changed since."""
        return "" if self._open else self.forbidden(url)

    def check_start(self, start: Start) -> None:
        """Raise `Refused`, naming the field of the wire, unless each URL of a start may be called.

        Its dialect has read them by this grammar: where all of that may be called, nothing is left to be asked.
        """
        if self._open:
            return
        chat, completion, grader = _FIELDS.get(start.dialect, _OTHERS)
        joined = start.dialect == "agent-loop"
        self.check(chat, start.chat.url, query=False)
        self.check(completion, start.completion_url, query=not joined)
        if start.grader_url:
            self.check(grader, start.grader_url)


HAS_QUERY = "has a query, and a path must be put after it"


def read_url(url: str) -> tuple[tuple[str, str, str, str], bool] | str:
    """Scheme, host, port and path of a URL, and whether it has a query; or what is wrong with it."""
    end = url.find("/", len("https://"))
    if end < 0:
        end = len(url)
    if end == len(url) or _PLAIN_PATH.fullmatch(url, end) is not None:
        origin = _origin(url[:end])
        if isinstance(origin, tuple):
            return (*origin, url[end:] or "/"), False
    return _read_any(url)


def _read_any(url: str) -> tuple[tuple[str, str, str, str], bool] | str:
    found = _URL.fullmatch(url)
    if found is None:
        return _fault(url)
    start, path, query = found.groups()
    origin = _origin(start)
    if origin is None:
        return _fault(url)
    path = path or "/"
    if _MAY_HAVE_DOTS.search(path) is not None and _DOTS.search(path) is not None:
        return "has `.` or `..` as a part of its path"
    return origin if isinstance(origin, str) else ((*origin, path), query is not None)


@lru_cache(256)
def _origin(start: str) -> tuple[str, str, str] | str | None:
    """Scheme, host and port, which many URLs have in common; or what is wrong with them; None: they are none."""
    found = _ORIGIN.fullmatch(start)
    if found is None:
        return None
    scheme, host, port = found.groups()
    scheme = scheme.lower()
    if host[0] == "[":
        try:
            host = _ipv6(host)
        except AddressValueError:
            return "has no valid IPv6 address as its host"
    port = port or _PORTS[scheme]
    if not 0 < int(port) <= 65535:
        return f"has the port {port}, which cannot be called"
    return scheme, host.lower().removesuffix("."), str(int(port))


_SHORT = 512
_lately_read = lru_cache(4096)(read_url)
"""Where not every address is allowed, a start's URLs are checked by the operator's policy, and those of callbacks again
when their turn comes: room for three of each of a thousand rollouts in flight."""


def field_error(field: str, kind: str, message: str) -> list[dict[str, Any]]:
    """The `detail` of a 422 for one field of the body, shaped as the SDK's servers shape it."""
    return [{"type": kind, "loc": ["body", *([field] if field else [])], "msg": message}]


def refused_url(field: str, why: str) -> Refused:
    """A 422 about the URL in one field of the body."""
    # The URL is not repeated: it may hold a secret.
    return Refused(422, field_error(field, "url", f"the URL {why}"))


_FAULTS = (
    (r"", "is empty"),
    (r"(?s).*[^!-~].*", "holds a blank or a character that is not ASCII; percent-encode it (a host: as xn--…)"),
    (r".*\\.*", "holds a backslash"),
    (r"(?!https?://).*", "must begin with http:// or https://"),
    (r"https?://[^/?#]*@.*", "holds credentials before `@`; pass a key in its own field"),
    (r"https?://([/?#:].*)?", "names no host"),
    (r".*#.*", "has a fragment (`#`), which is never sent"),
)
"""What a URL that the grammar does not take may be, the likeliest first."""


def _fault(url: str) -> str:
    shown = url[:4096].lower()
    found = (words for pattern, words in _FAULTS if re.fullmatch(pattern, shown) is not None)
    return next(found, "has no valid host, port or path")


def _ipv6(host: str) -> str:
    return f"[{IPv6Address(host[1:-1]).compressed}]"


def _takes_any(pattern: _Pattern) -> bool:
    return pattern.host.pattern == ".*" and pattern.port == "*" and pattern.path.pattern == ".*"


def _compiled(text: str) -> _Pattern:
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text}` is no pattern of a URL: scheme://host[:port][/path], such as https://*.example/*")
    scheme, host, port, path = found["scheme"], found["host"].lower().removesuffix("."), found["port"], found["path"]
    if "*" not in scheme and scheme not in _PORTS:
        raise ValueError(f"`{text}` can never match: URLs are called over http and https only")
    if host.startswith("[") and "*" not in host:
        try:
            host = _ipv6(host)
        except AddressValueError:
            raise ValueError(f"`{text}` has no valid IPv6 address as its host") from None
    port = port or ("*" if host == "*" else "")
    return _Pattern(_glob(scheme), _glob(host), port, _glob("*" if path in (None, "/*") else path))


def _glob(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
