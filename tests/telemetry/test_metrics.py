"""The metrics: every name of the protocol is there with its type, labels and buckets, and is really counted."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from runner.records.completion import Completion, Usage
from runner.records.event import (
    Event,
    Graded,
    Logged,
    ModelAnswered,
    ModelFailed,
    RolloutEnded,
    RolloutStarted,
    ToolEnded,
)
from runner.records.failure import Failure
from runner.records.message import ToolCall
from runner.telemetry.loop_lag import LoopLag
from runner.telemetry.merge_metrics import merge
from runner.telemetry.metrics import Metrics

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def played(rollout_id: str = "r", reason: str = "final_answer") -> list[Event]:
    """A rollout with two model calls and one tool call, as the runtime tells it."""
    answer = Completion({"role": "assistant"}, usage=Usage(10, 20), latency=0.2, retries=1)
    return [
        RolloutStarted(rollout_id, 5.0, "row", 0),
        ModelAnswered(rollout_id, 5.2, 1, answer),
        ToolEnded(rollout_id, 5.3, 1, ToolCall("c", "add", "{}"), "ok", 0.02),
        ToolEnded(rollout_id, 5.3, 1, ToolCall("c", "add", "{}"), "error", 0.02),
        ModelAnswered(rollout_id, 5.4, 2, answer),
        Logged(rollout_id, 5.4, "mine", {}),
        Graded(rollout_id, 5.5, "exact", 1.0, "", 0.1),
        RolloutEnded(rollout_id, 8.0, "scored", reason, 1.0),
    ]


def counted(**options: Any) -> Metrics:
    metrics = Metrics(agent_loop="adder", version="1.2", **options)
    for event in played():
        metrics(event)
    return metrics


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = openmetrics(text.decode()) if text.endswith(b"# EOF\n") else plain(text.decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def value(text: bytes, name: str, **labels: str) -> float:
    return samples(text)[f"osmosis_rollout_{name}", tuple(sorted(labels.items()))]


def test_every_name_of_the_protocol_is_counted() -> None:
    metrics = counted(tools=["add"])
    metrics(RolloutStarted("f", 1.0, "row", 0))
    metrics(ModelFailed("f", 2.0, 1, Failure("model", "model_unavailable", "no answer within 3 s"), 3.0, 2))
    metrics(ModelFailed("f", 2.0, 1, Failure("model", "model_unavailable", "answered 500"), 0.3, 0))
    metrics(RolloutEnded("f", 2.0, "failed", "model_unavailable", None))
    metrics(RolloutStarted("open", 1.0, "row", 0))
    metrics.http("POST", "/rollout", 202, 0.02)
    text, _ = metrics.text()

    loop = {"agent_loop": "adder"}
    assert value(text, "rollouts_started_total", **loop) == 3
    assert value(text, "rollouts_completed_total", **loop, status="scored", finish_reason="final_answer") == 1
    assert value(text, "rollouts_failed_total", **loop, error_type="model_unavailable") == 1
    assert value(text, "rollouts_active", **loop) == 1
    assert value(text, "rollout_duration_seconds_sum", **loop, status="scored") == 3
    assert value(text, "llm_requests_total", status="success") == 2
    assert value(text, "llm_requests_total", status="timeout") == value(text, "llm_requests_total", status="error") == 1
    assert value(text, "llm_request_duration_seconds_bucket", status="timeout", le="2.5") == 0
    assert value(text, "llm_request_duration_seconds_bucket", status="timeout", le="5.0") == 1
    assert value(text, "llm_retries_total") == 4
    assert value(text, "llm_tokens_total", type="prompt") == 20
    assert value(text, "llm_tokens_total", type="completion") == 40
    assert value(text, "tool_calls_total", tool_name="add", status="ok") == 1
    assert value(text, "tool_errors_total", tool_name="add", error_type="error") == 1
    assert value(text, "tool_call_duration_seconds_count", tool_name="add") == 2
    assert value(text, "http_requests_total", method="POST", endpoint="/rollout", status_code="202") == 1
    assert value(text, "http_request_duration_seconds_count", method="POST", endpoint="/rollout") == 1
    [info] = [labels for name, labels in samples(text) if name == "osmosis_rollout_service_info"]
    assert dict(info).keys() == {"version", "python_version"}
    assert dict(info)["version"] == "1.2"


def test_the_buckets_are_those_of_the_protocol() -> None:
    metrics = counted()
    metrics.http("GET", "/health", 200, 0.0)
    bounds: dict[str, list[str]] = {}
    for (name, labels), _ in samples(metrics.text()[0]).items():
        if name.endswith("_bucket") and dict(labels)["le"] not in bounds.get(name, []):
            bounds.setdefault(name.removeprefix("osmosis_rollout_"), []).append(dict(labels)["le"])

    def seconds(name: str) -> list[float]:
        return [float(bound) for bound in dict.fromkeys(bounds[f"{name}_seconds_bucket"])][:-1]

    assert seconds("rollout_duration") == [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600]
    assert seconds("llm_request_duration") == [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]
    assert seconds("tool_call_duration") == [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    assert seconds("http_request_duration") == [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]


def test_what_the_server_tells_is_exposed() -> None:
    metrics = Metrics(default_labels=False, prefix="mine")
    metrics.start("single-sample", 429)
    metrics.recovered("run", 3)
    metrics.cancelled("queued")
    metrics.callback("grader", "acknowledged", 0.2)
    metrics.committed("outbox", 0.003)
    metrics.load(queued=4, running=2, grading=1, max_concurrent=8, max_queue=16)
    metrics.outbox({"owed": 5, "abandoned": 1}, 12.5)
    metrics(RolloutStarted("r", 0.0, "row", 0))
    found = {(name, *dict(labels).values()): number for (name, labels), number in samples(metrics.text()[0]).items()}

    assert found["mine_starts_total", "single-sample", "429"] == 1
    assert found["mine_rollouts_recovered_total", "run"] == 3
    assert found["mine_rollouts_cancelled_total", "queued"] == 1
    assert found["mine_callback_posts_total", "grader", "acknowledged"] == 1
    assert found["mine_callback_post_duration_seconds_sum", "grader"] == 0.2
    assert found["mine_commit_duration_seconds_count", "outbox"] == 1
    assert (found["mine_queue_depth",], found["mine_queue_max",], found["mine_rollouts_grading",]) == (4, 16, 1)
    assert (found["mine_slots_in_use",], found["mine_slots_max",]) == (2, 8)
    assert (found["mine_outbox_rollouts", "owed"], found["mine_outbox_oldest_owed_seconds",]) == (5, 12.5)
    assert found["mine_rollouts_started_total",] == 1, "without default labels there is no agent_loop"


def test_trap_85_two_servers_in_one_process_do_not_collide() -> None:
    one, other = counted(), counted()
    one(RolloutStarted("x", 0.0, "row", 0))
    assert value(one.text()[0], "rollouts_started_total", agent_loop="adder") == 2
    assert value(other.text()[0], "rollouts_started_total", agent_loop="adder") == 1


def test_no_stranger_makes_time_series() -> None:
    """Tool names come from the model, methods and paths from the network, stop reasons from user code."""
    metrics = Metrics(tools=["add"])
    for number in range(500):
        metrics(ToolEnded("r", 0.0, 1, ToolCall("c", f"made_up_{number}", "{}"), "bad_call", 0.0))
        metrics(RolloutEnded("r", 0.0, "scored", f"reason {number}", 1.0))
        metrics.http(f"M{number}", f"/x/{number}", 404, 0.0)
    text, _ = metrics.text()
    assert len(samples(text)) < 1500
    assert value(text, "tool_calls_total", tool_name="unknown", status="bad_call") == 500
    assert value(text, "http_requests_total", method="OTHER", endpoint="unmatched", status_code="404") == 500 - 64


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_the_format_follows_the_accept_header(accept: str) -> None:
    text, content_type = counted().text(accept)
    assert content_type.startswith("application/openmetrics-text" if accept else "text/plain")
    assert value(text, "llm_requests_total", status="success") == 2
    assert b"_created" not in text


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_workers_add_up(accept: str) -> None:
    one, other = counted(), counted()
    odd = 'a,le="1" }\\\n\u2028 b'
    other(ToolEnded("r", 0.0, 1, ToolCall("c", odd, "{}"), "ok", 0.02))
    one.load(queued=4, running=2, grading=1, max_concurrent=8, max_queue=16)
    other.load(queued=1, running=3, grading=1, max_concurrent=8, max_queue=16)
    one.outbox({"owed": 5}, 12.5)
    other.outbox({"owed": 1}, 99.0)
    text = merge([one.text(accept)[0], other.text(accept)[0]])

    loop = {"agent_loop": "adder"}
    assert value(text, "rollouts_started_total", **loop) == 2
    assert value(text, "rollout_duration_seconds_bucket", **loop, status="scored", le="5.0") == 2
    assert value(text, "rollout_duration_seconds_sum", **loop, status="scored") == 6
    assert value(text, "slots_in_use") == 5
    assert value(text, "slots_max") == 16
    assert value(text, "outbox_rollouts", phase="owed") == 6
    assert value(text, "outbox_oldest_owed_seconds") == 99, "the oldest of all, not the sum"
    assert value(text, "tool_calls_total", tool_name=odd, status="ok") == 1
    assert all(number == 1 for (name, _), number in samples(text).items() if name.endswith("_info"))
    assert merge([text]) == text
    with pytest.raises(ValueError, match="not a sample"):
        merge([b"<html>\n"])


def test_the_lag_of_a_blocked_loop_is_seen() -> None:
    metrics = Metrics()

    async def blocked() -> None:
        watching = asyncio.create_task(metrics.watch_loop(0.01))
        await asyncio.sleep(0.03)
        time.sleep(0.2)  # noqa: ASYNC251 - the fault this metric is for
        await asyncio.sleep(0.02)
        watching.cancel()

    asyncio.run(blocked())
    assert metrics.lag.p99 > 0.15
    assert value(metrics.text()[0], "event_loop_lag_p99_seconds") == metrics.lag.p99
    assert value(metrics.text()[0], "event_loop_lag_seconds_bucket", le="0.1") < value(
        metrics.text()[0], "event_loop_lag_seconds_count"
    )


def test_p99_leaves_one_of_a_hundred_out() -> None:
    lag = LoopLag()
    assert lag.p99 == 0
    for number in range(200):
        lag.sample(number / 1000)
    assert lag.p99 == 0.197
