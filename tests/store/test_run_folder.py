"""A run's folder: whole files, versions, archives, one process at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.store.errors import RunLocked, StoreError
from runner.store.lock import RunLock
from runner.store.run_folder import RunFolder, safe_name, write_whole


def test_a_new_run_and_the_same_again(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs" / "main")
    assert folder.is_new
    assert folder.summary() is None
    folder.write_manifest({"name": "main", "schema": "ignored"})
    folder.write_summary({"rows": 3})
    again = RunFolder.open(tmp_path / "runs" / "main")
    assert not again.is_new
    assert again.manifest == {"schema": "run/1", "name": "main"}
    assert again.summary() == {"rows": 3}
    again.write_manifest({"name": "other"})
    assert again.manifest["name"] == "other"
    assert RunFolder.open(folder.manifest_path).path == folder.path
    assert sorted(path.name for path in folder.path.iterdir()) == ["manifest.json", "summary.json"]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ('{"schema": "run/2"}', "written by a newer osmosis-run (run/2; this one reads run/1)"),
        ('{"schema": "run/0"}', "written by an older osmosis-run"),
        ('{"schema": "dbt"}', "is not from osmosis-run: its `schema` is 'dbt', not 'run/1'"),
        ("{}", "is not from osmosis-run: its `schema` is None"),
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
    ],
)
def test_a_manifest_that_is_not_ours(tmp_path: Path, manifest: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    for opening in (RunFolder.open, RunFolder.create):
        with pytest.raises(StoreError) as caught:
            opening(tmp_path)
        assert message in str(caught.value)


def test_what_is_not_a_run(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "main").write_manifest({})
    with pytest.raises(StoreError, match="there is no such run") as caught:
        RunFolder.open(tmp_path / "mian")
    assert caught.value.hint == f"did you mean `{tmp_path / 'main'}`?"
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="is a file, not a run's folder"):
        RunFolder.open(tmp_path / "notes.txt")
    with pytest.raises(StoreError, match="is a file; the run's folder goes there"):
        RunFolder.create(tmp_path / "notes.txt")
    with pytest.raises(StoreError, match=r"it has no manifest\.json") as caught:
        RunFolder.open(tmp_path)
    assert caught.value.hint == "runs there: main"
    with pytest.raises(StoreError, match=r"is not a run: it holds main, notes\.txt"):
        RunFolder.create(tmp_path)


def test_a_journal_without_a_manifest_is_not_run_over(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_text("{}\n")
    with pytest.raises(StoreError, match="nobody knows what was run"):
        RunFolder.create(tmp_path)


def test_archives_lose_nothing(tmp_path: Path) -> None:
    archives = []
    for number in range(3):
        folder = RunFolder.create(tmp_path / "main")
        folder.write_manifest({"number": number})
        archives.append(folder.archive())
        assert not folder.path.exists()
    assert len(set(archives)) == 3
    assert [json.loads((path / "manifest.json").read_text())["number"] for path in archives] == [0, 1, 2]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "summary.json"
    write_whole(target, b"old")
    code = (
        "import resource, sys; from pathlib import Path; from runner.store.run_folder import write_whole\n"
        "from runner.store.errors import StoreError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_whole(Path(sys.argv[1]), b'x' * 5000)\n"
        "except StoreError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{target}: cannot be written: the file may not grow any more (see `ulimit -f`)"
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


@given(st.text(max_size=200))
def test_any_name_is_made_safe(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert len(safe) <= 100
    assert "/" not in safe
    assert not safe.startswith((".", "-"))


def test_names_keep_what_they_can() -> None:
    assert safe_name("openai/gpt-5 mini") == "openai-gpt-5-mini"
    assert safe_name("../..") == "run"
    assert safe_name("Größe_1.2") == "Größe_1.2"


HOLD = """
import sys, time
from pathlib import Path
from runner.store.lock import RunLock
RunLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_two_processes_cannot_hold_one_run(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(RunLocked) as caught:
            RunLock.acquire(path)
        assert caught.value.pid == process.pid
        assert f"{tmp_path}: another osmosis-run is working in this run (pid {process.pid} on " in str(caught.value)
        assert caught.value.hint == f"wait for it, or stop it with `kill {process.pid}`"
        process.kill()
    with RunLock.acquire(path) as lock:  # the kernel dropped it with the process
        assert json.loads(path.read_text())["pid"] == os.getpid()
        with pytest.raises(RunLocked):
            RunLock.acquire(path)
    lock.release()
    RunLock.acquire(path).release()


def test_an_archived_run_is_locked_anew(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "main")
    folder.write_manifest({})
    old = folder.lock()
    folder.archive()
    fresh = RunFolder.create(tmp_path / "main").lock()
    old.release()
    with pytest.raises(RunLocked):
        folder.lock()
    fresh.release()


def test_a_lock_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened: No such file or directory"):
        RunLock.acquire(tmp_path / "nowhere" / "run.lock")
