"""The library around the first generation's commands: judges, logs, metrics, traces, datasets, a model for trials."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import evaluate_rubric
from runner.sdk import observability

INFO = {"provider": "openai", "model": "judge", "api_key": "k", "score_min": 0, "score_max": 10}


def test_the_first_generations_judge_returns_a_score(model: Any) -> None:
    model.say = lambda request: '<think>hm {"score": 1}</think>```json\n{"score": 12, "explanation": "good"}\n```'
    info = {**INFO, "base_url": model.base_url}
    assert evaluate_rubric("be kind", "hello", info) == 10.0, "clamped to the range"
    details = evaluate_rubric("be kind", "hello", info, ground_truth="hi", return_details=True)
    assert (details["score"], details["explanation"]) == (10.0, "good")
    asked = model.asked[-1]
    assert asked["temperature"] == 0.0
    assert all(text in asked["messages"][1]["content"] for text in ("be kind", "hello", "hi", "from 0 to 10"))


def test_the_third_generations_is_awaited_and_the_first_works_inside_a_loop(model: Any) -> None:
    model.say = lambda request: '{"score": 0.5, "explanation": "so so"}'

    async def ask() -> Any:
        inside = evaluate_rubric("r", "s", {**INFO, "base_url": model.base_url})
        result = await evaluate_rubric(
            rubric="r", solution_str="s", model="openai/judge", api_key="k", base_url=model.base_url
        )
        return inside, result

    inside, result = asyncio.run(ask())
    assert inside == 0.5
    assert result == runner.RubricResult(0.5, "so so")


@pytest.mark.parametrize("answer", ["no json", '{"score": true, "explanation": "x"}', '{"score": 1}', '{"score": "1"}'])
def test_a_judge_that_does_not_judge_gives_no_score(answer: str, model: Any) -> None:
    model.say = lambda request: answer
    with pytest.raises(runner.ProviderRequestError, match="openai/judge: the judge"):
        evaluate_rubric("r", "s", {**INFO, "base_url": model.base_url})


def test_what_the_judge_needs_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(runner.MissingAPIKeyError, match="set ANTHROPIC_API_KEY"):
        evaluate_rubric(rubric="r", solution_str="s", model="claude-x")
    with pytest.raises(TypeError, match="solution_str must be a text"):
        evaluate_rubric("r", " ", INFO)
    with pytest.raises(ValueError, match="score_max"):
        evaluate_rubric("r", "s", {**INFO, "score_max": 0})


def test_logs_carry_what_was_set(caplog: pytest.LogCaptureFixture) -> None:
    from runner.telemetry.log_context import current

    log = runner.get_logger("mine").bind(agent="a")
    runner.set_rollout_id("r-1")
    runner.set_context(step=2, nothing=None)
    assert dict(current()) == {"rollout_id": "r-1", "step": "2"}
    with caplog.at_level(logging.INFO):
        log.info("100% done", tool="add")
        log.warning("%s left", 3)
    runner.clear_context()
    assert dict(current()) == {}
    assert [record.getMessage() for record in caplog.records] == ["100% done agent='a' tool='add'", "3 left agent='a'"]


def test_nothing_is_measured_or_traced_before_it_is_switched_on() -> None:
    metrics = runner.get_metrics()
    assert isinstance(metrics, runner.NoopMetric)
    metrics.rollouts_started.labels("x").inc()
    assert runner.get_metrics_content() == (b"", "text/plain; charset=utf-8")
    with runner.span("mine", a=1) as made:
        made.set_attribute("b", 2)
    assert runner.inject_trace_context({"x": "1"}) == {"x": "1"}
    assert runner.extract_trace_context({}) is None


def test_switched_on_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    runner.configure_metrics(runner.RolloutMetricsSettings(enabled=True, prefix="mine"))
    assert b"mine_" in runner.get_metrics_content()[0]
    runner.configure_tracing(runner.RolloutTracingSettings(enabled=True, exporter="console"))
    try:

        @runner.trace_async
        async def step() -> Any:
            return runner.inject_trace_context()

        @runner.trace_sync("outer", size=3)
        def outer() -> Any:
            return asyncio.run(step())

        carried = outer()
        assert runner.extract_trace_context(carried)
        assert carried["traceparent"].startswith("00-")
    finally:
        runner.configure_tracing(runner.RolloutTracingSettings(enabled=False))
        runner.configure_metrics(runner.RolloutMetricsSettings(enabled=False))
    told = capfd.readouterr().err
    assert '"name": "step"' in told
    assert '"size": 3' in told
    assert observability.SpanNames.ROLLOUT_RUN == "rollout.run"


def test_rows_are_read_by_the_three_columns_in_any_letters(folder: Path) -> None:
    reader = runner.DatasetReader(folder / "data.jsonl")
    assert len(reader) == 3
    (row,) = reader.read(limit=1, offset=1)
    assert row == {"system_prompt": "Add.", "user_prompt": "2+2?", "ground_truth": "4", "level": "easy"}
    (folder / "data.jsonl").write_text('{"user_prompt": "x", "system_prompt": "y"}\n')
    with pytest.raises(runner.DatasetValidationError, match="has no column ground_truth"):
        runner.DatasetReader(folder / "data.jsonl").read()
    (folder / "data.jsonl").write_text('{"user_prompt": "x", "system_prompt": "y", "ground_truth": " "}\n')
    with pytest.raises(runner.DatasetValidationError, match="row 0: ground_truth must be a text that is not blank"):
        runner.DatasetReader(folder / "data.jsonl").read()
    (folder / "data.txt").write_text("x")
    with pytest.raises(runner.DatasetParseError):
        runner.DatasetReader(folder / "data.txt")
    with pytest.raises(FileNotFoundError):
        runner.DatasetReader(folder / "none.jsonl")


def test_a_model_for_trials_counts_and_tells_errors_of_one_row_from_those_of_all(model: Any) -> None:
    async def ask() -> None:
        async with runner.ExternalLLMClient("judge", base_url=model.base_url) as client:
            await client.preflight_check()
            client.reset_metrics()
            with pytest.raises(runner.ToolValidationError, match="no model can call"):
                client.set_tools([{"type": "function", "function": {"name": "a-b", "description": "x"}}])
            client.set_tools([{"type": "function", "function": {"name": "add", "description": "x"}}])
            result = await client.chat_completions([{"role": "user", "content": "1+2"}], unknown=1)
            assert result.has_tool_calls
            assert client.get_metrics().num_llm_calls == 1
        assert model.asked[0]["model"] == "judge"
        nobody = runner.ExternalLLMClient("judge", base_url="http://127.0.0.1:1/v1")
        with pytest.raises(runner.SystemicProviderError):
            await nobody.chat_completions([{"role": "user", "content": "hi"}])

    model.say = lambda request: "hello" if not request.get("tools") else json.loads(CALL)
    asyncio.run(ask())


CALL = (
    '{"content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}]}'
)
