"""`osmosis-run serve` as a user runs it: a real process, its two streams, its exit codes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.store.errors import StoreError
from runner.store.state_lock import lock_state

FILE = """
[workflow]
name = "demo"
system = "Answer."
label = "{{ row.ground_truth }}"
[model]
id = "openai/x"
base_url = "http://127.0.0.1:9/v1"
[graders.exact]
kind = "exact"
[serve]
port = 0
drain = "500ms"
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command, running, and the first line of its stdout."""
    command = [str(Path(sys.executable).with_name("osmosis-run")), "serve", *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def health(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url + "/health", timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def write(folder: Path, text: str = FILE) -> Path:
    file = folder / "workflow.toml"
    file.write_text(text)
    return file


def test_it_says_where_it_is_and_ends_with_a_signal(tmp_path: Path) -> None:
    write(tmp_path)
    with serving(tmp_path) as (process, said):
        assert set(said) == {"url", "pid"} and said["pid"] == process.pid
        assert health(said["url"])["agent_loop"] == "demo"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=15)
    assert (process.returncode, out) == (0, "")
    lines = [line.strip() for line in err.splitlines()[:7]]
    assert lines == [
        f"demo is served at {said['url']}, until Ctrl-C",
        "dialects   agent-loop, multi-sample, single-sample",
        "key        none asked for",
        "at once    256, and 4096 may wait",
        "state      state/rollouts.db",
        "",
        f"try: curl {said['url']}/health",
    ]
    assert (tmp_path / "state" / "rollouts.db").is_file()


def test_a_port_in_use_is_one_sentence(tmp_path: Path, osmosis: Run) -> None:
    write(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = osmosis("serve", "--port", str(port), NO_COLOR="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: port {port} of 127.0.0.1 is in use by another process\n\n"
        "hint: choose another with `--port`, or `--port 0` for any free one\n"
    )


def test_an_open_server_is_refused(tmp_path: Path, osmosis: Run) -> None:
    write(tmp_path)
    done = osmosis("serve", "--host", "0.0.0.0", NO_COLOR="1")  # noqa: S104 - refused
    assert done.returncode == 1 and "open-server" in done.stderr


def test_a_key_that_no_header_carries_is_refused_and_never_shown(tmp_path: Path, osmosis: Run) -> None:
    write(tmp_path, FILE + 'api_key = { env = "DEMO_KEY" }\n')
    for value in ("", " padded-key", "two\nlines"):
        done = osmosis("serve", NO_COLOR="1", DEMO_KEY=value)
        assert done.returncode == 1 and "DEMO_KEY" in done.stderr and "Traceback" not in done.stderr
        assert not value or value.strip() not in done.stderr


def test_tls_files_that_are_not_there_are_one_sentence(tmp_path: Path, osmosis: Run) -> None:
    write(tmp_path, FILE + '[serve.hypercorn]\ncertfile = "no.pem"\nkeyfile = "no.key"\n')
    done = osmosis("serve", NO_COLOR="1")
    assert done.returncode == 1 and "no.pem" in done.stderr and "Traceback" not in done.stderr


def test_reload_follows_the_file_through_a_broken_edit(tmp_path: Path) -> None:
    file = write(tmp_path)
    with serving(tmp_path, "--reload") as (process, said):
        assert health(said["url"])["agent_loop"] == "demo"
        time.sleep(0.5)  # the watch begins
        file.write_text(FILE + "broken = \n")
        assert process.stderr is not None
        told = ""
        while "`broken` has no value" not in told:
            told = process.stderr.readline()
            assert told, "the server never spoke of the broken file"
        assert _down(said["url"])
        file.write_text(FILE.replace('"demo"', '"other"'))
        _until(lambda: not _down(said["url"]))
        assert health(said["url"])["agent_loop"] == "other"  # at the same port
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert process.returncode == 0
    assert err.count("workflow.toml changed") == 1
    # A line, not the whole of what a person is told at the first start.
    assert err.count("reloaded: other is served at") == 1 and "dialects" not in err and "try: curl" not in err


def _down(url: str) -> bool:
    try:
        return health(url)["status"] != "ok"
    except OSError:
        return True


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 15
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def test_a_state_folder_that_cannot_be_written_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "rollouts.db.lock").mkdir()  # root may write anywhere, but not this
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        lock_state(tmp_path / "rollouts.db")
    assert raised.value.hint == "set `[serve] state` to another file"
