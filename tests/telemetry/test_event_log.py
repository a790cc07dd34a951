"""The event log: one file per rollout, safe names, every event a line."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.records.completion import Completion, Usage
from runner.records.event import AgentEnded, Logged, ModelAnswered, RolloutEnded, RolloutStarted, ToolStarted
from runner.records.message import ToolCall
from runner.records.rollout import Outcome, RolloutRequest
from runner.telemetry.event_log import EventLog
from runner.telemetry.line_writer import LineWriter


def lines(log: EventLog, rollout_id: str) -> list[dict[str, object]]:
    log.flush()
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


def test_trap_92_an_authors_data_do_not_pass_for_ours(tmp_path: Path) -> None:
    log = EventLog(tmp_path, clock=lambda: 7.0)
    log(Logged("r", 0.0, "mine", {"event": "x", "rollout_id": "y", "ts": "z", "data.ts": "w", "turn": 1}))
    [line] = lines(log, "r")
    assert line == {
        "ts": 7.0, "event": "mine", "rollout_id": "r", "turn": 1,
        "data.event": "x", "data.rollout_id": "y", "data.data.ts": "z", "data.ts": "w",
    }  # fmt: skip


def test_what_json_cannot_hold_is_mended_not_lost(tmp_path: Path) -> None:
    circular: dict[str, object] = {}
    circular["self"] = circular

    class Mute:
        def __str__(self) -> str:
            raise RuntimeError

    log = EventLog(tmp_path)
    log(Logged("r", 0.0, "odd", {"x": float("nan"), "keys": {(1, 2): 3}, "circular": circular, "mute": Mute()}))
    text = log.path("r").read_text() if lines(log, "r") else ""
    line = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (line["x"], line["keys"]) == ("nan", {"(1, 2)": 3})
    assert line["mute"] == "<Mute, whose text cannot be had: RuntimeError>"


def test_of_the_agents_end_only_its_reason_is_told(tmp_path: Path) -> None:
    log = EventLog(tmp_path, clock=lambda: 7.0)
    log(AgentEnded("r", 0.0, Outcome(RolloutRequest("r", ()), "ungraded", "max_turns")))
    assert lines(log, "r") == [{"ts": 7.0, "event": "agent_ended", "rollout_id": "r", "stop_reason": "max_turns"}]


def test_ten_thousand_rollouts_at_once_cost_microseconds_each_and_keep_no_files_open(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log(RolloutStarted("warm", 0.0, "row", 0))
    log.flush()
    began = time.perf_counter()
    for number in range(10_000):
        log(RolloutStarted(f"r{number}", 0.0, "row", 0))
    each = (time.perf_counter() - began) / 10_000
    log.close()
    assert each < 300e-6, "30 µs is the target; a slow machine gets ten times that"
    assert len(list(log.folder.iterdir())) == 10_001
    assert len(list(Path("/proc/self/fd").iterdir())) < 200


def test_a_killed_process_leaves_what_it_did(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys, time\n"
        "from runner.telemetry.event_log import EventLog\n"
        "from runner.records.event import RolloutStarted\n"
        "EventLog(pathlib.Path(sys.argv[1]))(RolloutStarted('r', 0.0, 'row', 0))\n"
        "time.sleep(0.3)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    [file] = tmp_path.rglob("*.jsonl")
    assert json.loads(file.read_text())["event"] == "rollout_started"


def test_the_end_of_a_process_waits_for_the_last_lines(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from runner.telemetry.event_log import EventLog\n"
        "from runner.records.event import RolloutEnded\n"
        "EventLog(pathlib.Path(sys.argv[1]))(RolloutEnded('r', 0.0, 'scored', 'final_answer', 1.0))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    [file] = tmp_path.rglob("*.jsonl")
    assert json.loads(file.read_text())["reward"] == 1.0


def test_a_full_disk_is_one_warning_and_no_half_lines(tmp_path: Path) -> None:
    """Stands in for ENOSPC: a limit on the size of files fails in the middle of a write, too."""
    code = (
        "import json, logging, pathlib, resource, signal, sys\n"
        "from runner.telemetry.event_log import EventLog\n"
        "from runner.records.event import Logged\n"
        "logging.basicConfig(format='%(message)s')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "log = EventLog(pathlib.Path(sys.argv[1]))\n"
        "for number in range(100):\n"
        "    log(Logged('r', 0.0, 'x', {'text': 'x' * 400}))\n"
        "    log.flush()\n"
        "log(Logged('other', 0.0, 'x', {}))\n"
        "log.close()\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True
    ).stderr.splitlines()
    assert [line.partition(" cannot be written: ")[2] for line in told] == [
        "File too large; rollouts go on without", "90 lines were lost",
    ]  # fmt: skip
    files = {file.name[:5]: file.read_text().splitlines() for file in tmp_path.rglob("*.jsonl")}
    assert {name: len(kept) for name, kept in files.items()} == {"r_454": 10, "other": 1}
    assert all(json.loads(line) for kept in files.values() for line in kept)


def test_lines_that_a_stalled_disk_leaves_waiting_are_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = LineWriter(lambda name: tmp_path / name, "logs", most_waiting=100)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            writer.write("a", b"0123456789" * 11)
        writer.close()
    assert writer.lost == 1000
    assert [record.getMessage() for record in caplog.records] == [
        "logs: the disk is too slow, too many lines wait for it; rollouts go on without",
        "logs: 1000 lines were lost",
    ]
