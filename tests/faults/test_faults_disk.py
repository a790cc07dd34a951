"""A disk that is full: one clear sentence, exit code 3, nothing corrupted, and the same command goes on afterwards."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for 320 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=320k", "none", str(place)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def whole(path: Path) -> list[dict[str, Any]]:
    """The journal, in which every line is a record."""
    content = path.read_bytes()
    assert content.endswith(b"\n") or not content
    return [json.loads(line) for line in content.splitlines()]


def test_a_disk_that_fills_up_while_it_runs(project: Any, small_disk: Path) -> None:
    project.rows(600)
    journal = small_disk / "it" / "rollouts.jsonl"
    done = project.run("eval", "--output", small_disk, code=3)
    assert "the disk is full" in done.err
    assert "hint: " in done.err and "the same command" in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("error")]) == 1
    assert done.out == ""
    kept = len(whole(journal))
    assert 50 < kept < 600

    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    assert f"{kept} re-used, {600 - kept} to run" in project.run("eval", "--output", small_disk).err
    lines = whole(journal)
    assert len(lines) == len({line["row_id"] for line in lines}) == 600


def test_a_disk_that_is_full_from_the_start(project: Any, small_disk: Path) -> None:
    subprocess.run(f"head -c 1M /dev/zero > {small_disk}/ballast", shell=True, stderr=subprocess.DEVNULL, check=False)
    for words in (("eval",), ("eval", "--fresh")):
        done = project.run(*words, "--output", small_disk, code=3)
        assert "the disk is full" in done.err and "hint: " in done.err
        assert done.out == ""
    (small_disk / "ballast").unlink()
    project.run("eval", "-q", "--output", small_disk)
    assert len(whole(small_disk / "it" / "rollouts.jsonl")) == 20


@pytest.mark.parametrize("limit", [1, 2_000, 12_000, 40_000])
def test_a_file_that_may_not_grow(project: Any, limit: int) -> None:
    """`ulimit -f`: whichever file meets it first, the manifest at the smallest, the journal at the largest."""
    project.rows(200)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = project.run("eval", code=3, preexec_fn=limited, env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert "may not grow any more" in done.err and "hint: " in done.err
    if project.journal().exists():
        whole(project.journal())
    project.run("eval", "-q")
    assert len(project.last()) == len(project.lines()) == 200


def test_a_recording_that_cannot_be_written(project: Any, in_a_row: Any) -> None:
    """The recording was asked for: without room for it the run stops, and no model is blamed."""
    project.rows(100)
    done = project.run("eval", "--concurrency", "4", "--record", "/dev/full", code=3)
    assert in_a_row(done.err, "config/recording_unwritable") >= 8
    assert "/dev/full cannot be written: no space left" in done.err
    lines = project.lines()
    assert len(lines) <= 12
    assert {(line["outcome"], line["failure"]["boundary"], line["reward"]) for line in lines} == {
        ("failed", "config", None)
    }
    project.run("eval", "-q", "--retry-failed", "--record", "calls.jsonl")
    assert {line["outcome"] for line in project.last().values()} == {"scored"} and len(project.last()) == 100


def test_results_that_cannot_be_written_out(project: Any) -> None:
    project.run("eval", "-q")
    for words in (("show", "runs/it"), ("eval", "--json"), ("export", "runs/it", "--format", "jsonl")):
        with Path("/dev/full").open("w") as full:
            done = project.run(*words, code=3, stdout=full)
        assert "the disk is full" in done.err
    done = project.run("export", "runs/it", "--format", "jsonl", "-o", "/dev/full", code=None)
    assert done.code == 3 and "the disk is full" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_one_may_not_write_to(project: Any) -> None:
    (project.folder / "runs").mkdir(mode=0o555)
    done = project.run("eval", code=1)
    assert "runs/it" in done.err and "ermission denied" in done.err and "hint: " in done.err


def test_a_read_only_file_system(project: Any) -> None:
    done = project.run("eval", "--output", "/proc/runs", code=1)
    assert "/proc/runs/it" in done.err and "hint: " in done.err
    done = project.run("eval", "--output", "/sys", code=1)
    assert "/sys/it" in done.err and "hint: " in done.err
