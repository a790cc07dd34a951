"""A journal that ends in the middle of a line, or in zeros: it is resumed, and nothing is made of the torn part."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import Any

import pytest

from runner.batch.options import RunOptions
from runner.batch.run import evaluate, plan_run
from runner.build.plan import build
from runner.config.load import load


def test_a_last_line_torn_at_any_byte(project: Any) -> None:
    """In process, for speed: built once, then cut at every byte of the last record and planned; resumed at many."""
    project.rows(3)
    plan = build(load(project.folder / "workflow.toml"))
    asyncio.run(evaluate(plan, RunOptions()))
    whole = project.journal().read_bytes()
    start, end = whole[:-1].rfind(b"\n") + 1, len(whole)
    torn = project.journal().with_suffix(".torn")
    for cut in range(start, end):
        project.journal().write_bytes(whole[:cut])
        assert plan_run(plan, RunOptions())[0].text() == "3 rows x 1 attempt: 2 re-used, 1 to run.", cut
        if start + 8 < cut < end - 8 and cut % 31:
            continue
        result = asyncio.run(evaluate(plan, RunOptions()))
        assert result.exit_code == 0 and result.summary["outcomes"]["scored"] == 3, cut
        assert len(project.lines()) == len(project.last()) == 3, cut
        assert (torn.read_bytes() if torn.exists() else b"") == (whole[start:cut] + b"\n" if cut > start else b"")
        torn.unlink(missing_ok=True)


@pytest.mark.parametrize("tail", [b"", b'{"schema":"rollout/1","rol', b"\0" * 4096, b'{"schema"' + b"\0" * 5000])
def test_a_damaged_tail_is_put_aside_and_played_again(project: Any, tail: bytes) -> None:
    """Zeros are what a power failure leaves where a file had grown and its content was not written yet."""
    project.run("eval", "-q")
    whole = project.journal().read_bytes()
    kept = whole[: whole[:-1].rfind(b"\n") + 1]
    project.journal().write_bytes(kept + tail)
    assert "19 re-used, 1 to run" in project.run("plan").out
    assert "19 re-used, 1 to run" in project.run("eval").err
    assert project.journal().read_bytes().startswith(kept)
    assert len(project.lines()) == len(project.last()) == 20
    torn = project.journal().with_suffix(".torn")
    assert (torn.read_bytes() if torn.exists() else b"") == (tail + b"\n" if tail else b"")
    assert project.run("show", "runs/it").out


def test_zeros_between_whole_lines_lose_nothing_that_was_synced(project: Any) -> None:
    """A batch of lines of which the disk had written only the end when the power went."""
    project.run("eval", "-q")
    lines = project.journal().read_bytes().splitlines(keepends=True)
    damaged = b"".join(lines[:17]) + b"\0" * len(lines[17] + lines[18][:50]) + lines[18][50:] + lines[19]
    project.journal().write_bytes(damaged)
    done = project.run("eval", code=None)
    assert done.code == 0, done.err
    assert "18 re-used, 2 to run" in done.err
    content = project.journal().read_bytes()
    assert content.startswith(b"".join(lines[:17]))
    assert len({json.loads(line)["row_id"] for line in content.splitlines() if b"\0" not in line}) == 20
    assert project.summary()["outcomes"]["scored"] == 20
    assert len(project.run("export", "runs/it", "--format", "jsonl").out.splitlines()) == 20


def test_a_damaged_line_in_the_middle_is_named(project: Any) -> None:
    project.run("eval", "-q")
    lines = project.journal().read_bytes().splitlines(keepends=True)
    project.journal().write_bytes(b"".join([*lines[:4], b"{oops\n", *lines[5:]]))
    for words in (("eval",), ("plan",), ("show", "runs/it", "--list"), ("export", "runs/it", "--format", "jsonl")):
        done = project.run(*words, code=1)
        assert "rollouts.jsonl:5" in done.err and "hint: " in done.err
        assert done.out == ""
    assert project.journal().read_bytes().count(b"\n") == 20, "nobody repairs a user's file behind their back"


def test_what_a_killed_command_left_beside_the_run_is_no_stranger(project: Any) -> None:
    """Killed while the very first manifest was being written: a half file, and nothing else."""
    run = project.journal().parent
    run.mkdir(parents=True)
    (run / ".manifest.json.4242").write_bytes(b'{"schema": "ru')
    (run / "run.lock").write_bytes(b'{"pid": 4242')
    project.run("eval", "-q")
    assert len(project.last()) == 20
    assert not (run / ".manifest.json.4242").exists()


def test_a_run_without_its_journal_or_summary_is_made_again(project: Any) -> None:
    project.run("eval", "-q")
    project.journal().with_name("summary.json").unlink()
    assert project.run("show", "runs/it").out
    project.journal().unlink()
    assert "20 to run" in project.run("eval").err
    shutil.rmtree(project.journal().parent)
    assert "20 to run" in project.run("eval").err
