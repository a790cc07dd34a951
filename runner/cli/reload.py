"""`serve --reload`: a server that starts again when its file or code beside it changes. For development.

Code is never imported again in place, where half of it would be old: the server is a process of its own that ends and
starts anew, at the port it had. An edit that does not load is shown as always, and the next edit tries again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.cli.console import Console
from runner.cli.exit import CommandError, Exit

_NOT_THEIRS = {"__pycache__", ".git", ".venv", "node_modules", "site-packages"}
_CODE = re.compile(r"(?P<file>.+\.py):[A-Za-z_][A-Za-z0-9_.]*")
"""A reference to code in a file, as in `call = "./tools.py:look_up"`."""
_PATIENCE = 2.0
"""Seconds that rollouts get to end before a restart; what is cut off plays again in the new server."""
_LOOK = 500
"""Milliseconds between two looks at whether the server still lives."""


def reloading(shell: Console, file: Path) -> int:
    """Run the same command without `--reload`, again and again, until a signal. The last server's exit code.

    Raises `CommandError` without watchfiles.
    """
    try:
        from watchfiles import watch
    except ImportError:
        raise CommandError(
            "`--reload` needs the package watchfiles", "`pip install 'osmosis-run[reload]'`, or start it again yourself"
        ) from None
    stop = threading.Event()
    server = _Server(shell, [word for word in sys.argv[1:] if word != "--reload"])
    watched = _Watched(file)
    with _stopping(stop):
        server.start()
        while not stop.is_set():
            folders = watched.folders
            for changes in watch(
                *folders,
                watch_filter=watched.matters,
                stop_event=stop,
                rust_timeout=_LOOK,
                yield_on_timeout=True,
                raise_interrupt=False,
            ):
                if not changes:
                    server.look()
                    continue
                changed = sorted({os.path.relpath(path) for _, path in changes})
                shell.say(f"reload: {', '.join(changed[:3])} changed")
                watched.look_again()
                server.end(_PATIENCE)
                server.start()
                if watched.folders != folders:
                    break  # an edit during these lines is lost; in all other cases the watch has gone on meanwhile
        return server.stop()


class _Server:
    """The process that serves."""

    def __init__(self, shell: Console, words: Sequence[str]) -> None:
        self._shell = shell
        self._words = list(words)
        self._process: subprocess.Popen[str] | None = None
        self._said = False
        self._port: list[str] = []

    def start(self) -> None:
        command = [sys.executable, "-m", "runner.cli.main", *self._words, *self._port]
        # A session of its own: Ctrl-C reaches us alone, and we pass on one signal.
        again = {"_OSMOSIS_RUN_RELOADED": "1"} if self._said else {}
        environment = {**os.environ, **again}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Pass on the first line of the first server, and keep its port for the others."""
        assert process.stdout is not None
        for line in process.stdout:
            if not self._said:
                self._said = True
                self._shell.out(line, end="")
                self._shell.flush()
                self._port = ["--port", json.loads(line)["url"].rpartition(":")[2]]

    def look(self) -> None:
        """Say so, once, when the server has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            self._process = None
            self._shell.say("reload: waiting for the next change")

    def end(self, patience: float) -> int:
        """End the server: by a signal, and by a second one when it takes longer than `patience` seconds."""
        process, self._process = self._process, None
        if process is None:
            return int(Exit.OK)
        for wait in (patience, 5.0):
            process.send_signal(signal.SIGTERM)
            try:
                return process.wait(wait)
            except subprocess.TimeoutExpired:
                continue
        process.kill()
        return process.wait()

    def stop(self) -> int:
        """End it for good: it drains as long as it wants, unless a second signal comes."""
        process = self._process
        if process is None:
            return int(Exit.OK)
        process.send_signal(signal.SIGTERM)
        with _passing_on(process):
            return process.wait()


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _passing_on(process: subprocess.Popen[str]) -> Iterator[None]:
    def second(*_: object) -> None:
        process.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, second) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Watched:
    """What a workflow consists of: its file, what that extends, the files both name, and code beside any of them."""

    def __init__(self, file: Path) -> None:
        self._file = file.resolve()
        self.files: set[Path] = set()
        self._add(self._file)

    def look_again(self) -> None:
        """Find out what the file consists of now. What cannot be read keeps what it was known to name."""
        self.files.discard(self._file)
        self._add(self._file)

    @property
    def folders(self) -> list[Path]:
        """Where all of it is; none of the folders is inside another."""
        found = {each.parent for each in self.files if each.parent.is_dir()}
        return sorted(each for each in found if not any(other in each.parents for other in found))

    def matters(self, change: object, path: str) -> bool:
        """Whether a change of the file at `path` may change the server."""
        found = Path(path)
        if found in self.files:
            return True
        return found.suffix in (".py", ".toml") and not _NOT_THEIRS.intersection(found.parts)

    def _add(self, file: Path) -> None:
        if file in self.files:
            return
        self.files |= {file, file.with_name(".env")}
        if file.suffix == ".toml":
            try:
                self._look(tomllib.loads(file.read_text(encoding="utf-8")), "", file.parent)
            except (OSError, ValueError):
                return  # the server says why, and what it names is found after the next edit

    def _look(self, value: Any, key: str, folder: Path) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                self._look(each, name, folder)
        elif isinstance(value, list):
            for each in value:
                self._look(each, key, folder)
        elif isinstance(value, str) and "\0" not in value:
            code = _CODE.fullmatch(value)
            if code is not None or key in ("extends", "file"):
                self._add((folder / (code["file"] if code else value)).resolve())
