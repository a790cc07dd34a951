"""The log: one way for every record, nothing secret in it, and nothing that waits for a reader."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypercorn.config import Config
from hypothesis import given
from hypothesis import strategies as st

from runner.telemetry.log_context import bind, bound, current, unbind
from runner.telemetry.logs import MOST_WAITING, Logs, configure
from runner.telemetry.redaction import Redaction

log = logging.getLogger("mine")


@contextmanager
def logging_to(stream: Any, **options: Any) -> Iterator[Logs]:
    logs = configure(stream=stream, **options)
    try:
        yield logs
    finally:
        logs.close()


def written(**options: Any) -> tuple[io.StringIO, Any]:
    stream = io.StringIO()
    return stream, logging_to(stream, **options)


def test_json_records_have_the_shape_of_the_protocol() -> None:
    stream, logs = written(format="json", caller=True)
    with logs, bound(rollout_id="r1", request_id=None):
        log.warning("it is %s", "late", extra={"seconds": 1.5})
        try:
            raise ValueError("x")
        except ValueError:
            log.exception("broken")
    late, broken = map(json.loads, stream.getvalue().splitlines())
    assert list(late) == ["level", "logger", "event", "timestamp", "caller", "rollout_id", "seconds"]
    assert (late["level"], late["logger"], late["event"], late["rollout_id"]) == ("warning", "mine", "it is late", "r1")
    assert late["timestamp"].endswith("Z") and len(late["timestamp"]) == len("2026-01-01T00:00:00.000Z")
    assert late["caller"].startswith("test_logs.py:")
    assert broken["exception"].endswith("ValueError: x")


def test_plain_and_console_show_a_record_on_lines_of_its_own() -> None:
    for format, head in (("plain", "INFO mine: "), ("console", "info     mine                     ")):
        stream, logs = written(format=format, timestamp=False)
        with logs, bound(rollout_id="r 1"):
            log.info("one\nERROR forged \x1b[2J")
        assert stream.getvalue() == f'{head}one\n    ERROR forged \\x1b[2J  rollout_id="r 1"\n'


def test_colours_are_for_terminals_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with logging_to(stream):
        log.error("red")
    assert ("\x1b[31merror" in stream.getvalue()) != bool(os.environ.get("NO_COLOR"))


def test_the_context_of_two_rollouts_at_once_does_not_mix() -> None:
    async def one(rollout_id: str) -> None:
        with bound(rollout_id=rollout_id):
            await asyncio.sleep(0)
            token = bind(attempt_id="a")
            log.info(rollout_id)
            unbind(token)
            assert dict(current()) == {"rollout_id": rollout_id}

    async def both() -> None:
        await asyncio.gather(one("x"), one("y"))

    stream, logs = written(format="json")
    with logs:
        asyncio.run(both())
    records = [json.loads(line) for line in stream.getvalue().splitlines() if '"mine"' in line]
    assert [(record["event"], record["rollout_id"]) for record in records] == [("x", "x"), ("y", "y")]
    assert not current()


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer TOPSECRET123",
        "headers {'authorization': 'Bearer TOPSECRET123'}",
        "headers {'Authorization': 'TOPSECRET123'}",
        "POST https://user:TOPSECRET123@host/path",
        'body {"api_key": "TOPSECRET123"}',
        "x-api-key=TOPSECRET123&x=1",
        "the key is sk-TOPSECRET123456",
        "configured-TOPSECRET123 stands alone",
    ],
)
def test_no_credential_is_written_wherever_it_stands(text: str) -> None:
    stream, logs = written(format="json", secrets=["configured-TOPSECRET123", "x"])
    with logs, bound(endpoint=text):
        log.info("%s", text, extra={"field": text})
        try:
            raise RuntimeError(text)
        except RuntimeError:
            log.exception("it broke")
    assert "TOPSECRET" not in stream.getvalue()
    assert stream.getvalue().count("***") >= 5, "the text stood in five places"
    assert all(json.loads(line) for line in stream.getvalue().splitlines())
    stream, logs = written(format="plain", secrets=["configured-TOPSECRET123"])
    with logs, bound(endpoint=text):
        log.info("%s", text, extra={"field": text})
    assert "TOPSECRET" not in stream.getvalue()


@given(st.text())
def test_redaction_takes_any_text_and_is_done_at_once(text: str) -> None:
    redact = Redaction(["a secret value"])
    assert redact(redact(text)) == redact(text)


def test_ordinary_words_stay() -> None:
    text = "a bearer of news, a bearer token, basic arithmetic, 3 tokens to http://host:80/a@b, secret agents, tokens=5"
    assert Redaction()(text) == text


def test_fields_named_like_keys_and_nested_texts_are_hidden_too() -> None:
    stream, logs = written(format="json", secrets=['odd"secret\\value'])
    with logs:
        log.info("x", extra={"llm_api_key": "abc", "body": {"password": "pw", "n": [1, 'an odd"secret\\value']}})
    line = json.loads(stream.getvalue())
    assert line["llm_api_key"] == line["body"]["password"] == "***"
    assert line["body"]["n"] == [1, "an ***"]


def test_a_slip_in_a_log_call_loses_no_line_and_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    stream, logs = written(format="plain", timestamp=False)
    with logs:
        log.info(*("%d of %d", "x"))
        log.info("%s", Mute())
        log.info("after")
    first, second, third = stream.getvalue().splitlines()
    assert first == "INFO mine: %d of %d ('x',)"
    assert "cannot be shown" in second
    assert third == "INFO mine: after"
    assert capsys.readouterr().err == ""


def test_a_reader_that_stalls_costs_lines_not_time() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        logs = configure(stream=stream, format="plain", timestamp=False)
        began = time.perf_counter()
        for number in range(MOST_WAITING * 2):
            log.info("%d %s", number, "x" * 100)
        each = (time.perf_counter() - began) / (MOST_WAITING * 2)
        assert each < 0.001
        assert logs.dropped > 0
        with os.fdopen(reading, "rb") as reader:
            os.set_blocking(reading, False)
            text, end = b"", time.monotonic() + 10
            while b"log records were dropped" not in text and time.monotonic() < end:
                text += reader.read() or b""
                time.sleep(0.001)
            logs.close()
    assert b"log records were dropped: they came faster" in text


def test_a_stream_that_is_gone_hurts_nobody() -> None:
    stream = io.StringIO()
    logs = configure(stream=stream)
    stream.close()
    log.info("nobody reads this")
    logs.close()
    assert logs.dropped == 1


def test_libraries_warnings_and_hypercorn_go_the_same_way() -> None:
    stream, logs = written(format="json", level="debug")
    with logs as open_logs:
        config = Config()
        config.accesslog, config.errorlog = open_logs.access, open_logs.error
        asyncio.run(config.log.warning("Running on %s", "http://x"))
        scope: Any = {
            "type": "http", "headers": [], "method": "GET", "path": "/x", "query_string": b"", "scheme": "http",
        }  # fmt: skip
        asyncio.run(config.log.access(scope, {"status": 500, "headers": []}, 0.1))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old", stacklevel=1)
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    kept = [(line["level"], line["logger"]) for line in found if line["logger"] != "asyncio"]
    assert kept == [("warning", "hypercorn.error"), ("error", "hypercorn.access"), ("warning", "py.warnings")]


def test_the_level_holds_and_closing_puts_everything_back() -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream, logs = written(level="warning")
    with logs as open_logs:
        log.info("not this")
        assert open_logs.access is None
    open_logs.close()
    assert stream.getvalue() == ""
    assert (root.handlers[:], root.level) == before
    for options in ({"level": "loud"}, {"format": "xml"}):
        with pytest.raises(ValueError, match="no log"):
            configure(**options)  # type: ignore[arg-type]
