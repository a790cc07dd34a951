"""Where an MCP server is: a command that is started, or an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING: Mapping[str, str] = MappingProxyType({})

MAX_MESSAGE = 32 << 20
"""Bytes of one message of a server; one that sends more is cut off."""


class Flooded(Exception):
    """A server sent more than anybody could want. The message says what."""


@dataclass(frozen=True, slots=True)
class CommandEndpoint:
    """A server that is a program of this machine, spoken to over its standard input and output.

    It gets `env`, and of ours only PATH, HOME and the like. Whatever it starts ends with it.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    cwd: str | None = None

    def __str__(self) -> str:
        return f"`{' '.join(self.argv)[:120]}`"


@dataclass(frozen=True, slots=True)
class UrlEndpoint:
    """A server at an address (streamable HTTP). Redirects are not followed: `headers` may hold a key."""

    url: str
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    def __str__(self) -> str:
        return f"`{self.url.partition('?')[0]}`"


Endpoint = CommandEndpoint | UrlEndpoint
