"""A Python function as the model: what it is given, what it may return, and that its errors never become answers."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from runner.models.function import FunctionMisfit, FunctionModel
from runner.models.retry import Retries
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ContextOverflow, ModelGarbled, ModelRefused, ModelUnavailable

MESSAGES = [{"role": "user", "content": "15 * 24?"}]
TOOL = ToolSpec("add", "Adds.", {"type": "object"})
SAMPLING = Sampling(temperature=0.5, max_tokens=9, stop=("END",), extra={"top_k": 3})


def ask(function: Any, sampling: Sampling = SAMPLING, **keys: Any) -> Completion:
    model = FunctionModel(function=function, name="m:f", retries=Retries(3, 0.01, 0.001), **keys)
    return asyncio.run(model.complete(MESSAGES, [TOOL], sampling, Caller("r/0", {"q": 1}, 2)))


def test_a_function_gets_what_it_takes() -> None:
    seen: list[dict[str, Any]] = []

    async def seed(messages: Any, max_tokens: int = 512, temperature: float = 0.7, **kwargs: Any) -> str:
        seen.append({"messages": messages, "max_tokens": max_tokens, "temperature": temperature, **kwargs})
        return "360"

    def small(messages: Any, row: Any, attempt: int, *, stop: Any = None) -> str:
        seen.append({"row": row, "attempt": attempt, "stop": stop})
        return "360"

    assert ask(seed).message == {"role": "assistant", "content": "360"}
    assert ask(small).finish_reason == "stop"
    tools = [TOOL.wire()]
    wanted = {"max_tokens": 9, "temperature": 0.5, "stop": ["END"], "top_k": 3, "tools": tools}
    assert seen == [{"messages": MESSAGES, **wanted}, {"row": {"q": 1}, "attempt": 2, "stop": ["END"]}]


CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


@pytest.mark.parametrize(
    ("returned", "content", "reason"),
    [
        ("text", "text", "stop"),
        ({"content": "text"}, "text", "stop"),
        ({"role": "assistant", "content": None, "tool_calls": CALLS}, None, "tool_calls"),
        ({"content": "cut", "finish_reason": "length"}, "cut", "length"),
        ({"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}], "usage": USAGE}, "text", "stop"),
        (SimpleNamespace(text="text"), "text", "stop"),
        (SimpleNamespace(content="text"), "text", "stop"),
        (Completion({"role": "assistant", "content": "text"}, "stop"), "text", "stop"),
    ],
)
def test_it_may_return_what_functions_return(returned: Any, content: str | None, reason: str) -> None:
    completion = ask(lambda messages: returned)
    assert (completion.message.get("content"), completion.finish_reason) == (content, reason)
    assert completion.message["role"] == "assistant"


def test_usage_and_reasoning_are_kept_apart() -> None:
    completion = ask(lambda messages: {"content": "a", "reasoning_content": "b", "usage": USAGE})
    assert completion.usage is not None
    assert (completion.usage.input_tokens, completion.reasoning) == (5, "b")
    assert completion.message == {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("returned", [None, 3, {"text": "x"}, {}, {"choices": []}, b"bytes"])
def test_what_is_no_answer_is_garbled(returned: Any) -> None:
    with pytest.raises(ModelGarbled, match="`m:f`"):
        ask(lambda messages: returned)


class Status(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"status {code}")
        self.status_code = code


@pytest.mark.parametrize(
    ("error", "kind", "tries"),
    [
        (ValueError("no"), ModelRefused, 1),
        (Status(401), ModelRefused, 1),
        (Status(429), ModelUnavailable, 3),
        (Status(503), ModelUnavailable, 3),
        (ConnectionResetError("gone"), ModelUnavailable, 3),
        (TimeoutError("slow"), ModelUnavailable, 3),
        (ValueError("maximum context length is 8 tokens"), ContextOverflow, 1),
        (StopIteration(), ModelRefused, 1),
    ],
)  # fmt: skip
def test_an_error_is_an_error_and_only_passing_ones_are_tried_again(error: Exception, kind: Any, tries: int) -> None:
    asked = 0

    def fail(messages: Any) -> str:
        nonlocal asked
        asked += 1
        raise error

    with pytest.raises(kind, match="`m:f` raised"):
        ask(fail)
    assert asked == tries


def test_a_function_that_blocks_holds_neither_the_loop_nor_the_exit() -> None:
    release = threading.Event()

    def block(messages: Any) -> str:
        release.wait(30)
        return "late"

    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.1 s"):
        ask(block, timeout=0.1)
    assert time.monotonic() - began < 3.0
    release.set()


@pytest.mark.parametrize(
    ("function", "words"),
    [("text", "not something to call"), (lambda prompt: "", "takes no `messages`"),
     (lambda messages, key: "", "requires `key`")],
)  # fmt: skip
def test_what_cannot_be_a_model_is_said_at_once(function: Any, words: str) -> None:
    with pytest.raises(FunctionMisfit, match=words):
        FunctionModel(function=function, name="m:f")
