"""Cases about completions: what a model's endpoint may answer, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from runner.simulate.answers import Raw
from runner.simulate.bench import Bench, Case
from runner.simulate.history import History
from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE, SINGLE_SAMPLE

_ROLLOUT = (MULTI_SAMPLE, SINGLE_SAMPLE)


def _whole(message: Mapping[str, Any], finish_reason: str | None = "stop", **changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    top = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return {**top, "choices": [choice], "usage": usage, **changes}


async def _after(bench: Bench, dialect: str, fault: str) -> None:
    """With a fault before its first completion a rollout ends as without."""
    plain = await bench.play(bench.ask(dialect))
    tried = await bench.play(bench.ask(dialect), script={"chat": [fault]})
    ours, theirs = plain.verdict, tried.verdict
    assert ours is not None and theirs is not None
    bench.want(theirs.status == ours.status, f"without the fault {ours.status}, with it {theirs.status}")
    bench.want(theirs.reward == ours.reward, f"without the fault {ours.reward}, with it {theirs.reward}")


def _recovers(fault: str) -> Callable[[Bench, str], Any]:
    async def play(bench: Bench, dialect: str) -> None:
        await _after(bench, dialect, fault)

    return play


async def model_gone(bench: Bench, dialect: str) -> None:
    """A model that never answers is a failure with a word why, and never a reward."""
    history = await bench.play(bench.ask(dialect), script={"chat": ["chat-500"] * 50})
    verdict = history.verdict
    bench.want(verdict is not None and verdict.status == "failure", "no failure, though the model never answered")
    bench.want(verdict is not None and verdict.reward is None, "a reward, though the model never answered")


async def not_retried(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect), script={"chat": ["chat-400"] * 50})
    bench.want(history.verdict is not None and history.verdict.status == "failure", "a refusal became no failure")
    bench.want(history.chats <= 3, f"a refused request was sent {history.chats} times")


async def _answered(bench: Bench, dialect: str, said: Any) -> History:
    bench.plain_agent()
    history = await bench.play(bench.ask(dialect), reply=said)
    first = history.channels["completion"].first
    told = "" if first is None else f": {first.message}"
    bench.want(first is not None and first.status == "success", f"the agent did not end well{told}")
    return history


async def odd_answers(bench: Bench, dialect: str) -> None:
    """No usage, no finish reason, no calls, no content, and JSON where a stream was asked for."""
    for answer in (
        _whole({"content": "OK."}, usage=None),
        _whole({"content": "OK."}, finish_reason=None),
        _whole({"content": "OK.", "tool_calls": None}),
        {key: value for key, value in _whole({"content": "OK."}).items() if key not in ("usage", "id", "created")},
    ):
        await _answered(bench, dialect, Raw(to_json(answer)))


async def odd_streams(bench: Bench, dialect: str) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "OK."}}]}
    last = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {},
                                                                       "finish_reason": "stop"}]}  # fmt: skip
    plain = b"data: " + to_json(chunk) + b"\n\ndata: " + to_json(last) + b"\n\n"
    for body in (
        plain,
        b": ping\n\n: ping\n\n" + plain + b"data: [DONE]\n\n",
        (plain + b"data: [DONE]\n\n").replace(b"\n", b"\r\n"),
        b"event: message\nid: 1\nretry: 10\n" + plain + b"data: [DONE]\n\n",
    ):
        history = await _answered(bench, dialect, Raw(body, "text/event-stream"))
        bench.want("OK." in _texts(history), "the text of the stream is not in what was reported")


def _texts(history: History) -> str:
    return str(history.bodies)


async def bad_arguments(bench: Bench, dialect: str) -> None:
    """Arguments that are no JSON object are told to the model, which may go on."""
    tool = bench.tool()
    for arguments in ("{", "[1]", "7", ""):

        def reply(history: History, asked: Mapping[str, Any], arguments: str = arguments) -> Any:
            if asked["messages"][-1].get("role") == "tool":
                return "OK."
            return {"tool_calls": [{"id": "c1", "function": {"name": tool, "arguments": arguments}}]}

        history = await _answered(bench, dialect, reply)
        bench.want(history.chats == 2, f"arguments {arguments!r} led to {history.chats} chat calls, not 2")


async def unknown_tool(bench: Bench, dialect: str) -> None:
    bench.plain_agent()

    def reply(history: History, asked: Mapping[str, Any]) -> Any:
        if asked["messages"][-1].get("role") == "tool":
            return "OK."
        return {"tool_calls": [{"id": "c1", "function": {"name": "no_such_tool", "arguments": "{}"}}]}

    bench.tool()
    await _answered(bench, dialect, reply)


async def calls_without_ids(bench: Bench, dialect: str) -> None:
    tool = bench.tool()

    def reply(history: History, asked: Mapping[str, Any]) -> Any:
        if asked["messages"][-1].get("role") == "tool":
            return "OK."
        call = {"type": "function", "function": {"name": tool, "arguments": "{"}}
        return Raw(to_json(_whole({"content": None, "tool_calls": [call, call]}, "tool_calls")))

    history = await _answered(bench, dialect, reply)
    tools = [message for message in history.asked[-1]["messages"] if message.get("role") == "tool"]
    ids = [message.get("tool_call_id") for message in tools]
    bench.want(len(set(ids)) == 2, f"two calls without ids were answered under {ids}")


async def surrogate_answer(bench: Bench, dialect: str) -> None:
    body = to_json(_whole({"content": "half a pair: @@"})).replace(b"@@", b"\\ud83d")
    await bench.play(bench.ask(dialect), reply=Raw(body))


async def other_scripts(bench: Bench, dialect: str) -> None:
    text = "Ελληνικά, 日本語, עברית, 😀\u2028\u0000."
    history = await _answered(bench, dialect, text)
    if dialect != MULTI_SAMPLE or history.bodies[-1][1].get("samples"):
        bench.want("日本語" in _texts(history), "the text did not come back")


async def long_answer(bench: Bench, dialect: str) -> None:
    await _answered(bench, dialect, "x" * 2_000_000)


async def reserved_keys(bench: Bench, dialect: str) -> None:
    params = {"messages": [], "rollout_id": "another", "tools": [], "temperature": 0.25}
    history = await bench.play(bench.ask(dialect, extra={"completion_params": params}))
    bench.want(history.chats > 0, "no chat call came")
    bench.want(history.asked[0].get("temperature") == 0.25, f"temperature came as {history.asked[0]}")


async def stop_words(bench: Bench, dialect: str) -> None:
    for stop, wanted in (("", None), (["", "END"], ["END"]), ("END", ["END"])):
        history = await bench.play(bench.ask(dialect, extra={"completion_params": {"stop": stop}}))
        came = history.asked[0].get("stop") or None
        bench.want(([came] if isinstance(came, str) else came) == wanted, f"stop {stop!r} came as {came!r}")


async def parts_joined(bench: Bench, dialect: str) -> None:
    parts = [{"type": "text", "text": "Say "}, {"type": "text", "text": "OK."}]
    history = await bench.play(bench.ask(dialect, extra={"initial_messages": [{"role": "user", "content": parts}]}))
    bench.want(any(message.get("content") == "Say OK." for message in history.asked[0]["messages"]),
               f"the parts came as {history.asked[0]['messages']}")  # fmt: skip


async def one_name(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect))
    bench.want(history.sample_ids, "no chat call named its sample")


async def turns_override(bench: Bench, dialect: str) -> None:
    tool = bench.tool()
    call = {"tool_calls": [{"id": "c1", "function": {"name": tool, "arguments": "{}"}}]}
    history = await bench.play(bench.ask(dialect, extra={"max_turns": 2}), reply=call)
    bench.want(history.chats == 2, f"max_turns 2 led to {history.chats} chat calls")


CHAT: tuple[Case, ...] = (
    Case("chat-500", (), "ask again after a 500", _recovers("chat-500")),
    Case("chat-429", (71,), "ask again after a 429", _recovers("chat-429")),
    Case("chat-reset", (), "ask again after a reset", _recovers("chat-reset")),
    Case("chat-cut", (), "ask again after half an answer", _recovers("chat-cut")),
    Case("chat-garbage", (), "ask again after a page of HTML", _recovers("chat-garbage")),
    Case("chat-no-choices", (72,), "ask again after an answer without choices", _recovers("chat-empty")),
    Case("chat-error-event", (81,), "ask again after an error in a stream", _recovers("chat-error"), _ROLLOUT),
    Case("chat-gone", (107,), "report a failure when the model never answers", model_gone),
    Case("chat-refused", (), "not ask again what was refused with 400", not_retried),
    Case("chat-odd-json", (72, 73, 76), "bear what endpoints leave out", odd_answers),
    Case("chat-odd-stream", (81,), "bear comments, CRLF and a missing [DONE]", odd_streams, _ROLLOUT),
    Case("tool-bad-arguments", (74, 77), "tell the model what is wrong with its arguments", bad_arguments),
    Case("tool-unknown", (77,), "tell the model that there is no such tool", unknown_tool),
    Case("tool-call-ids", (75, 83), "give calls without ids their own", calls_without_ids),
    Case("text-surrogate-in-answer", (30,), "replace half a surrogate pair", surrogate_answer),
    Case("text-scripts", (31,), "carry any script", other_scripts),
    Case("text-long", (96,), "carry an answer of 2 MB", long_answer),
    Case("params-reserved", (78,), "not let parameters replace the conversation", reserved_keys, (AGENT_LOOP,)),
    Case("params-stop", (79,), "send stop words as a list, without empty ones", stop_words, (AGENT_LOOP,)),
    Case("params-turns", (), "end after as many turns as were asked for", turns_override, (AGENT_LOOP,)),
    Case("chat-parts", (103,), "join text parts", parts_joined, (MULTI_SAMPLE,)),
    Case("sample-name", (101, 102), "name its sample alike in chat and grade", one_name, (MULTI_SAMPLE,)),
)
