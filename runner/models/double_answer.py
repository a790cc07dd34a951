"""What the test double says: a responder's word made into a full completion, as JSON or as an event stream.

Tokens are invented but consistent: four characters are one token, and the same four characters always have the same
id, so that ids, log-probabilities and usage agree with each other and with the text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from pydantic_core import to_json

from runner.models.counting import prompt_text, token_count, tokens_of

_ids = count(1)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP answer that a responder gives as it is, where a completion would be too decent.

    `pause` seconds pass between its head with half of the body and the rest.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    pause: float = 0.0


def completion(request: dict[str, Any], said: Any, *, token_ids: bool = False) -> dict[str, Any]:
    """A `chat.completion` from what a responder said: a text, an assistant message, or a completion (kept as it is).

    Raises TypeError for anything else.
    """
    if isinstance(said, dict) and "choices" in said:
        return said
    message = _message(said)
    number = next(_ids)
    for index, call in enumerate(message.get("tool_calls") or []):
        call.setdefault("id", f"call_{number}_{index}")
        call.setdefault("type", "function")
    text = _spoken(message)
    prompt = prompt_text(request.get("messages") or [], request.get("tools") or [])
    prompt_tokens, completion_tokens = token_count(prompt), token_count(text)
    finish_reason = message.pop("finish_reason", None) or ("tool_calls" if message.get("tool_calls") else "stop")
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    answer: dict[str, Any] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.get("model"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
    if token_ids and request.get("logprobs"):
        choice["logprobs"] = {"content": [_logprob(token) for token in tokens_of(text)]}
    if token_ids and request.get("return_token_ids"):
        choice["token_ids"] = [token_id(token) for token in tokens_of(text)]
        answer["prompt_token_ids"] = [token_id(token) for token in tokens_of(prompt)]
    return answer


def token_id(token: str) -> int:
    """The invented id of a token: the same for the same characters."""
    return 100 + zlib.crc32(token.encode("utf-8", "replace")) % 50_000


def _logprob(token: str) -> dict[str, Any]:
    value = -(token_id(token) % 1000) / 1000.0
    return {"token": token, "logprob": value, "bytes": list(token.encode("utf-8", "replace")), "top_logprobs": []}


def _message(said: Any) -> dict[str, Any]:
    if isinstance(said, str):
        return {"role": "assistant", "content": said}
    if isinstance(said, dict) and ("content" in said or "tool_calls" in said):
        return {"role": "assistant", "content": None, **said}
    raise TypeError(f"a responder gives a text, an assistant message or a completion, not {type(said).__name__}")


def _spoken(message: dict[str, Any]) -> str:
    """Everything the model wrote: its text and its calls."""
    parts = [message.get("reasoning_content") or "", message.get("content") or ""]
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        parts.append(f"{function.get('name', '')}{function.get('arguments', '')}")
    return "".join(part for part in parts if isinstance(part, str))


def events(answer: dict[str, Any], *, include_usage: bool) -> Iterator[bytes]:
    """The same completion as server-sent events: text in pieces, each call's arguments in two."""
    top = {key: answer.get(key) for key in ("id", "created", "model")}
    top["object"] = "chat.completion.chunk"
    choice = answer["choices"][0] if answer["choices"] else None
    if choice is not None:
        message = choice["message"]
        begin = {"role": "assistant", "content": "" if isinstance(message.get("content"), str) else None}
        first: dict[str, Any] = {**top, "choices": [{"index": 0, "delta": begin, "finish_reason": None}]}
        if "prompt_token_ids" in answer:
            first["prompt_token_ids"] = answer["prompt_token_ids"]
        yield _event(first)
        for delta in _deltas(message):
            yield _event({**top, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
        # All ids at once: where they arrive within a stream is each server's own affair.
        last.update({key: choice[key] for key in ("logprobs", "token_ids") if choice.get(key) is not None})
        yield _event({**top, "choices": [last]})
    if include_usage and answer.get("usage"):
        yield _event({**top, "choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in ("reasoning_content", "content"):
        text = message.get(key)
        if isinstance(text, str):
            for start in range(0, len(text), 16):
                yield {key: text[start : start + 16]}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        arguments = function.get("arguments") or ""
        half = len(arguments) // 2
        begin = {"name": function["name"], "arguments": arguments[:half]}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": begin}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + to_json(value) + b"\n\n"
