"""The chat wire, outwards: a conversation to the bytes of a request, and what to leave out where it is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from runner.records.completion import Sampling, ToolSpec
from runner.records.failure import ModelRefused
from runner.records.message import Message
from runner.records.quick import quick

_REASONING_STYLE = re.compile(r"(o\d|gpt-5|gpt-6|codex)", re.IGNORECASE)
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_FOR_IDS = ("return_token_ids", "logprobs")


def max_tokens_key(model: str, host: str) -> str:
    """What the endpoint calls the limit of the answer: only OpenAI's own reasoning models know the newer name alone."""
    return "max_completion_tokens" if host == "api.openai.com" and _REASONING_STYLE.match(model) else "max_tokens"


@quick
class Options:
    """What a request asks for besides the conversation.

    `token_ids` asks for ids and log-probabilities, `stream_usage` for the usage at the end of a stream. `say_stream`
    sends `stream` also where it is false: some servers stream unless they are told not to.
    """

    stream: bool = False
    say_stream: bool = False
    stream_usage: bool = True
    token_ids: bool = False
    max_tokens_key: str = "max_tokens"

    def milder(self, said: str, ids_may_go: bool) -> tuple[Options, bool] | None:
        """What to ask instead after a refusal in these words, and whether they named what was too much.

        None if there is nothing to leave out. Each step leaves out more, so a loop over it ends.
        """
        if self.max_tokens_key == "max_tokens" and "max_completion_tokens" in said:
            return replace(self, max_tokens_key="max_completion_tokens"), True
        if self.stream and self.stream_usage and "stream_options" in said:
            return replace(self, stream_usage=False), True
        if self.token_ids and ids_may_go:
            return replace(self, token_ids=False), any(name in said for name in _FOR_IDS)
        return None


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    sampling: Sampling,
    options: Options,
    extra: Mapping[str, Any] = _NOTHING,
) -> bytes:
    """The compact JSON body; `extra` has the last word. Raises ModelRefused if something in it cannot be sent."""
    body: dict[str, Any] = {"model": model, "messages": messages}
    if tools:
        body["tools"] = [tool.wire() for tool in tools]
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        body["top_p"] = sampling.top_p
    if sampling.max_tokens is not None:
        body[options.max_tokens_key] = sampling.max_tokens
    if sampling.stop:
        body["stop"] = sampling.stop
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if options.stream:
        body["stream"] = True
        if options.stream_usage:
            body["stream_options"] = {"include_usage": True}
    elif options.say_stream:
        body["stream"] = False
    if options.token_ids:
        body["return_token_ids"] = True
        body["logprobs"] = True
    if sampling.extra:
        body.update(sampling.extra)
    if extra:
        body.update(extra)
    try:
        return to_json(body)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise ModelRefused(
            unsendable(messages, tools, sampling, extra) or f"the request is not JSON: {error}"
        ) from None


def text_joined(messages: Sequence[Message]) -> Sequence[Message]:
    """The same messages, with a text in place of each content that is a list of nothing but text parts.

    Some servers read only the first part. A content with anything else in it, such as an image, stays as it is.
    """
    for message in messages:
        if isinstance(message.get("content"), list):
            break
    else:
        return messages
    return [{**message, "content": _joined(message["content"])} if "content" in message else message
            for message in messages]  # fmt: skip


def _joined(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    texts: list[str] = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else part
        if not isinstance(text, str):
            return content
        texts.append(text)
    return "".join(texts)


def unsendable(
    messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, extra: Mapping[str, Any] = _NOTHING
) -> str:
    """Which part of a request cannot be sent, and why; empty if all of it can."""
    parts: list[tuple[str, Any]] = [
        (f"message {n + 1} ({message.get('role')})", message) for n, message in enumerate(messages)
    ]
    parts += [(f"the tool `{tool.name}`", tool.wire()) for tool in tools]
    parts += [("[sampling] extra", dict(sampling.extra)), ("[sampling] stop", sampling.stop), ("extra", dict(extra))]
    for name, value in parts:
        try:
            to_json(value)
        except Exception as error:  # any way of not being JSON: we only look for its place
            if "surrogates not allowed" in str(error):
                return f"{name} holds a lone surrogate (half a UTF-16 pair), which JSON cannot carry; clean the text"
            return f"{name} cannot be sent as JSON: {error}"
    return ""
