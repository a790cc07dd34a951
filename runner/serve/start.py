"""`Start`: what a controller asked for, whatever its generation of the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from runner.records.message import Message
from runner.records.quick import quick

NOTHING: Mapping[str, Any] = MappingProxyType({})


@quick
class Chat:
    """Where completions come from: `url` is complete, `key` a bearer or None, `extra` goes into each body.

    `tools` says whether chat requests carry the tool list: agent-loop controllers know it from the start's answer.
    """

    url: str
    key: str | None
    model: str
    headers: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    extra: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    tools: bool = True
    stream: bool = False


@quick
class Start:
    """One rollout as a controller asked for it.

    `wire_id` is the id as it was sent, None if none was; `rollout_id` the same, or one of ours. `keys` are what makes
    a repeated request the same one, each in its own namespace (`id:…`, `key:…`). `sampling` and `limits` are overrides
    by key of `[sampling]` and `[limits]`. `grade` is False when nobody wants a reward. `shape` tells callbacks of one
    dialect apart ("sample", "samples", "both").
    """

    dialect: str
    wire_id: str | None
    rollout_id: str
    keys: tuple[str, ...]
    prompt: tuple[Message, ...]
    chat: Chat
    completion_url: str
    grader_url: str | None = None
    callback_key: str | None = None
    label: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    sampling: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    limits: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    grade: bool = True
    shape: str = ""
    extra: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """What the request carried besides, kept for the archive (`extra_fields`)."""
    notes: tuple[str, ...] = ()
    """What was dropped or changed on the way in, for the log."""


class Refused(Exception):
    """A request that is answered with an error. `detail` is the JSON value of the answer's `detail`."""

    def __init__(self, status: int, detail: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail if isinstance(detail, str) else str(detail))
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
