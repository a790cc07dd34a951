"""The chat wire: a request to bytes, a body to a `Completion`. Pure functions.

What an endpoint gives is kept as it gave it; only what cannot be an answer is refused, with a sentence that says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pydantic_core import PydanticSerializationError, from_json, to_json

from runner.models.price import Price
from runner.records.completion import Completion, Sampling, ToolSpec, Usage
from runner.records.failure import ModelGarbled, ModelRefused
from runner.records.message import Message

_REASONING_STYLE = re.compile(r"(o\d|gpt-5|gpt-6|codex)", re.IGNORECASE)
_KNOWN_TOP = frozenset({"id", "object", "created", "model", "choices", "usage", "prompt_token_ids"})
_KNOWN_CHOICE = frozenset({"index", "message", "finish_reason", "logprobs", "token_ids", "prompt_token_ids"})
_REASONING_KEYS = ("reasoning_content", "reasoning")


def max_tokens_key(model: str, host: str) -> str:
    """What the endpoint calls the limit of the answer: only OpenAI's own reasoning models know the newer name alone."""
    return "max_completion_tokens" if host == "api.openai.com" and _REASONING_STYLE.match(model) else "max_tokens"


@dataclass(frozen=True, slots=True)
class Options:
    """What a request asks for besides the conversation. `token_ids` asks for ids and log-probabilities."""

    stream: bool = False
    token_ids: bool = False
    max_tokens_key: str = "max_tokens"


def request_body(
    model: str, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, options: Options
) -> bytes:
    """The compact JSON body. Raises ModelRefused if something in it cannot be sent."""
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
        body["stream_options"] = {"include_usage": True}
    if options.token_ids:
        body["return_token_ids"] = True
        body["logprobs"] = True
    if sampling.extra:
        body.update(sampling.extra)
    try:
        return to_json(body)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise ModelRefused(unsendable(messages, tools, sampling) or f"the request is not JSON: {error}") from None


def unsendable(messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling) -> str:
    """Which part of a request cannot be sent, and why; empty if all of it can."""
    parts: list[tuple[str, Any]] = [
        (f"message {n + 1} ({message.get('role')})", message) for n, message in enumerate(messages)
    ]
    parts += [(f"the tool `{tool.name}`", tool.wire()) for tool in tools]
    parts += [("[sampling] extra", dict(sampling.extra)), ("[sampling] stop", sampling.stop)]
    for name, value in parts:
        try:
            to_json(value)
        except Exception as error:  # any way of not being JSON: we only look for its place
            if "surrogates not allowed" in str(error):
                return f"{name} holds a lone surrogate (half a UTF-16 pair), which JSON cannot carry; clean the text"
            return f"{name} cannot be sent as JSON: {error}"
    return ""


def parse_json(body: bytes) -> Any:
    """The JSON value of an answer. Raises ModelGarbled, with an excerpt."""
    try:
        return from_json(body)
    except ValueError as error:
        what = "an HTML page" if body[:200].lstrip().lower().startswith((b"<!doctype", b"<html")) else "no JSON"
        raise ModelGarbled(f"the answer is {what} ({error}): {excerpt(body)}") from None


def excerpt(body: bytes | str, length: int = 300) -> str:
    """The start of a body in one line, for an error text."""
    text = body[: length * 8].decode("utf-8", "replace") if isinstance(body, bytes) else body
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not text:
        return "(empty)"
    return text if len(text) <= length else text[: length - 1] + "…"


def parse_answer(answer: Any, *, latency: float = 0.0, price: Price | None = None) -> Completion:
    """A `chat.completion` object as a `Completion`. Raises ModelGarbled; a body with `error` is the caller's to see.

    `latency` is what the answer took, in seconds.
    """
    if not isinstance(answer, dict):
        raise ModelGarbled(f"the answer is not a JSON object but {_kind(answer)}")
    choice = _first_choice(answer)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ModelGarbled(f"`choices[0].message` is not an object but {_kind(message)}")
    finish_reason = choice.get("finish_reason")
    if finish_reason is not None and not isinstance(finish_reason, str):
        raise ModelGarbled(f"`finish_reason` is not a string but {_kind(finish_reason)}")
    clean, reasoning, rest = _split_message(message)
    prompt_ids = answer.get("prompt_token_ids")
    usage = parse_usage(answer.get("usage"))
    return Completion(
        message=clean,
        finish_reason=finish_reason,
        usage=usage,
        reasoning=reasoning,
        prompt_token_ids=_token_ids(
            choice.get("prompt_token_ids") if prompt_ids is None else prompt_ids, "prompt_token_ids"
        ),
        token_ids=_token_ids(choice.get("token_ids"), "token_ids"),
        logprobs=choice.get("logprobs"),
        model=_text_or_none(answer.get("model")),
        response_id=_text_or_none(answer.get("id")),
        latency=latency,
        cost=price.cost(usage) if price is not None and usage is not None else None,
        extra=_extra(answer, choice, rest),
    )


def _first_choice(answer: dict[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise ModelGarbled(f"`choices` is not a list but {_kind(choices)}: {excerpt(json.dumps(answer, default=str))}")
    if not choices:
        raise ModelGarbled("the answer has no choice (`choices` is empty)")
    if not isinstance(choices[0], dict):
        raise ModelGarbled(f"`choices[0]` is not an object but {_kind(choices[0])}")
    return choices[0]


def _split_message(message: dict[str, Any]) -> tuple[Message, str | None, dict[str, Any]]:
    """The message to keep in the conversation, its reasoning, and what belongs to neither.

    Nulls and empty lists are dropped: endpoints send them, and refuse them when they get them back.
    """
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list)):
        raise ModelGarbled(f"`message.content` is not a text but {_kind(content)}")
    clean: Message = {"role": "assistant", "content": content}
    rest: dict[str, Any] = {}
    reasoning: str | None = None
    for key, value in message.items():
        if key in ("role", "content") or value is None or value == []:
            continue
        if key in _REASONING_KEYS:
            if not isinstance(value, str):
                rest[key] = value
            elif not reasoning:
                reasoning = value
        elif key == "tool_calls":
            clean[key] = _tool_calls(value)
        elif key == "reasoning_details":
            rest[key] = value
        else:
            clean[key] = value
    return clean, reasoning, rest


def _tool_calls(calls: Any) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise ModelGarbled(f"`tool_calls` is not a list but {_kind(calls)}")
    return [_tool_call(call) for call in calls]


def _tool_call(call: Any) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ModelGarbled("a tool call names no function")
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        function = {**function, "arguments": json.dumps(arguments, ensure_ascii=False)}
    elif arguments is None:
        function = {**function, "arguments": ""}
    elif not isinstance(arguments, str):
        raise ModelGarbled(f"the arguments of a tool call are not a text but {_kind(arguments)}")
    clean = {**call, "function": function}
    clean.setdefault("type", "function")
    if not isinstance(clean.get("id"), str) or not clean["id"]:
        # A result must name its call, and some endpoints leave the naming to us.
        clean["id"] = f"call_{uuid4().hex[:24]}"
    return {key: value for key, value in clean.items() if key != "index"}


def parse_usage(usage: Any) -> Usage | None:
    """The usage as counted by the endpoint, or None if it gave none that can be read."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not _is_count(prompt) or not (completion is None or _is_count(completion)):
        return None
    cached = _detail(usage.get("prompt_tokens_details"), "cached_tokens")
    if cached == 0:
        hit = usage.get("prompt_cache_hit_tokens")
        cached = hit if isinstance(hit, int) and _is_count(hit) else 0
    reasoning = _detail(usage.get("completion_tokens_details"), "reasoning_tokens") or _detail(
        usage, "reasoning_tokens"
    )
    return Usage(int(prompt or 0), int(completion or 0), reasoning, cached)


def _detail(table: Any, key: str) -> int:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, int) and _is_count(value) else 0


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _token_ids(ids: Any, name: str) -> list[int] | None:
    if ids is None:
        return None
    if not isinstance(ids, list) or not set(map(type, ids)) <= {int}:
        raise ModelGarbled(f"`{name}` is not a list of integers")
    return ids


def _extra(answer: dict[str, Any], choice: dict[str, Any], rest: dict[str, Any]) -> Mapping[str, Any]:
    extra = {key: value for key, value in answer.items() if key not in _KNOWN_TOP and value is not None}
    extra.update({key: value for key, value in choice.items() if key not in _KNOWN_CHOICE and value is not None})
    extra.update(rest)
    return extra


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return "missing" if value is None else names.get(type(value), type(value).__name__)
