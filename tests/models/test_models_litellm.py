"""litellm over real HTTP against the double. In one process of its own, as importing litellm takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import asyncio, json, sys
from runner.models.double import Double
from runner.models.double_faults import parse_faults
from runner.models.litellm import LiteLLMModel
from runner.models.price import Price
from runner.models.retry import Retries
from runner.records.completion import Caller, Sampling, ToolSpec
from runner.records.failure import ModelError

assert "litellm" not in sys.modules
QUICK = Retries(attempts=3, max_wait=0.01)
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = {"content": None, "tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1}'}}]}


async def ask(double, content="hi", **options):
    settings = {"model": "openai/gpt-4o-mini", "base_url": double.base_url, "api_key": "hunter2x", "retries": QUICK}
    model = LiteLLMModel(**{**settings, **options})
    messages = [{"role": "user", "content": content}]
    try:
        return await model.complete(messages, [ADD], Sampling(max_tokens=5), Caller("r"))
    except ModelError as error:
        return [type(error).__name__, str(error), error.retries]
    finally:
        await model.aclose()


def said(completion):
    assert not isinstance(completion, list), completion
    tokens = completion.usage.total_tokens
    return [completion.message, completion.finish_reason, tokens, completion.cost, completion.retries]


async def main():
    found = {}
    seen = []
    async with Double(lambda request: (seen.append(request), CALL)[1]) as double:
        found["call"] = said(await ask(double))
        found["priced"] = said(await ask(double, price=Price(1e6, 0)))
        found["surrogate"] = await ask(double, "\\ud800")
        found["sent"] = [seen[0]["model"], seen[0]["max_tokens"], len(seen)]
    for fault in ("429", "500", "401", "empty", "garbage", "reset"):
        async with Double(lambda request: "ok", faults=parse_faults(fault), retry_after="0") as double:
            found[fault] = [*(await ask(double)), double.requests]
    async with Double(lambda request: "ok", faults=parse_faults("hang")) as double:
        found["hang"] = await ask(double, timeout=0.2, retries=Retries(attempts=1))
    async with Double(lambda request: "ok", faults=parse_faults("429:0.3,reset:0.2"), seed=1) as double:
        answers = await asyncio.gather(*[ask(double, retries=Retries(10, 0.01)) for _ in range(20)])
        found["many"] = sorted({answer.message["content"] for answer in answers})
    print(json.dumps(found))


asyncio.run(main())
"""


def test_litellm_over_http() -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)  # one line: litellm itself printed nothing
    message, finish_reason, tokens, cost, retries = found["call"]
    assert (message["role"], message["content"], finish_reason, retries) == ("assistant", None, "tool_calls", 0)
    assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert tokens > 0
    assert cost > 0.0
    assert found["priced"][3] >= 1.0
    assert found["surrogate"][0] == "ModelRefused"
    assert found["sent"] == ["gpt-4o-mini", 5, 2]
    for fault in ("429", "500", "reset"):
        kind, text, retries, requests = found[fault]
        assert (kind, retries, requests) == ("ModelUnavailable", 2, 3), found[fault]
        assert "gave up after 3 tries" in text
    assert found["401"][0] == "ModelRefused"
    assert found["401"][3] == 1
    assert "check the API key" in found["401"][1]
    for fault in ("empty", "garbage"):
        assert found[fault][0] in ("ModelGarbled", "ModelUnavailable"), found[fault]
        assert found[fault][2] == 2
    assert found["hang"][0] == "ModelUnavailable"
    assert "no answer within 0.2 s" in found["hang"][1]
    assert found["many"] == ["ok"]
    assert "hunter2" not in done.stdout
