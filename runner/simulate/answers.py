"""Who answers the chat calls: the file's model, a fixed sentence, or one tool call and then a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic_core import to_json

from runner.models.double_answer import completion, events
from runner.models.model import Model, Opens
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.simulate.history import History
from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE

_IN_PIECES = 64 * 1024
"""Characters up to which an answer is streamed in small pieces: they weigh many times the text itself."""


class Answers(Protocol):
    """Gives a text, an assistant message or a whole completion, at once or awaited. May raise ModelError."""

    def answer(self, history: History, asked: Mapping[str, Any]) -> Any | Awaitable[Any]: ...

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same answer to everything; with `call`, that tool call (name, JSON arguments) before it."""

    text: str
    call: tuple[str, str] | None = None

    def answer(self, history: History, asked: Mapping[str, Any]) -> Any:
        messages = asked.get("messages") or []
        if self.call is None or (messages and messages[-1].get("role") == "tool"):
            return self.text
        function = {"name": self.call[0], "arguments": self.call[1]}
        return {"content": None, "tool_calls": [{"id": f"call_{len(messages)}", "function": function}]}

    async def open(self) -> None:
        """Nothing to open."""

    async def aclose(self) -> None:
        """Nothing is open."""


class Asked:
    """A model, asked on behalf of the rollout: a scripted one sees the row and the attempt that were started."""

    def __init__(self, model: Model, offered: Sequence[ToolSpec]) -> None:
        self._model = model
        self._offered = tuple(offered)

    def answer(self, history: History, asked: Mapping[str, Any]) -> Awaitable[Any]:
        return self._ask(history, asked)

    async def _ask(self, history: History, asked: Mapping[str, Any]) -> dict[str, Any]:
        caller = Caller(history.rollout_id, history.ask.row, history.ask.attempt)
        tools = self._offered if history.dialect == AGENT_LOOP else [_spec(tool) for tool in asked.get("tools") or []]
        said = await self._model.complete(asked["messages"], tools, _sampling(asked), caller)
        return _whole(asked, said)

    async def open(self) -> None:
        if isinstance(self._model, Opens):
            await self._model.open()

    async def aclose(self) -> None:
        await self._model.aclose()


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of an answer with status 200, as they are."""

    body: bytes
    kind: str = "application/json"


def _spec(tool: Mapping[str, Any]) -> ToolSpec:
    function = tool["function"]
    return ToolSpec(function["name"], function.get("description") or "", function.get("parameters") or {})


def _sampling(asked: Mapping[str, Any]) -> Sampling:
    stop = asked.get("stop") or ()
    return Sampling(
        temperature=asked.get("temperature"),
        top_p=asked.get("top_p"),
        max_tokens=asked.get("max_tokens"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=asked.get("seed"),
    )


def _whole(asked: Mapping[str, Any], said: Completion) -> dict[str, Any]:
    """A model's completion as an endpoint's, with the counts and token ids that the model gave."""
    reasoning = {"reasoning_content": said.reasoning} if said.reasoning else {}
    whole = completion(dict(asked), {**said.message, **reasoning, "finish_reason": said.finish_reason})
    if said.usage is not None:
        whole["usage"] = {
            "prompt_tokens": said.usage.input_tokens,
            "completion_tokens": said.usage.output_tokens,
            "total_tokens": said.usage.total_tokens,
        }
    if said.token_ids is not None:
        whole["choices"][0]["token_ids"] = said.token_ids
        whole["prompt_token_ids"] = said.prompt_token_ids
    if said.logprobs is not None:
        whole["choices"][0]["logprobs"] = said.logprobs
    return whole


def spoken(history: History, asked: dict[str, Any], said: Any, *, token_ids: bool) -> tuple[bytes, str]:
    """An answer as the controller of this dialect sends it: the body and its content type. Raises TypeError."""
    if isinstance(said, Raw):
        return said.body, said.kind
    wants_ids = {"logprobs": True, "return_token_ids": True} if token_ids else {}
    answer = completion({**asked, **wants_ids}, said, token_ids=token_ids)
    if history.dialect == AGENT_LOOP:
        return to_json({**answer, "id": history.rollout_id, **_flat_ids(answer)}), "application/json"
    if not asked.get("stream", history.dialect == MULTI_SAMPLE):
        return to_json(answer), "application/json"
    usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    if history.dialect == MULTI_SAMPLE and len(str(answer["choices"])) < _IN_PIECES:
        return b": ping\n\n" + b"".join(events(answer, include_usage=usage)), "text/event-stream"
    return b": ping\n\n" + _one_chunk(answer), "text/event-stream"


def _flat_ids(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Token ids where the first generation has them: at the top."""
    choice = answer["choices"][0] if answer["choices"] else {}
    if choice.get("token_ids") is None:
        return {}
    content = (choice.get("logprobs") or {}).get("content") or []
    return {
        "token_ids": choice["token_ids"],
        "prompt_token_ids": answer.get("prompt_token_ids"),
        "logprobs": [token["logprob"] for token in content],
    }


def _one_chunk(answer: dict[str, Any]) -> bytes:
    """The whole answer as one event, as the bridge of the last generation streams."""
    choices = []
    for choice in answer["choices"]:
        delta = dict(choice["message"])
        if delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(delta["tool_calls"])]
        choices.append({**{key: value for key, value in choice.items() if key != "message"}, "delta": delta})
    chunk = {**answer, "object": "chat.completion.chunk", "choices": choices}
    return b"data: " + to_json(chunk) + b"\n\ndata: [DONE]\n\n"


def failed(stream: bool, message: str) -> tuple[int, bytes, str]:
    """How a controller says that its model failed: status, body, content type."""
    if stream:
        error = to_json({"error": {"message": message}})
        return 200, b": ping\n\nevent: error\ndata: " + error + b"\n\ndata: [DONE]\n\n", "text/event-stream"
    return 502, to_json({"detail": message, "error": message}), "application/json"
