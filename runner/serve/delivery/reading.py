"""What a controller's answer to a callback means: heard, try again, or give up this callback.

Any 2xx acknowledges, whatever its body. 408, 425, 429 and 5xx pass, and so does a 404 that a controller did not write
itself: proxies answer it while the controller behind them restarts. All other answers are the controller's last word
on this callback, which posting the same payload again would not change; a different payload is never posted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Meaning: TypeAlias = Literal["acknowledged", "again", "absent", "refused"]
"""`absent` is a 404 of somebody who may not be the controller."""

MAX_ACK = 8 * 1024 * 1024
"""Bytes of an acknowledgement that are read."""

_PASSING = frozenset({408, 425, 429})
_WORDS = {
    400: "it finds the callback malformed; its log says why",
    401: "it does not accept the callback's key; it must send the key that it checks with the start",
    403: "it does not accept the callback's key; it must send the key that it checks with the start",
    404: "it does not know this rollout under its callback URL; most likely it was restarted or the URL is wrong",
    405: "the callback URL takes no POST; it must be the address of a callback listener",
    409: "it holds another result for this rollout; the first one it took stands",
    410: "it no longer wants this rollout's result",
    413: "the body is too large for it; raise its limit, or set `[serve] max_messages`",
    422: "it finds the callback malformed; its log says why",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """`problem` continues the sentence "the callback was not delivered: …"; it is empty for an acknowledgement."""

    meaning: Meaning
    problem: str = ""


HEARD = Reading("acknowledged")
UNUSABLE = Reading("refused", "its URL cannot be posted to: it must be http:// or https:// with a host, in plain ASCII")


def read(status: int, headers: Mapping[str, str], body: bytes) -> Reading:
    """What an answer means. Header names are in lower case."""
    if 200 <= status < 300:
        return HEARD
    if status >= 500 or status in _PASSING:
        return Reading("again", f"the controller answered {status}")
    if 300 <= status < 400:
        return Reading("refused", _redirect(status, headers.get("location", "")))
    if status == 404 and not _is_object(body):
        return Reading("absent", f"the controller, or a proxy before it, answered 404: {_WORDS[404]}")
    return Reading("refused", f"the controller answered {status}: {_WORDS.get(status, 'it refuses the callback')}")


def _is_object(body: bytes) -> bool:
    """Whether a body is a JSON object, as the errors of controllers are; proxies answer in HTML or plain text."""
    text = body[:4096].strip()
    return text.startswith(b"{") and text.endswith(b"}")


def _redirect(status: int, location: str) -> str:
    try:
        parts = urlsplit(location)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    # Only the host is repeated: a URL may hold secrets, and is as long as its author likes.
    where = f" to {host[:100]!r}" if host else ""
    return (
        f"the controller answered {status}, a redirect{where}: redirects are not followed, since they would carry the"
        " key and the result to another address; the callback URL must be the final one"
    )
