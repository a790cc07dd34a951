"""Bad input, in one line each: a clear sentence, a hint, the right exit code, and no traceback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


MINIMAL = """
[workflow]
user = "{{ row.q }}"
label = "{{ row.a }}"
[model]
provider = "scripted"
rules = [{ reply = "1" }]
[graders.answer]
kind = "exact"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflow.toml").write_text(MINIMAL)
    (tmp_path / "good.jsonl").write_text('{"q": "1?", "a": "1"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    (tmp_path / "latin.toml").write_bytes('[workflow]\nname = "caf\xe9"\n'.encode("latin-1"))
    (tmp_path / "utf16.toml").write_text(MINIMAL, encoding="utf-16")
    (tmp_path / "folder").mkdir()
    (tmp_path / "rows.xlsx").write_bytes(b"PK\x03\x04")
    (tmp_path / "broken.jsonl").write_text('{"q": "1?", "a": "1"}\n{"q": \n')
    (tmp_path / "lacks.jsonl").write_text('{"q": "1?", "a": "1"}\n{"a": "1"}\n')
    return tmp_path


CASES: list[tuple[str, list[str], int, str]] = [
    ("no file", ["validate", "workflo.toml"], 1, "did you mean `workflow.toml`?"),
    ("a folder without a file", ["validate", "folder"], 1, "holds no workflow.toml"),
    ("eval without its file", ["eval", "-w", "nope.toml"], 1, "there is no file `nope.toml`"),
    ("binary", ["validate", "binary.toml"], 1, "binary file"),
    ("another encoding", ["validate", "latin.toml"], 1, "UTF-8"),
    ("UTF-16", ["validate", "utf16.toml"], 1, "UTF-8"),
    ("no dataset", ["eval"], 1, "dataset"),
    ("a dataset that is not there", ["eval", "god.jsonl"], 1, "god.jsonl"),
    ("an empty dataset", ["eval", "empty.jsonl"], 1, "empty.jsonl"),
    ("a folder as dataset", ["eval", "folder"], 1, "folder"),
    ("a dataset of another kind", ["eval", "rows.xlsx"], 1, "zip archive"),
    ("a line that is no JSON", ["eval", "broken.jsonl"], 1, "broken.jsonl:2"),
    ("a row without the column", ["validate", "--dataset", "lacks.jsonl"], 1, "lacks.jsonl"),
    ("an unknown command", ["evla"], 1, "did you mean `eval`?"),
    ("an unknown option", ["eval", "--attemps", "2"], 1, "did you mean `--attempts`"),
    ("a bad number", ["eval", "good.jsonl", "--attempts", "many"], 1, "many"),
    ("a bad --set", ["eval", "good.jsonl", "--set", "sampling.temprature=1"], 1, "did you mean `temperature`?"),
    ("a --set without a value", ["eval", "good.jsonl", "--set", "sampling.top_p"], 1, "sampling.top_p"),
    ("an unknown profile", ["eval", "good.jsonl", "--profile", "ci"], 1, "ci"),
    ("a run that is not there", ["show", "runs/nothing"], 1, "runs/nothing"),
    ("two runs that are not there", ["compare", "runs/a", "runs/b"], 1, "runs/a"),
    ("an unknown format", ["export", "runs/a", "--format", "trl"], 1, "trl"),
    ("an unknown key", ["explain", "sampling.temprature"], 1, "did you mean"),
    ("a row that is not there", ["render", "--row", "7", "--set", "dataset.path=good.jsonl"], 1, "7"),
    ("an unknown code", ["validate", "--explain", "unknown-ky"], 1, "did you mean `unknown-key`?"),
]


@pytest.mark.parametrize(("words", "code", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_clear_sentence(words: list[str], code: int, said: str, osmosis: Run, project: Path) -> None:
    done = osmosis(*words, folder=project)
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    assert "bug in osmosis-run" not in text
    assert said in text
    assert "error" in text
    assert any(word in text for word in ("hint: ", "help: ", "^ ", "did you mean")), f"no hint in:\n{text}"
    assert done.returncode == code, text
    assert len(done.stderr.splitlines()) <= 15, f"too many words:\n{done.stderr}"


def test_a_read_only_folder_for_the_run(osmosis: Run, project: Path) -> None:
    done = osmosis("eval", "good.jsonl", "--set", "eval.output=/proc/nowhere", folder=project)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "/proc/nowhere" in done.stderr


def test_a_full_disk(osmosis: Run, project: Path) -> None:
    """/dev/full is a disk that is always full."""
    done = osmosis("schema", "workflow", folder=project)
    assert done.returncode == 0
    import os
    import subprocess
    import sys

    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "runner.cli.main", "schema", "workflow"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=project, env=dict(os.environ), check=False
        )
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 3


def test_no_key(osmosis: Run, project: Path) -> None:
    words = ["--set", "model.provider=openai", "--set", "model.id=openai/gpt-5-mini", "--set", "model.rules=[]"]
    done = osmosis("eval", "good.jsonl", *words, "--set", "model.api_key.env=NO_SUCH_KEY", folder=project)
    assert done.returncode == 1
    assert "NO_SUCH_KEY" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_no_network(osmosis: Run, project: Path) -> None:
    words = ["model.provider=openai", "model.id=openai/x", "model.base_url=http://127.0.0.1:9/v1", "model.rules=[]"]
    settings = [word for setting in [*words, "model.retries.attempts=0"] for word in ("--set", setting)]
    done = osmosis("eval", "good.jsonl", *settings, folder=project)
    assert done.returncode == 3
    assert "127.0.0.1:9" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
