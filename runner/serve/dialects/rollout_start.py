"""`POST /rollout`: what the starts of the second and third generation have in common, which is nearly everything."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from runner.models.address import header_value
from runner.serve.dialects.addresses import complete, joined
from runner.serve.dialects.fields import Fields, Key, Messages, OptionalUrl, Seconds, cleaned
from runner.serve.start import NOTHING, Chat, Start

PATH = "/rollout"
MODEL = "osmosis-rollout"
LONGEST_ID = 1024


class RolloutFields(Fields):
    """The body, but for `rollout_id` and `llm_api_key`."""

    initial_messages: Messages
    label: str | None = None
    metadata: dict[str, Any] | None = None
    chat_completions_url: str
    controller_api_key: Key | None = None
    completion_callback_url: str
    grader_callback_url: OptionalUrl = None
    agent_timeout_sec: Seconds | None = None
    grader_timeout_sec: Seconds | None = None
    extra_fields: dict[str, Any] | None = None


AnyId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
"""An id of the second generation: any text, `a/b` included. An empty one names nothing: its chat calls would go to
nobody."""


def rollout_start(
    dialect: str, fields: RolloutFields, ids: tuple[str | None, str], chat: Chat, *, deadlines: bool, shape: str
) -> Start:
    """The start; `ids` are the wire's id and what the rollout is called, `deadlines` whether its time-outs count.

    Raises `Refused` (422).
    """
    wire_id, rollout_id = ids
    completion_url = complete("completion_callback_url", fields.completion_callback_url)
    grader_url = fields.grader_callback_url
    if grader_url is not None:
        complete("grader_callback_url", grader_url)
    notes: list[str] = []
    if "x-rollout-id" in chat.headers and chat.headers["x-rollout-id"] != wire_id:
        notes.append("its id is percent-encoded in x-rollout-id: no header can carry it as it is")
    return Start(
        dialect=dialect,
        wire_id=wire_id,
        rollout_id=rollout_id,
        # Two rollouts without a name are not the same one.
        keys=(f"id:{wire_id}",) if wire_id else (),
        prompt=tuple(cleaned(fields.initial_messages, "initial_messages", notes)),
        chat=chat,
        completion_url=completion_url,
        grader_url=grader_url,
        callback_key=fields.controller_api_key or None,
        label=fields.label,
        metadata=cleaned(fields.metadata, "metadata", notes) if fields.metadata else {},
        sampling=NOTHING,
        limits=_limits(fields) if deadlines else NOTHING,
        grade=grader_url is not None,
        shape=shape,
        extra=cleaned(fields.extra_fields, "extra_fields", notes) if fields.extra_fields else {},
        notes=tuple(notes),
    )


def rollout_chat(fields: RolloutFields, key: str | None, wire_id: str | None, sample: str, stream: bool) -> Chat:
    """Where completions come from. Both header names are sent: who routes by its URL does not mind."""
    named = {} if wire_id is None else {"x-rollout-id": header_value(wire_id)}
    return Chat(
        url=joined("chat_completions_url", fields.chat_completions_url, "/chat/completions"),
        key=key or None,
        model=MODEL,
        headers={**named, "x-sample-id": sample},
        # Said also when it is not wanted: without a word, some controllers stream.
        extra={} if stream else {"stream": False},
        stream=stream,
    )


def _limits(fields: RolloutFields) -> dict[str, float]:
    """The two budgets in seconds; one that is not positive is over at once."""
    limits = {}
    if fields.agent_timeout_sec is not None:
        limits["time"] = max(0.0, fields.agent_timeout_sec)
    if fields.grader_timeout_sec is not None:
        limits["grade_time"] = max(0.0, fields.grader_timeout_sec)
    return limits
