"""The chat wire, inwards: a body to a `Completion`. Pure functions; `request` is the other half.

What an endpoint gives is kept as it gave it; only what cannot be an answer is refused, with a sentence that says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard
from uuid import uuid4

from pydantic_core import from_json

from runner.models import pieces
from runner.models.price import Price
from runner.records.completion import Completion, Usage
from runner.records.failure import ModelGarbled
from runner.records.message import Message

_KNOWN_TOP = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "prompt_token_ids", "token_ids", "logprobs"}
)
_KNOWN_CHOICE = frozenset({"index", "message", "finish_reason", "logprobs", "token_ids", "prompt_token_ids"})
_REASONING_KEYS = ("reasoning_content", "reasoning")
_NOT_TO_RESEND = frozenset(
    {"reasoning_details", "annotations", "executed_tools", "channel", "provider_specific_fields"}
)
"""What endpoints put into a message and refuse, or cannot use, when they get it back."""
_GAVE_UP = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons by which an endpoint says that it, not the model, broke off: no answer of the policy."""


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


def error_in(answer: Any) -> Any:
    """The error that an endpoint put where an answer belongs (status 200, yet none), or None."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if not isinstance(answer, dict):
        return None
    if answer.get("error") is not None:
        return answer["error"]
    if answer.get("object") == "error":
        return answer
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0].get("error")
    return None


def gave_up(answer: Any) -> str:
    """The finish reason by which an endpoint says that it broke off by itself; empty if it does not."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    reason = (
        choices[0].get("finish_reason")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict)
        else None
    )
    return reason if isinstance(reason, str) and reason in _GAVE_UP else ""


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
    finish_reason = choice.get("finish_reason") or None
    if finish_reason is not None and not isinstance(finish_reason, str):
        raise ModelGarbled(f"`finish_reason` is not a string but {_kind(finish_reason)}")
    clean, reasoning, rest = _split_message(message)
    usage = parse_usage(answer.get("usage") or _within(answer.get("x_groq"), "usage"))
    return Completion(
        message=clean,
        finish_reason=finish_reason,
        usage=usage,
        reasoning=reasoning,
        prompt_token_ids=_token_ids(_either(answer, choice, "prompt_token_ids"), "prompt_token_ids"),
        token_ids=_token_ids(_either(choice, answer, "token_ids"), "token_ids"),
        logprobs=_either(choice, answer, "logprobs"),
        model=_text_or_none(answer.get("model")),
        response_id=_text_or_none(answer.get("id")),
        latency=latency,
        cost=price.cost(usage) if price is not None and usage is not None else None,
        extra=_extra(answer, choice, rest),
    )


def _either(first: dict[str, Any], second: dict[str, Any], key: str) -> Any:
    """Servers differ in whether ids and log-probabilities stand in the choice or beside it."""
    value = first.get(key)
    return second.get(key) if value is None else value


def _within(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, dict) else None


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
    content, reasoning = _content(message.get("content"))
    clean: Message = {"role": "assistant", "content": content}
    rest: dict[str, Any] = {}
    for key, value in message.items():
        if key in ("role", "content") or value is None or value == [] or _is_blank(value):
            continue
        if key in _REASONING_KEYS:
            if not isinstance(value, str):
                rest[key] = value
            elif not reasoning:
                reasoning = value
        elif key == "tool_calls":
            clean[key] = _tool_calls(value)
        elif key in _NOT_TO_RESEND or (key == "thinking_blocks" and not _signed(value)):
            rest[key] = value
        else:
            clean[key] = value
    return clean, reasoning or None, rest


def _is_blank(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and not any(inner is not None for inner in value.values())


def _signed(blocks: Any) -> bool:
    """Whether these thoughts are ones that their provider wants back, unchanged, with the results of tool calls."""
    return isinstance(blocks, list) and any(
        isinstance(block, dict) and (block.get("signature") or block.get("type") == "redacted_thinking")
        for block in blocks
    )


def _content(content: Any) -> tuple[Any, str | None]:
    """The content without the thoughts some endpoints put into it, and those thoughts."""
    if isinstance(content, list):
        parts, thoughts = pieces.split(content)
        return pieces.join(parts), thoughts or None
    if content is not None and not isinstance(content, str):
        raise ModelGarbled(f"`message.content` is not a text but {_kind(content)}")
    return content, None


def _tool_calls(calls: Any) -> list[dict[str, Any]]:
    if isinstance(calls, dict) and "function" in calls:
        calls = [calls]
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
    # Some do not count the thoughts among the completion's tokens, but in the total, which is what they bill.
    total = usage.get("total_tokens")
    output = max(int(completion or 0), total - prompt) if _is_count(total) else int(completion or 0)
    return Usage(prompt, output, reasoning, cached)


def _detail(table: Any, key: str) -> int:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, int) and _is_count(value) else 0


def _is_count(value: Any) -> TypeGuard[int]:
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
