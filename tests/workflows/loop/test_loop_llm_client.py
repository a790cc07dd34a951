"""The first generation's client against a cluster over real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner import (
    OsmosisLLMClient,
    OsmosisRolloutError,
    OsmosisServerError,
    OsmosisTransportError,
    OsmosisValidationError,
    RolloutClientSettings,
    RolloutMetrics,
)
from runner.models.retry import SystemClock

ASK = [{"role": "user", "content": "2+2?"}]


class Pauses(SystemClock):
    """A clock that notes how long it was to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_a_chat_and_a_completion(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(lambda seen: "4")
        async with OsmosisLLMClient(controller.url + "///", "r1", "key") as client:
            answer = await client.chat_completions(ASK, temperature=0.5, stop="x", tools=[1], tool_choice="auto")
            await client.chat_completions(ASK, model="other", stop=3)
            assert (answer.content, answer.finish_reason, answer.usage["total_tokens"]) == ("4", "stop", 4)
            assert (answer.token_ids, answer.logprobs, answer.has_tool_calls) == ([], [], False)
            metrics = client.get_metrics()
            assert (metrics.num_llm_calls, metrics.prompt_tokens, metrics.response_tokens) == (2, 6, 2)
            await client.complete_rollout("COMPLETED", [answer.message], metrics=metrics)
            await client.close()
        first, second = controller.chats
        assert first.path == "/v1/chat/completions"
        assert first.headers["authorization"] == "Bearer key"
        assert first.body == {
            "model": "default", "messages": ASK, "rollout_id": "r1", "temperature": 0.5, "top_p": 1.0,
            "max_tokens": 512, "stop": ["x"], "logprobs": True,
        }  # fmt: skip
        assert second.body["model"] == "other"
        assert "stop" not in second.body
        (told,) = controller.acked
        assert told.path == "/v1/rollout/completed"
        assert told.body["metrics"] == RolloutMetrics(**told.body["metrics"]).model_dump()
        assert told.body["extra_fields"] == {}
        assert not {"reward", "error_message"} & told.body.keys()

    stage.run(test)


@pytest.mark.parametrize(
    ("status", "error", "posts", "pauses"),
    [
        (500, OsmosisServerError, 3, [1.0, 2.0]),
        (404, OsmosisValidationError, 1, []),
        (429, OsmosisValidationError, 1, []),
        (204, OsmosisValidationError, 1, []),
    ],
)
def test_what_is_tried_again(stage: Any, status: int, error: type[Any], posts: int, pauses: list[float]) -> None:
    async def test() -> None:
        controller = await stage.controller(ack=lambda seen: status)
        clock = Pauses()
        async with OsmosisLLMClient(controller.url, "r1", clock=clock) as client:
            with pytest.raises(error) as caught:
                await client.complete_rollout("ERROR", [], "error", "no")
            assert caught.value.status_code == status
            with pytest.raises(ValueError, match="JSON"):
                await client.complete_rollout("COMPLETED", [], reward=float("nan"))
        assert (len(controller.callbacks), clock.slept) == (posts, pauses)

    stage.run(test)


def test_a_broken_connection_is_tried_again_and_a_bad_answer_is_not(stage: Any) -> None:
    async def test() -> None:
        replies: list[Any] = ["drop", "drop", "4", {"role": "assistant", "content": "x"}]
        controller = await stage.controller(lambda seen: replies.pop(0) if len(replies) > 1 else "drop")
        clock = Pauses()
        settings = RolloutClientSettings(max_retries=2, retry_base_delay=0.5, retry_max_delay=1.0)
        async with OsmosisLLMClient(controller.url, "r1", settings=settings, clock=clock) as client:
            assert (await client.chat_completions(ASK)).content == "4"
            assert clock.slept == [0.5, 1.0]
            with pytest.raises(OsmosisTransportError):
                await client.chat_completions(ASK)
            assert clock.slept == [0.5, 1.0, 0.5, 1.0]
        async with OsmosisLLMClient(controller.url, "r1", max_retries=0, clock=clock) as client:
            with pytest.raises(OsmosisTransportError):
                await client.chat_completions(ASK)
        assert len(clock.slept) == 4

    stage.run(test)


def test_it_is_closed_without_having_been_used_and_refuses_a_bad_address() -> None:
    async def test() -> None:
        unused = OsmosisLLMClient("http://127.0.0.1:1", "r1")
        await unused.close()
        await unused.close()
        async with OsmosisLLMClient("nonsense", "r1", max_retries=0) as client:
            with pytest.raises(OsmosisRolloutError):
                await client.chat_completions(ASK)

    asyncio.run(test())
