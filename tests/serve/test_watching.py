"""What can be seen of a server from outside: numbers, traces, lines in the log."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from typing import Any

import pytest

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def post(url: str, path: str, body: dict[str, Any], headers: dict[str, str]) -> int:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        return int(answer.status)


def get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("header", ["traceparent", "b3"])
def test_a_callers_trace_goes_on_to_the_model(stage: Any, header: str) -> None:
    pytest.importorskip("opentelemetry.sdk")
    given = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "b3": f"{TRACE}-00f067aa0ba902b7-1"}[header]

    async def main() -> None:
        controller = await stage.controller()
        async with stage.serving(serve='trace = { enabled = true, exporter = "none" }') as server:
            path, body = controller.start_of("r1")
            url = f"http://127.0.0.1:{server.port}"
            headers = {"content-type": "application/json", header: given}
            assert await asyncio.to_thread(post, url, path, body, headers) == 202
            await controller.until(2)
        carried = {name: value for name, value in controller.chats[0].headers.items() if TRACE in value}
        assert set(carried) == {"traceparent", "x-b3-traceid"}  # it goes on in both forms

    stage.run(main)


def test_without_tracing_nothing_is_added(stage: Any) -> None:
    async def main() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            await server.start(controller.start_of("r1"))
            await controller.until(2)
        assert not {"traceparent", "b3"} & set(controller.chats[0].headers)

    stage.run(main)


def test_the_numbers_are_those_of_what_happened(stage: Any) -> None:
    async def main() -> None:
        controller = await stage.controller(chat=lambda seen: "4" if seen.rollout != "wrong" else "5")
        async with stage.serving() as server:
            for name in ("a", "b", "wrong"):
                await server.start(controller.start_of(name))
            await server.ask("POST", "/rollout", {})
            await controller.until(6)
            await server.quiet()
            await asyncio.sleep(0.05)  # what was acknowledged is noted on disk a moment later
            text = await asyncio.to_thread(get, f"http://127.0.0.1:{server.port}/metrics")
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        name = "osmosis_rollout_"
        own = '{agent_loop="test"}'
        assert lines[f"{name}rollouts_started_total{own}"] == "3.0"
        ended = f'{name}rollouts_completed_total{{agent_loop="test",finish_reason="final_answer",status="scored"}}'
        assert lines[ended] == "3.0"
        assert lines[f'{name}starts_total{{dialect="single-sample",status_code="202"}}'] == "3.0"
        assert lines[f'{name}http_requests_total{{endpoint="/rollout",method="POST",status_code="422"}}'] == "1.0"
        for channel in ("completion", "grader"):
            assert lines[f'{name}callback_posts_total{{channel="{channel}",result="acknowledged"}}'] == "3.0"
        assert lines[f'{name}llm_requests_total{{status="success"}}'] == "3.0"
        assert lines[f'{name}outbox_rollouts{{phase="owed"}}'] == "0.0"
        assert lines[f"{name}slots_in_use"] == "0.0"

    stage.run(main)


def test_a_failed_rollout_is_in_the_log_with_its_name(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        controller = await stage.controller(chat=lambda seen: "drop")
        async with stage.serving() as server:
            await server.start(controller.start_of("r1"))
            await controller.until(2)

    with caplog.at_level(logging.WARNING):
        stage.run(main)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "runner.serve.watching"]
    assert line.startswith("rollout r1 failed: model/model_unavailable: ")
