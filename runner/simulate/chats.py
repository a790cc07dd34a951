"""What is wrong with a chat call, as the controller of its dialect sees it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from runner.simulate.decode import Finding
from runner.simulate.history import History
from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE


def chat_findings(history: History, headers: Mapping[str, str], asked: Mapping[str, Any]) -> Iterator[Finding]:
    """What one chat call has wrong by itself."""
    if "json" not in headers.get("content-type", ""):
        yield "content-type", f"a chat call came as {headers.get('content-type')!r}"
    messages = asked.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        yield "chat-shape", "`messages` is not a list of objects"
        messages = []
    if history.dialect == AGENT_LOOP:
        if asked.get("tools"):
            yield "chat-tools", f"{len(asked['tools'])} tools came with the call"
        return
    if "stream" not in asked:
        yield "chat-stream", "`stream` is not in the body"
    named = headers.get("x-rollout-id")
    # A header carries ASCII: an id with other signs comes percent-encoded, whoever sends it.
    if named is not None and history.rollout_id not in (named, unquote(named)):
        yield "id-mismatch", f"x-rollout-id is {named!r}"
    if history.dialect == MULTI_SAMPLE:
        yield from _several_parts(messages)


def _several_parts(messages: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for message in messages:
        content = message.get("content")
        texts = [part for part in content if _is_text(part)] if isinstance(content, list) else []
        if len(texts) > 1:
            yield "chat-parts", f"a {message.get('role')} message came in {len(texts)} text parts"
            return


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def is_first_turn(asked: Mapping[str, Any], prompt: int) -> bool:
    """Whether a chat call carries nothing but the prompt (of so many messages, a system message perhaps added)."""
    messages = asked.get("messages")
    if not isinstance(messages, list) or len(messages) > prompt + 1:
        return False
    return not any(isinstance(message, Mapping) and message.get("role") == "tool" for message in messages)
