"""The channels of `pods/exec` over a WebSocket, versions 5 and 4, without any I/O.

A frame is a byte that names the channel and then data, cut anywhere. Version 5 can end the input; version 4 cannot, so
whoever reads it has to be told its length. How a command ended is a `Status` on the channel of errors, the last thing
that a server says; without it nobody knows how, and that is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

STDIN, STDOUT, STDERR, ERROR = 0, 1, 2, 3
CLOSE = b"\xff\x00"
"""Version 5: the input ends here."""
V5 = "v5.channel.k8s.io"

_FRAME = 256 << 10
"""Bytes of input in a frame. Servers drop the connection at one over 32 MiB; each holds a whole frame in memory."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: `code`, or where it has none, in `trouble` why it never ran or was not seen to its end."""

    code: int | None
    trouble: str = ""


def frames(data: bytes) -> Iterator[bytes]:
    """Input as frames."""
    view = memoryview(data)
    for start in range(0, len(view), _FRAME):
        yield bytes([STDIN]) + view[start : start + _FRAME]


class Status:
    """Hears the channel of errors, whose frames are cut anywhere as well."""

    def __init__(self) -> None:
        self._heard = bytearray()
        self._ended: Ended | None = None

    def add(self, data: bytes) -> None:
        if self._ended is None and len(self._heard) < 1 << 20:
            self._heard += data
            if data.rstrip().endswith(b"}"):
                self._ended = _parsed(bytes(self._heard))

    @property
    def ended(self) -> Ended | None:
        """None while the server has not said it."""
        return self._ended

    def said(self) -> str:
        """What came that is no status, for a message."""
        return bytes(self._heard[:300]).decode("utf-8", "replace")


def _parsed(heard: bytes) -> Ended | None:
    try:
        told = json.loads(heard)
    except ValueError:
        return None  # more is to come
    if not isinstance(told, dict):
        return None
    if told.get("status") == "Success":
        return Ended(0)
    code = _exit_code(told) if told.get("reason") == "NonZeroExitCode" else None
    return Ended(code, "" if code is not None else str(told.get("message") or told.get("reason") or "no reason given"))


def _exit_code(told: Mapping[str, Any]) -> int | None:
    details = told.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode":
            text = str(cause.get("message", ""))
            return int(text) if text.isdecimal() else None
    return None
