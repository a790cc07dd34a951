"""The chat side of remote rollouts: one test for each trap of the wire that concerns it, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from random import Random
from typing import Any

import pytest

from runner.models.chat import ChatModel, ChatModels, agent_loop_url, chat_url
from runner.models.connections import Connections
from runner.models.double import Double
from runner.models.double_answer import Reply
from runner.models.double_http import Request
from runner.models.retry import Retries, retry_after
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ModelError, ModelGarbled, ModelRefused, ModelUnavailable
from runner.records.message import Message

USER: list[Message] = [{"role": "user", "content": "What is 2 + 2?"}]
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {}})
QUICK = Retries(attempts=3, max_wait=0.01)
EVENTS = "text/event-stream"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Chat:
    """What a controller says about its endpoint."""

    url: str
    key: str | None = "cb-1-secret"
    model: str = "default"
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    tools: bool = True
    stream: bool = False


@dataclass
class Heard:
    """What came of one call, and what the endpoint saw of it."""

    result: Completion | ModelError
    bodies: list[dict[str, Any]]
    requests: list[Request]

    @property
    def completion(self) -> Completion:
        assert isinstance(self.result, Completion), self.result
        return self.result

    @property
    def message(self) -> dict[str, Any]:
        return dict(self.completion.message)


def play(
    *answers: Any,
    messages: list[Message] = USER,
    sampling: Sampling | None = None,
    shared: Mapping[str, Any] | None = None,
    **chat: Any,
) -> Heard:
    """One call to a double that gives `answers` in turn, the last one for ever."""
    bodies: list[dict[str, Any]] = []
    requests: list[Request] = []

    def respond(body: dict[str, Any]) -> Any:
        bodies.append(body)
        return answers[min(len(bodies), len(answers)) - 1]

    async def run() -> Completion | ModelError:
        connections = Connections()
        async with Double(respond, hear=requests.append) as double:
            models = ChatModels(connections=connections, **{"retries": QUICK, "rng": Random(1), **(shared or {})})
            model = models.model_for(Chat(**{"url": agent_loop_url(double.url), **chat}))
            try:
                return await model.complete(messages, [ADD], sampling or Sampling(), Caller("r-1"))
            except ModelError as error:
                return error
            finally:
                await connections.aclose()

    return Heard(asyncio.run(run()), bodies, requests)


def whole(message: Any = None, **more: Any) -> Reply:
    """A completion as JSON."""
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    return Reply(json.dumps({"id": "x", "choices": [choice], **more}).encode())


def event(delta: Any, reason: str | None = None, end: bytes = b"\n\n") -> bytes:
    chunk = {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return b"data: " + json.dumps(chunk).encode() + end


FOUR = event({"role": "assistant", "content": "4"}) + event({}, "stop")


def stream(body: bytes, content_type: str = EVENTS) -> Reply:
    return Reply(body, content_type=content_type)


# ── what is sent ──────────────────────────────────────────────────────────────
def test_trap_78_the_start_has_the_last_word_and_the_model_is_sent_as_it_is() -> None:
    sampling = Sampling(temperature=0.5, extra={"rollout_id": "theirs", "top_k": 3})
    heard = play("4", sampling=sampling, model="openai/m", extra={"rollout_id": "r-17", "logprobs": True}, tools=False)
    assert heard.bodies == [
        {
            "model": "openai/m",
            "messages": USER,
            "temperature": 0.5,
            "stream": False,
            "rollout_id": "r-17",
            "top_k": 3,
            "logprobs": True,
        }
    ]
    assert heard.requests[0].headers["authorization"] == "Bearer cb-1-secret"


def test_trap_82_every_standard_field_is_forwarded_and_tools_go_out_if_they_should() -> None:
    extra = {"tool_choice": "auto", "response_format": {"type": "text"}, "presence_penalty": 1}
    (body,) = play("4", sampling=Sampling(stop=("x",), seed=7, extra=extra), headers={"x-sample-id": "main"}).bodies
    assert {key: body[key] for key in extra} == extra
    assert (body["stop"], body["seed"], body["tools"]) == (["x"], 7, [ADD.wire()])


@pytest.mark.parametrize("join", [True, False])
def test_trap_103_text_parts_become_one_string_and_images_stay(join: bool) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    text = [{"type": "text", "text": "a"}, {"text": "b"}]
    calls: Message = {"role": "assistant", "tool_calls": [{"id": "c"}]}
    messages: list[Message] = [
        {"role": "system", "content": text},
        {"role": "user", "content": [*text, image]},
        calls,
        {"role": "tool", "content": [], "tool_call_id": "c"},
    ]
    (body,) = play("4", messages=messages, shared={"join_text": join}).bodies
    joined = [{"role": "system", "content": "ab"}, messages[1], calls, {**messages[3], "content": ""}]
    assert body["messages"] == (joined if join else messages)
    assert messages[0]["content"] is text


def test_trap_104_stream_is_said_either_way() -> None:
    assert play("4").bodies[0]["stream"] is False
    body = play("4", stream=True).bodies[0]
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert play("4", stream=True, shared={"stream": False}).bodies[0]["stream"] is False


def test_trap_105_the_scheme_of_the_key_is_written_as_everybody_writes_it() -> None:
    headers = play("4", key="k" * 9, headers={"X-Rollout-Id": "a/b", "x-sample-id": "main"}).requests[0].headers
    assert headers["authorization"] == "Bearer kkkkkkkkk"
    assert (headers["x-rollout-id"], headers["x-sample-id"]) == ("a/b", "main")
    assert "authorization" not in play("4", key=None).requests[0].headers
    assert "authorization" not in play("4", key="").requests[0].headers


def test_trap_59_a_header_that_would_smuggle_another_is_refused() -> None:
    found = play("4", key="k\r\nx-evil: 1")
    assert isinstance(found.result, ModelRefused)
    assert "the header `authorization` holds a character that HTTP cannot carry" in str(found.result)
    assert found.requests == []


@pytest.mark.parametrize(
    ("path", "target"),
    [("/a b?q=ä c", "/a%20b/chat/completions?q=%C3%A4%20c"), ("/r%2F1/{x}/", "/r%2F1/{x}/chat/completions")],
)
def test_trap_80_nothing_of_an_address_reaches_the_request_line_unescaped(path: str, target: str) -> None:
    requests: list[Request] = []

    async def run() -> None:
        async with Double(lambda body: "4", hear=requests.append) as double:
            connections = Connections()
            model = ChatModels(connections=connections).model_for(Chat(chat_url(double.url + path)))
            await model.complete(USER, [], Sampling(), Caller("r"))
            await connections.aclose()

    asyncio.run(run())
    assert requests[0].path == target


@pytest.mark.parametrize("url", ["ftp://h/x", "http:///x", "nonsense", "http://h:99999999/", "http://a b/", ""])
def test_trap_21_an_address_that_is_none_fails_at_once(url: str) -> None:
    found = play("4", url=url) if url else play("4", url="http://")
    assert isinstance(found.result, ModelUnavailable)
    assert (found.result.retries, found.requests) == (0, [])


def test_the_addresses_of_all_generations() -> None:
    assert agent_loop_url("http://h:1//") == "http://h:1/v1/chat/completions"
    for base in ("http://h/x", "http://h/x/", "http://h/x/chat/completions", "http://h/x/chat/completions/"):
        assert chat_url(base) == "http://h/x/chat/completions"


# ── statuses ──────────────────────────────────────────────────────────────────
def test_trap_71_a_429_is_tried_again() -> None:
    found = play(Reply(b"slow", status=429), Reply(b"slow", status=429), whole())
    assert found.completion.retries == 2


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7.0, 7.7),
        ("0", 0.0, 0.0),
        ("date", 20.0, 33.0),
        ("undated", 20.0, 33.0),
        ("-5", 0.0, 0.25),
        ("1e9", 60.0, 60.0),
        ("nan", 0.0, 0.25),
        ("inf", 0.0, 0.25),
        ("soon", 0.0, 0.25),
    ],
)
def test_trap_67_retry_after_in_every_form(clock: Any, header: str, low: float, high: float) -> None:
    if header.endswith("date") or header == "undated":
        date = formatdate(clock.time() + 30, usegmt=True)
        header = date.removesuffix(" GMT") if header == "undated" else date
    busy = Reply(b"slow", status=429, headers=(("Retry-After", header),))
    found = play(busy, whole(), shared={"clock": clock, "retries": Retries(3, 60.0, 0.25)})
    assert found.completion.retries == 1
    (slept,) = clock.slept
    assert low <= slept <= high


def test_trap_67_a_date_without_a_zone_is_of_greenwich() -> None:
    date = formatdate(1_800_000_000, usegmt=True).removesuffix(" GMT")
    assert retry_after({"retry-after": date}, 1_800_000_000 - 9.0) == 9.0


def test_trap_66_a_429_for_ever_ends() -> None:
    found = play(Reply(b"slow", status=429, headers=(("retry-after", "0"),)))
    assert isinstance(found.result, ModelUnavailable)
    assert (found.result.status, len(found.bodies)) == (429, 3)


@pytest.mark.parametrize("status", [201, 202, 204])
def test_trap_6_only_200_brings_a_completion(status: int) -> None:
    good = whole().body if status != 204 else b""
    found = play(Reply(good, status=status))
    assert isinstance(found.result, ModelRefused)
    assert (found.result.status, len(found.bodies)) == (status, 1)
    assert f"answered {status}, and only 200 brings a completion" in str(found.result)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_trap_6_a_redirect_is_not_followed_with_the_key(status: int) -> None:
    async def run() -> tuple[ModelError, int]:
        async with Double(lambda body: "stolen") as other:
            target = (("location", f"{other.base_url}/chat/completions"),)
            async with Double(lambda body: Reply(status=status, headers=target)) as double:
                connections = Connections()
                model = ChatModels(connections=connections).model_for(Chat(f"{double.base_url}/chat/completions"))
                with pytest.raises(ModelRefused) as error:
                    await model.complete(USER, [], Sampling(), Caller("r"))
                await connections.aclose()
                return error.value, other.requests

    error, stolen = asyncio.run(run())
    assert stolen == 0
    assert f"answered {status}: it sends the request on to 127.0.0.1" in str(error)
    assert "redirects are not followed" in str(error)


@pytest.mark.parametrize(
    ("status", "key", "words"),
    [
        (401, "secret-cb", "the start named this key for it"),
        (401, None, "the start brought no key for it"),
        (404, "secret-cb", "it is the address that the start named"),
    ],
)
def test_trap_100_errors_say_whose_move_it_is_and_hide_the_key(status: int, key: str | None, words: str) -> None:
    found = play(Reply(b'{"detail": "no, secret-cb"}', status=status), key=key or None)
    assert isinstance(found.result, ModelRefused)
    assert words in str(found.result)
    assert "base_url" not in str(found.result)
    assert key is None or "secret-cb" not in str(found.result)


# ── JSON answers ──────────────────────────────────────────────────────────────
@pytest.mark.parametrize("stream", [False, True])
def test_trap_72_usage_may_be_missing_and_no_choice_is_tried_again(stream: bool) -> None:
    assert play(whole(usage=None), stream=stream).completion.usage is None
    assert play(whole(), stream=stream).completion.usage is None
    found = play(Reply(b'{"choices": []}'), Reply(b'{"choices": [], "usage": null}'), whole(), stream=stream)
    assert found.completion.retries == 2
    assert isinstance(play(Reply(b'{"choices": []}'), stream=stream).result, ModelGarbled)


def test_trap_73_a_finish_reason_of_null_stays_null() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": None}
    assert play(Reply(json.dumps({"choices": [choice]}).encode())).completion.finish_reason is None
    assert play(stream(event({"content": "4"}) + DONE), stream=True).completion.finish_reason is None


def test_trap_75_calls_without_an_id_get_one_each() -> None:
    nameless = {"type": "function", "function": {"name": "add", "arguments": "{}"}}
    for answer in (
        whole({"role": "assistant", "tool_calls": [nameless, {**nameless, "id": None}, {**nameless, "id": ""}]}),
        stream(b"".join(event({"tool_calls": [{**nameless, "index": n}]}) for n in range(3)) + event({}, "tool_calls")),
    ):
        ids = [call["id"] for call in play(answer).message["tool_calls"]]
        assert len(set(ids)) == 3
        assert all(ids)


def test_trap_76_tool_calls_of_null_are_none() -> None:
    assert "tool_calls" not in play(whole({"role": "assistant", "content": "4", "tool_calls": None})).message
    body = event({"content": "4", "tool_calls": None}) + event({}, "stop")
    assert "tool_calls" not in play(stream(body)).message


def test_trap_83_a_missing_content_is_null() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    message = play(whole({"role": "assistant", "tool_calls": [call]})).message
    assert (message["content"], message["tool_calls"]) == (None, [call])


def test_ids_and_log_probabilities_of_a_trainer_are_kept() -> None:
    found = play(whole(token_ids=[9], logprobs=[-0.01], prompt_token_ids=[1, 2, 3])).completion
    assert (found.token_ids, found.logprobs, found.prompt_token_ids) == ([9], [-0.01], [1, 2, 3])


# ── event streams ─────────────────────────────────────────────────────────────
CRLF = FOUR.replace(b"\n", b"\r\n") + b"data: [DONE]\r\n\r\n"
COMMENTS = b": hello\n\n" + FOUR.replace(b"data:", b": ping\nid: 1\nretry: 5\ndata:") + b":\n\n" + DONE
USAGE = b'data: {"id": "x", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}\n\n'


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    "body",
    [FOUR + DONE, FOUR, FOUR + USAGE, CRLF, COMMENTS, b"\xef\xbb\xbf" + FOUR, FOUR.replace(b"\n\n", b"\r\r") + DONE],
    ids=["plain", "no-done", "usage-at-the-end", "crlf", "comments", "byte-order-mark", "cr"],
)
def test_trap_81_streams_of_every_manner_asked_for_or_not(body: bytes, asked: bool) -> None:
    found = play(stream(body), stream=asked)
    assert (found.message["content"], found.completion.finish_reason, found.completion.retries) == ("4", "stop", 0)
    assert (found.completion.usage is not None) == (body == FOUR + USAGE)


@pytest.mark.parametrize("content_type", ["Text/Event-Stream; charset=utf-8", "text/plain", "application/json"])
def test_trap_104_what_comes_decides_and_not_what_was_asked(content_type: str) -> None:
    assert play(stream(b": hi\n\n" + FOUR + DONE, content_type), stream=True).message["content"] == "4"
    assert play(stream(FOUR + DONE, content_type)).message["content"] == "4"
    assert play(whole(), stream=True).message["content"] == "4"


@pytest.mark.parametrize("content_type", [EVENTS, "text/plain"])
@pytest.mark.parametrize(
    "error",
    [
        b'event: error\ndata: {"error": {"message": "worker died", "code": 503}}\n\n',
        b"event: error\r\ndata: worker died\r\n\r\n",
        b'data: {"error": {"message": "worker died"}}\n\n',
    ],
    ids=["event", "event-of-words", "data"],
)
def test_trap_81_an_error_event_under_200_is_a_failed_call(error: bytes, content_type: str) -> None:
    begun = event({"role": "assistant", "content": "half"})
    found = play(stream(begun + error, content_type), stream(FOUR + DONE), stream=True)
    assert (found.message["content"], found.completion.retries) == ("4", 1)
    failed = play(stream(begun + error, content_type), stream=True).result
    assert isinstance(failed, ModelUnavailable)
    assert "worker died" in str(failed)


def test_trap_81_a_stream_that_breaks_off_is_tried_again() -> None:
    found = play(stream(event({"content": "hal"})), stream(b""), stream(FOUR + DONE), stream=True)
    assert (found.message["content"], found.completion.retries) == ("4", 2)


def test_a_slow_stream_counts_against_the_time_of_the_try() -> None:
    slow = Reply(FOUR + DONE, content_type=EVENTS, pause=5.0)
    found = play(slow, slow, stream(FOUR), stream=True, shared={"timeout": 0.1})
    assert found.completion.retries == 2


def test_the_longest_first_wait_is_configured(clock: Any) -> None:
    busy: Callable[[], Reply] = lambda: Reply(b"", status=503)  # noqa: E731
    play(busy(), shared={"clock": clock, "retries": Retries(30, 1000.0, 8.0), "rng": Random(3)})
    assert max(clock.slept[:1]) <= 8.0
    assert 4.0 < max(clock.slept[:3]) <= 32.0


def test_a_model_of_the_file_is_as_it_was() -> None:
    model = ChatModel(model="openai/m", base_url="http://h/v1")
    body = json.loads(model.body([{"role": "user", "content": [{"type": "text", "text": "x"}]}], [ADD], Sampling()))
    assert (body["model"], body["messages"][0]["content"][0]["text"], "stream" in body) == ("m", "x", False)
    assert model.url == "http://h/v1/chat/completions"
