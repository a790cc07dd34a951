"""How these tests run the command as a user would: real processes, real HTTP, a folder of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPT = str(Path(sys.executable).with_name("osmosis-run"))

HTTP = """\
[workflow]
name  = "it"
user  = "{{ row.q }}"
label = "{{ row.a }}"

[model]
id       = "openai/double"
base_url = "BASE_URL"
timeout  = "5s"
retries  = { attempts = 6, max_wait = "20ms" }

[sampling]
seed = "per-attempt"

[graders.answer]
kind = "exact"

[dataset]
path = "rows.jsonl"
id   = "id"

[eval]
concurrency = 32
"""
"""A workflow whose model is at BASE_URL."""

SCRIPTED = HTTP.replace(
    """id       = "openai/double"
base_url = "BASE_URL"
timeout  = "5s"
retries  = { attempts = 6, max_wait = "20ms" }""",
    """id       = "scripted/pupil"
provider = "scripted"
rules    = [{ reply = "{{ row.a }}" }]""",
)
"""The same with a model that always knows the answer."""

ANSWERS = """\
import json, os
log = os.open("seen.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def respond(request):
    '''n -> n + 1, but every seventh n is answered wrong. Each request is written down.'''
    asked = next(m["content"] for m in request["messages"] if m["role"] == "user")
    os.write(log, (json.dumps([asked, request.get("seed")]) + "\\n").encode())
    number = int(asked.rstrip("?"))
    return str(number + 1 if number % 7 else number)
"""
"""A responder for the double that logs what it was asked to seen.jsonl."""


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


class Project:
    """A folder with a workflow, and the command run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []
        ours = ("OSMOSIS_RUN", "NO_COLOR", "FORCE_COLOR")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def rows(self, count: int) -> None:
        """Rows that ask for n + 1."""
        lines = (json.dumps({"id": f"q{n}", "q": f"{n}?", "a": str(n + 1)}) for n in range(count))
        self.write("rows.jsonl", "\n".join(lines) + "\n")

    def start(self, *words: str | Path, **popen: Any) -> subprocess.Popen[str]:
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **popen}
        popen["env"] = {**self.env, **popen.get("env", {})}
        process = subprocess.Popen([SCRIPT, *map(str, words)], text=True, **popen)
        self.started.append(process)
        return process

    def run(self, *words: str | Path, code: int | None = 0, timeout: float = 60, **popen: Any) -> Done:
        """Run to the end; whatever the code, no traceback and nothing that calls itself a bug."""
        process = self.start(*words, **popen)
        out, err = process.communicate(timeout=timeout)
        out, err = out or "", err or ""
        assert "Traceback" not in out + err, err
        assert "bug in osmosis-run" not in err, err
        assert code is None or process.returncode == code, f"exit code {process.returncode}\n{err}\n{out}"
        return Done(process.returncode, out, err)

    def journal(self, run: str = "it") -> Path:
        return self.folder / "runs" / run / "rollouts.jsonl"

    def lines(self, run: str = "it") -> list[dict[str, Any]]:
        """Every whole line of the journal."""
        content = self.journal(run).read_bytes()
        return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]

    def last(self, run: str = "it") -> dict[tuple[str, int], dict[str, Any]]:
        """Row id and attempt -> the line that counts: a later one supersedes an earlier one."""
        return {(line["row_id"], line["attempt"]): line for line in self.lines(run)}

    def summary(self, run: str = "it") -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "runs" / run / "summary.json").read_text())
        return found

    def stop(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


class Double:
    """The shipped test double as a process of its own."""

    def __init__(self, folder: Path, words: tuple[str, ...], port: int) -> None:
        command = [sys.executable, "-m", "runner.models.double", "--port", str(port), *words]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.base_url: str = told["base_url"]
        self.port: int = told["port"]
        self._url: str = told["url"]
        self._log = folder / "seen.jsonl"

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._url}/stats", timeout=10) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def seen(self) -> list[tuple[str, int | None]]:
        """Question and seed of every request that the responder was shown, in order."""
        return [tuple(json.loads(line)) for line in self._log.read_text().splitlines()]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A scripted project of 20 rows."""
    made = Project(tmp_path)
    made.write("workflow.toml", SCRIPTED)
    made.rows(20)
    yield made
    made.stop()


@pytest.fixture
def double(project: Project) -> Iterator[Callable[..., Double]]:
    """`double("--latency", "0.1")` starts the test double on the answers above and points the workflow at it."""
    running: list[Double] = []
    project.write("answers.py", ANSWERS)

    def start(*words: str, workflow: str = HTTP, port: int = 0) -> Double:
        made = Double(project.folder, ("--answer", "./answers.py:respond", *words), port)
        running.append(made)
        project.write("workflow.toml", workflow.replace("BASE_URL", made.base_url))
        return made

    yield start
    for each in running:
        each.close()


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait until something holds."""

    def wait(holds: Callable[[], Any], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.005)

    return wait


@pytest.fixture
def in_a_row() -> Callable[[str, str], int]:
    """How often in a row the breaker saw a failure before it stopped: more than it waits for, when a gap was filled."""

    def count(err: str, failure: str) -> int:
        found = re.search(rf"stopping: the same failure (\d+) times in a row: {re.escape(failure)}", err)
        assert found is not None, err
        return int(found[1])

    return count
