"""A summary summed while the journal was written is, byte for byte, the one that reading it gives."""

from typing import Any

import pytest

from runner.batch.past_run import PastRun
from runner.store.journal_reading import read
from runner.store.record import encode

BROKEN = {"id": "b", "question": "broken", "answer": "x", "hard": False, "kind": "k0"}
HALF = {"id": "h", "question": "half", "answer": "\ufffd", "hard": False, "kind": "k1"}


@pytest.mark.parametrize(
    "settings",
    [("eval.group_by=['kind']",), ("eval.retries=2",), ("graders.answer.expect='{{ row.nothing }}'", "eval.breaker=0")],
    ids=["groups", "retries", "ungraded"],
)
def test_the_same_command_again_writes_the_same_bytes(project: Any, rows: Any, settings: tuple[str, ...]) -> None:
    project.write([*rows(6), BROKEN, HALF])
    path = project.run(*settings).folder / "summary.json"
    first = path.read_bytes()
    path.unlink()
    project.run(*settings)  # re-uses everything, so it reads the journal
    assert path.read_bytes() == first


def _followed(past: PastRun, lines: list[tuple[int, Any]]) -> PastRun:
    for place, record in lines:
        past.follow(place, encode(record), record)
    return past


def test_a_journal_followed_to_its_end_is_not_read(project: Any) -> None:
    folder = project.run().folder
    lines = list(read(folder / "rollouts.jsonl"))
    sizes = (folder / "rollouts.jsonl").stat().st_size
    past = _followed(PastRun.open(folder), lines)
    (folder / "rollouts.jsonl").write_bytes(b"x" * sizes)
    assert past.tally().rollouts == 12


def test_a_journal_with_lines_that_were_not_followed_is_read(project: Any) -> None:
    folder = project.run().folder
    lines = list(read(folder / "rollouts.jsonl"))
    for followed in ([], lines[1:], lines[:-1], [*lines[:3], *lines[4:]]):
        assert _followed(PastRun.open(folder), followed).tally().rollouts == 12


def test_a_line_that_was_repaired_is_read(project: Any) -> None:
    folder = project.run().folder
    journal = folder / "rollouts.jsonl"
    (_, first), *_ = read(journal)
    broken = {**first, "stop_reason": "half a \ud83d pair"}
    journal.write_bytes(encode(broken))
    tally = _followed(PastRun.open(folder), [(0, broken)]).tally()
    assert list(tally.stop_reasons) == ["half a \ufffd pair"]
