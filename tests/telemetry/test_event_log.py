"""The event log: one file per rollout, safe names, every event a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.records.completion import Completion, Usage
from runner.records.event import Logged, ModelAnswered, RolloutEnded, RolloutStarted, ToolStarted
from runner.records.message import ToolCall
from runner.telemetry.event_log import EventLog


def lines(log: EventLog, rollout_id: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.path(rollout_id).read_text().splitlines()]


def test_every_event_is_a_line_of_its_rollouts_file(tmp_path: Path) -> None:
    log = EventLog(tmp_path, clock=lambda: 1700000000.25)
    log(RolloutStarted("a/1", 0.0, "row", 0))
    log(ToolStarted("a/1", 0.1, 1, ToolCall("c1", "add", "{}")))
    log(ModelAnswered("a/1", 0.2, 1, Completion({"role": "assistant", "content": "é"}, usage=Usage(3, 4))))
    log(RolloutEnded("b/1", 0.3, "scored", "final_answer", 1.0))

    assert log.folder == tmp_path / "1700000000"
    started, tool, answered = lines(log, "a/1")
    assert started == {
        "ts": 1700000000.25, "event": "rollout_started", "rollout_id": "a/1", "row_id": "row", "attempt": 0,
    }  # fmt: skip
    assert tool["call"] == {"id": "c1", "name": "add", "arguments": "{}"}
    assert answered["completion"]["usage"] == {  # type: ignore[index]
        "input_tokens": 3, "output_tokens": 4, "reasoning_tokens": 0, "cached_tokens": 0,
    }  # fmt: skip
    assert [line["event"] for line in lines(log, "b/1")] == ["rollout_ended"]


def test_what_the_author_logs_keeps_its_name_and_whatever_it_holds(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log(Logged("r", 0.0, "pre_llm", {"turn": 2, "seen": {1}, "path": Path("x"), "half": "\ud800"}))

    [line] = lines(log, "r")
    assert (line["event"], line["turn"], line["seen"], line["path"]) == ("pre_llm", 2, [1], "x")


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_id_leaves_the_folder_and_no_two_share_a_file(one: str, other: str) -> None:
    log = EventLog.__new__(EventLog)
    log.folder = Path("/logs/1")
    assert log.path(one).parent == log.folder
    assert log.path(one).name.isascii()
    assert (log.path(one) == log.path(other)) == (one == other)


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        EventLog(tmp_path / "file")
