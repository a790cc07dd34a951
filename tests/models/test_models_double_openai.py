"""The shipped double against the official client: what it says must be what OpenAI's own library expects.

In a process of its own, as importing the client takes a second.
"""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = '''
import asyncio, json
import openai
from runner.models.double import Double
from runner.models.double_faults import parse_faults

CALLS = {"content": None, "tool_calls": [
    {"function": {"name": "add", "arguments": '{"a": 1}'}}, {"function": {"name": "add", "arguments": '{"a": 2}'}},
]}
ADD = {"name": "add", "strict": True, "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": ADD}]
ASK = {"model": "gpt-x", "messages": [{"role": "user", "content": "hello there"}]}


def client(double):
    return openai.AsyncOpenAI(api_key="x", base_url=double.base_url, max_retries=0, timeout=10)


async def streamed(api, **asked):
    """The answer as the library itself puts a stream together, and the chunks' own form."""
    async with api.chat.completions.stream(**ASK, **asked) as stream:
        async for event in stream:
            pass
        return await stream.get_final_completion()


def told(completion):
    choice = completion.choices[0]
    calls = [[call.type, call.function.name, call.function.arguments] for call in choice.message.tool_calls or []]
    logprobs = [[entry.token, entry.logprob] for entry in choice.logprobs.content] if choice.logprobs else None
    usage = completion.usage
    return {
        "role": choice.message.role, "content": choice.message.content, "calls": calls, "logprobs": logprobs,
        "finish": choice.finish_reason, "usage": [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens],
        "object": completion.object, "model": completion.model, "created": completion.created > 0,
    }


async def main():
    found = {}
    for name, said, asked in (
        ("text", "a text of several tokens", {}),
        ("logprobs", "a text of several tokens", {"logprobs": True}),
        ("tools", CALLS, {"tools": TOOLS}),
    ):
        async with Double(lambda request, said=said: json.loads(json.dumps(said)), token_ids=True) as double:
            async with client(double) as api:
                whole = await api.chat.completions.create(**ASK, **asked)
                live = await streamed(api, stream_options={"include_usage": True}, **asked)
                found[name] = [told(whole), told(live)]
                ids = [call.id for call in whole.choices[0].message.tool_calls or []]
                assert len(set(ids)) == len(ids) and all(ids)
                found.setdefault("models", [model.id async for model in api.models.list()])
    async with Double(lambda request: "x", token_ids=True) as double, client(double) as api:
        raw = await api.chat.completions.create(**ASK, logprobs=True, extra_body={"return_token_ids": True})
        found["ids"] = [len(raw.prompt_token_ids), len(raw.choices[0].token_ids)]
        chunks = [chunk async for chunk in await api.chat.completions.create(**ASK, stream=True)]
        found["chunks"] = [sorted({chunk.object for chunk in chunks}), len({chunk.id for chunk in chunks})]
        try:
            await api.post("/chat/completions", body={"model": "m"}, cast_to=object)
        except openai.BadRequestError as error:
            found["bad"] = [error.status_code, error.type, error.body["message"]]
        try:
            await api.get("/nothing", cast_to=object)
        except openai.NotFoundError as error:
            found["nowhere"] = error.status_code
    for fault in ("401", "404", "429", "500", "503"):
        async with Double(lambda request: "x", faults=parse_faults(fault), retry_after="7") as double:
            async with client(double) as api:
                try:
                    await api.chat.completions.create(**ASK)
                except openai.APIStatusError as error:
                    wait = error.response.headers.get("retry-after")
                    found[fault] = [type(error).__name__, error.body["message"], wait]
    print(json.dumps(found))


asyncio.run(main())
'''


def test_the_official_client_understands_the_double() -> None:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("text", "logprobs", "tools"):
        whole, live = found[name]
        assert whole == live, name
        assert whole["role"] == "assistant"
        assert whole["object"] == "chat.completion"
        assert whole["usage"][2] == whole["usage"][0] + whole["usage"][1] > 0
    assert found["text"][0]["content"] == "a text of several tokens"
    assert found["text"][0]["finish"] == "stop"
    assert "".join(token for token, _ in found["logprobs"][0]["logprobs"]) == "a text of several tokens"
    assert found["tools"][0]["calls"] == [["function", "add", '{"a": 1}'], ["function", "add", '{"a": 2}']]
    assert (found["tools"][0]["content"], found["tools"][0]["finish"]) == (None, "tool_calls")
    assert found["models"] == ["double"]
    assert min(found["ids"]) > 0
    assert found["chunks"] == [["chat.completion.chunk"], 1]
    assert found["bad"][:2] == [400, "invalid_request_error"]
    assert found["nowhere"] == 404
    names = {"401": "AuthenticationError", "404": "NotFoundError", "429": "RateLimitError"}
    for fault in ("401", "404", "429", "500", "503"):
        name, message, wait = found[fault]
        assert name == names.get(fault, "InternalServerError")
        assert message == "a fault that was asked for"
        assert wait == ("7" if fault in ("429", "503") else None)
