"""What nobody meant to pass: one clear sentence, a hint, the right exit code, nothing on stdout, no traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest


def told(project: Any, *words: str | Path, code: int = 1, **popen: Any) -> str:
    """What the command says on stderr; all the rest is checked here."""
    done = project.run(*words, code=code, **popen)
    assert done.out == "", done.out
    assert "error" in done.err and len(done.err.splitlines()) <= 14, done.err
    assert any(word in done.err for word in ("hint: ", "help: ", "did you mean")), done.err
    return str(done.err)


FILES = {
    "empty": (b"", "the file has no [model]"),
    "only comments": (b"# nothing\n", "the file has no [model]"),
    "binary": (b"\x7fELF" + bytes(range(256)), "binary"),
    "UTF-16": ("[workflow]".encode("utf-16"), "UTF-16"),
    "latin-1": ('[workflow]\nname = "caf\xe9"\n'.encode("latin-1"), "UTF-8"),
    "NUL": (b'[workflow]\nname = "a\0b"\n', "w.toml"),
    "a gzip": (b"\x1f\x8b\x08\x00" + bytes(60), "binary"),
    "JSON": (b'{"workflow": {"user": "x"}}\n', "w.toml"),
    "a dataset": (b'{"q": "1"}\n{"q": "2"}\n', "w.toml"),
}


@pytest.mark.parametrize("what", FILES)
def test_a_workflow_file_that_is_none(project: Any, what: str) -> None:
    content, said = FILES[what]
    project.write("w.toml", content)
    assert said in told(project, "eval", "-w", "w.toml", "rows.jsonl")


def test_a_workflow_file_that_cannot_be_read(project: Any) -> None:
    (project.folder / "sub").mkdir()
    assert "there is no file `nope.toml`" in told(project, "eval", "-w", "nope.toml")
    assert "holds no workflow.toml" in told(project, "eval", "-w", "sub")
    (project.folder / "loop.toml").symlink_to("loop.toml")
    assert "loop.toml" in told(project, "eval", "-w", "loop.toml")
    assert "toml" in told(project, "eval", "-w", "x" * 5_000 + ".toml")
    assert "toml" in told(project, "eval", "-w", "workflow.toml/workflow.toml")


DATASETS = {
    "empty": ("rows.jsonl", b"", "empty"),
    "blank": ("rows.jsonl", b"\n\n\n", "blank"),
    "a JSON array": ("rows.jsonl", b'[{"id": "q0"}]', "array"),
    "pretty JSON": ("rows.jsonl", b'{\n  "id": "q0"\n}\n', "one line"),
    "a CSV header": ("rows.csv", b"id,q,a\n", "rows.csv"),
    "JSONL named csv": ("rows.csv", b'{"id": "q0", "q": "0?", "a": "0"}\n', "rows.csv"),
    "CSV named jsonl": ("rows.jsonl", b"id,q,a\nq0,0?,0\n", "rows.jsonl:1"),
    "a zip": ("rows.xlsx", b"PK\x03\x04" + bytes(64), "zip"),
    "gzip": ("rows.jsonl.gz", b"\x1f\x8b\x08\x00" + bytes(64), "gunzip"),
    "no ending": ("rows", b'{"id": "q0"}\n', "format"),
    "not Parquet": ("rows.parquet", b"nothing of the kind", "Parquet"),
}


@pytest.mark.parametrize("what", DATASETS)
def test_a_dataset_that_is_none(project: Any, what: str) -> None:
    name, content, said = DATASETS[what]
    project.write(name, content)
    assert said in told(project, "eval", name)
    assert not list(project.folder.glob("runs/*/*.json*")), "nothing was begun"


def test_a_dataset_that_cannot_be_read(project: Any) -> None:
    (project.folder / "rows.d").mkdir()
    assert "is a folder" in told(project, "eval", "rows.d")
    assert "did you mean" in told(project, "eval", "row.jsonl")
    os.mkfifo(project.folder / "pipe.jsonl")
    assert "not a regular file" in told(project, "eval", "pipe.jsonl", timeout=10)
    assert "jsonl" in told(project, "eval", "x" * 5_000 + ".jsonl")
    assert "/dev/stdin" in told(project, "eval", "/dev/stdin", stdin=subprocess.DEVNULL)
    assert "rows" in told(project, "eval", "--rows", "5-2")


def test_a_run_folder_of_another_version(project: Any) -> None:
    project.run("eval", "-q")
    manifest = project.journal().with_name("manifest.json")
    written = manifest.read_text()
    for schema, said in (("run/9", "newer osmosis-run"), ("run/0", "older osmosis-run"), ("inspect/1", "not from")):
        manifest.write_text(json.dumps({**json.loads(written), "schema": schema}))
        for words in (("eval",), ("plan",), ("show", "runs/it"), ("regrade", "runs/it"),
                      ("export", "runs/it", "--format", "jsonl"), ("compare", "runs/it", "runs/it")):  # fmt: skip
            assert said in told(project, *words), words
    manifest.write_text(written)
    journal = project.journal().read_bytes()
    project.journal().write_bytes(journal.replace(b'"rollout/1"', b'"rollout/7"', 1))
    for words in (("eval",), ("show", "runs/it", "--list"), ("export", "runs/it", "--format", "jsonl")):
        text = told(project, *words)
        assert "rollouts.jsonl:1" in text and "newer osmosis-run" in text and "upgrade" in text
    project.run("eval", "-q", "--fresh")


def test_a_folder_that_is_no_run(project: Any) -> None:
    run = project.folder / "runs" / "it"
    run.mkdir(parents=True)
    (run / "thesis.tex").write_text("years of work")
    for words in (("eval",), ("eval", "--fresh"), ("show", "runs/it"), ("regrade", "runs/it")):
        assert "not a run" in told(project, *words), words
    assert (run / "thesis.tex").read_text() == "years of work"
    assert [path.name for path in run.parent.iterdir()] == ["it"], "somebody's folder is not moved aside"
    assert "it.jsonl" in told(project, "show", "it.jsonl")
    assert "runs" in told(project, "show", "runs")
    assert "is a file" in told(project, "show", "rows.jsonl")
    project.run("eval", "-q", "--name", "sums")
    assert "did you mean `runs/sums`" in told(project, "show", "runs/sum")
    assert "has no rollout `q99`" in told(project, "show", "runs/sums", "q99")
    assert "has no rollout `q1/7`" in told(project, "show", "runs/sums", "q1/7")


def test_a_file_where_a_folder_is_wanted(project: Any) -> None:
    project.write("runs", "not a folder")
    assert "runs" in told(project, "eval")
    (project.folder / "runs").unlink()
    (project.folder / "runs").mkdir()
    project.write("runs/it", "not a folder")
    assert "is a file" in told(project, "eval")
    assert "is a file" in told(project, "eval", "--fresh")


WORDS = {
    "an unknown command": (["evla"], "did you mean `eval`"),
    "another tool's word": (["run"], "did you mean `eval`"),
    "an unknown option": (["eval", "--atempts", "2"], "did you mean `--attempts`"),
    "an option without its value": (["eval", "--attempts"], "--attempts"),
    "no attempts": (["eval", "--attempts", "0"], "--attempts"),
    "no number": (["eval", "--concurrency", "lots"], "lots"),
    "two datasets": (["eval", "rows.jsonl", "rows.jsonl"], "rows.jsonl"),
    "an unknown key": (["eval", "--set", "modle.id=x"], "did you mean"),
    "an empty name": (["eval", "--set", "=x"], "--set"),
    "an unknown format": (["export", "runs/it", "--format", "trl"], "trl"),
    "no run": (["export"], "RUN"),
}


@pytest.mark.parametrize("what", WORDS)
def test_words_that_mean_nothing(project: Any, what: str) -> None:
    words, said = WORDS[what]
    assert said in told(project, *words)


def test_a_port_in_use(project: Any, until: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        text = told(project, "model-server", "--port", port)
        assert "in use" in text and port in text and "--port 0" in text
    assert "--port" in told(project, "model-server", "--port", "70000")
    assert "no.such.host.invalid" in told(project, "model-server", "--host", "no.such.host.invalid", timeout=30)
    server = project.start("model-server", "--port", "0")
    assert server.stdout.readline().startswith("http://127.0.0.1:")
    server.send_signal(signal.SIGINT)
    _, err = server.communicate(timeout=10)
    assert server.returncode == 130 and "Traceback" not in err


def test_no_key(project: Any, double: Any) -> None:
    server = double()
    settings = ("--set", "model.api_key.env=NO_SUCH_KEY")
    assert "NO_SUCH_KEY" in told(project, "eval", *settings)
    assert "NO_SUCH_KEY" in told(project, "eval", *settings, env={"NO_SUCH_KEY": ""})
    assert "NO_SUCH_KEY" in told(project, "eval", "--set", 'secrets.required=["NO_SUCH_KEY"]')
    assert server.stats()["requests"] == 0 and not project.journal().exists()
    project.run("eval", "-q", *settings, env={"NO_SUCH_KEY": "abcd"})


def test_user_code_that_is_broken(project: Any) -> None:
    workflow = (project.folder / "workflow.toml").read_text()
    project.write("workflow.toml", workflow + '\n[tools.t]\ncall = "./code.py:t"\n')
    for code, said in (
        (None, "code.py"),
        ("def t(: pass\n", "code.py:1"),
        ("import nothing_of_the_kind\n", "nothing_of_the_kind"),
        ("raise SystemExit(5)\n", "SystemExit"),
        ("def tt(n: int) -> int:\n    'T.'\n    return n\n", "did you mean"),
        ("t = 3\n", "t"),
        (b"\xff\xfe\x00", "code.py"),
    ):
        if code is not None:
            project.write("code.py", code)
        assert said in told(project, "eval"), code


def test_json_is_never_mixed_with_words(project: Any) -> None:
    for words in (("eval", "--json"), ("plan", "--json"), ("show", "runs/it", "--json"), ("eval", "--json", "-q")):
        done = project.run(*words)
        assert json.loads(done.out)["rows"] == 20, words
        assert done.err == "", words
    assert told(project, "eval", "--json", "nope.jsonl")
