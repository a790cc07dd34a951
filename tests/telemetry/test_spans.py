"""Spans: the shape of a trace, what it carries over HTTP, and that a collector which is away costs nothing."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runner.records.completion import Completion, Usage
from runner.records.event import (
    Event,
    Graded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    RolloutEnded,
    RolloutStarted,
    ToolEnded,
    ToolStarted,
)
from runner.records.failure import ConfigFailure, Failure
from runner.records.message import ToolCall
from runner.telemetry.open_spans import open_spans
from runner.telemetry.span_export import propagator_of
from runner.telemetry.spans import Spans
from runner.telemetry.tracing import Tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = 0x0AF7651916CD43DD8448EB211C80319C


def memory(**options: Any) -> tuple[Spans, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing = Tracing(agent_loop="adder", **options)
    return Spans(tracing, exporter, propagator_of(tracing.propagators)), exporter


def played() -> list[Event]:
    call = ToolCall("c1", "add", '{"secret words": 1}')
    answer = Completion(
        {"role": "assistant", "content": "secret words"}, "stop", Usage(3, 4), model="m-1", response_id="x", retries=1
    )
    return [
        RolloutStarted("r", 0.0, "row", 0),
        ModelCalled("r", 0.1, 1, ({"role": "user", "content": "secret words"},)),
        ModelAnswered("r", 0.2, 1, answer),
        ToolStarted("r", 0.2, 1, call),
        ToolEnded("r", 0.3, 1, call, "error", 0.1, message="secret words"),
        ModelCalled("r", 0.3, 2, ()),
        ModelFailed("r", 0.4, 2, Failure("model", "model_unavailable", "secret words"), 0.1, 3),
        Graded("r", 0.5, "exact", 0.5, "secret words", 0.01),
        RolloutEnded("r", 0.6, "failed", "model_unavailable", None),
    ]


def named(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_rollout_is_a_trace_that_goes_on_from_the_callers(caplog: pytest.LogCaptureFixture) -> None:
    spans, exporter = memory()
    spans.accepted("r", {"Traceparent": PARENT}, tool_count=1, duplicate=False)
    for event in played():
        spans(event)
    spans.posted("r", "completion", "COMPLETED", 0.5, attempt=1, ack=True)
    spans.http("POST", "/rollout", 202, 0.1, request_id="q")
    spans.close()

    assert not caplog.records, "opentelemetry has nothing to complain of"
    found = named(exporter)
    root = found["invoke_workflow adder"]
    assert set(found) == {
        "rollout.init", "invoke_workflow adder", "chat m-1", "chat", "execute_tool add", "llm.complete_rollout",
        "http.request",
    }  # fmt: skip
    assert all(span.context.trace_id == TRACE for name, span in found.items() if name != "http.request")
    for child in ("chat m-1", "chat", "execute_tool add", "llm.complete_rollout"):
        assert found[child].parent == root.context
    chat = dict(found["chat m-1"].attributes or {})
    assert (chat["gen_ai.operation.name"], chat["osmosis.span"]) == ("chat", "llm.chat_completions")
    assert (chat["gen_ai.usage.input_tokens"], chat["completion_tokens"], chat["attempt"]) == (3, 4, 2)
    assert chat["gen_ai.response.finish_reasons"] == ("stop",)
    assert (found["execute_tool add"].attributes or {})["error.type"] == "error"
    assert (root.attributes or {})["osmosis.span"] == "rollout.run"
    assert root.status.description == "model_unavailable"
    [evaluation, error] = root.events
    assert evaluation.name == "gen_ai.evaluation.result"
    assert dict(evaluation.attributes or {})["gen_ai.evaluation.score.value"] == 0.5
    assert error.name == "rollout.error"
    assert "secret words" not in "".join(span.to_json() for span in found.values()), "contents are never recorded"


def test_outgoing_headers_carry_the_trace_where_the_rollout_is() -> None:
    spans, exporter = memory()
    assert spans.headers_for("r") == {}
    spans.accepted("r", {"traceparent": PARENT}, model="m")
    events = played()
    spans(events[0])
    at_root = spans.headers_for("r")
    spans(events[1])
    in_chat = spans.headers_for("r")
    ids = spans.ids("r")
    assert at_root["traceparent"] == f"00-{ids['trace_id']}-{ids['span_id']}-01"
    assert in_chat["x-b3-traceid"] == f"{TRACE:032x}"
    assert in_chat["traceparent"] != at_root["traceparent"]
    spans.forget("r")
    assert spans.headers_for("r") == {}
    assert spans.ids("r") == {}
    spans.close()
    assert (named(exporter)["chat m"].attributes or {})["status"] == "abandoned"


def test_b3_of_the_caller_is_taken_up() -> None:
    spans, exporter = memory()
    spans.accepted("r", {"X-B3-TraceId": f"{TRACE:032x}", "X-B3-SpanId": "b7ad6b7169203331", "X-B3-Sampled": "1"})
    spans.close()
    assert named(exporter)["rollout.init"].context.trace_id == TRACE


def test_sampling_drops_whole_traces_but_follows_the_caller() -> None:
    spans, exporter = memory(sample_rate=0.0)
    for event in played():
        spans(event)
    spans.accepted("theirs", {"traceparent": PARENT})
    spans.close()
    assert list(named(exporter)) == ["rollout.init"]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[str]]]:
    """A real one, as far as its answers go."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            paths.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("exporter", "path"), [("otlp", ""), ("jaeger", ""), ("zipkin", "/api/v2/spans"), ("otlp", "/mine/traces")]
)
def test_exporters_post_to_a_collector(collector: tuple[str, list[str]], exporter: Any, path: str) -> None:
    address, paths = collector
    spans = open_spans(Tracing(exporter=exporter, endpoint=address + path))
    for event in played():
        spans(event)
    spans.close()
    assert paths == [path or "/v1/traces"]


def test_a_collector_that_is_away_costs_no_time_and_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as deaf:  # takes connections and never answers
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        spans = open_spans(Tracing(exporter="otlp", endpoint=f"http://127.0.0.1:{deaf.getsockname()[1]}"))
        began = time.perf_counter()
        with caplog.at_level(logging.INFO):
            for _ in range(3000):
                spans(RolloutStarted("r", 0.0, "row", 0))
                for turn in range(3):
                    spans(ModelCalled("r", 0.1, turn, ()))
                    spans(ModelAnswered("r", 0.1, turn, Completion({})))
                spans(RolloutEnded("r", 0.1, "scored", "final_answer", 1.0))
            each = (time.perf_counter() - began) / 3000
            began = time.perf_counter()
            spans.close(wait=0.3)
            assert time.perf_counter() - began < 5.0  # an exporter by itself waits for ten
    assert each < 0.005
    said = [record.name for record in caplog.records if record.name.startswith("opentelemetry")]
    assert sum(name.startswith("opentelemetry.sdk") for name in said) <= 1, "that spans are dropped"
    assert len(said) <= 5, "how often it is tried again depends on the machine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endpoint": "collector:4317"}, "does not begin with http"),
        ({"propagators": ["x"]}, "'x'; there are tracecontext, baggage, b3"),
        ({"exporter": "pigeon"}, "'pigeon'"),
    ],
)
def test_what_cannot_be_is_said_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigFailure, match=words):
        open_spans(Tracing(**options))


def test_without_opentelemetry_the_error_says_how_to_install_it() -> None:
    """A module search that finds none of it stands in for an environment without the extra."""
    code = (
        "import sys\n"
        "from runner.telemetry.open_spans import open_spans\n"
        "from runner.telemetry.tracing import Tracing\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "sys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n"
        "sys.path_importer_cache.clear()\n"
        "try:\n"
        "    open_spans(Tracing())\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "tracing needs opentelemetry.sdk, which is not installed: pip install 'osmosis-run[otel]'\n"
