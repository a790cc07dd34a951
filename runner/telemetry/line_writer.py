"""`LineWriter`: appends lines to many files from one thread, so that a slow or full disk slows no rollout.

Lines are on their way to the disk some 20 ms after they were given, whatever becomes of the process then. A line that
cannot be written is counted and let go, never half of it left: the next line must stay readable.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

PAUSE = 0.02
"""Seconds in which lines gather: a file is opened once for all of them."""

MOST_WAITING = 64 * 1024 * 1024
"""Bytes that wait for the disk at most; what comes beyond is counted as lost."""

_log = logging.getLogger(__name__)


class LineWriter:
    """`place(name)` is the file for what is written under `name`. Its thread starts with the first line.

    `trouble` begins the one warning that says lines are being lost, and the one at `close` that says how many.
    """

    def __init__(self, place: Callable[[str], Path], trouble: str, *, most_waiting: int = MOST_WAITING) -> None:
        self._place = place
        self._trouble = trouble
        self._most = most_waiting
        self._waiting: dict[str, list[bytes]] = {}
        self._size = 0
        self._lost = 0  # written by the thread that writes
        self._refused = 0  # written under the lock
        self._warned = False
        self._closed = False
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, name: str, line: bytes) -> None:
        """Give one line, its newline included. Never blocks on the disk and never raises."""
        with self._lock:
            if self._closed or self._size + len(line) > self._most:
                self._refused += 1
            else:
                self._size += len(line)
                self._waiting.setdefault(name, []).append(line)
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                self._begin()

    def flush(self) -> None:
        """Return when all that was given is written, or lost."""
        self._write_all()

    def close(self, wait: float = 5.0) -> None:
        """Write what is left, for `wait` seconds at most; then a disk that hangs is left to itself. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        self._hurry.set()
        self._wake.set()
        if self._thread is None:
            return
        self._thread.join(wait)
        if lost := self.lost:
            _log.warning("%s: %d lines were lost", self._trouble, lost)

    @property
    def lost(self) -> int:
        """Lines that were given and are nowhere."""
        return self._lost + self._refused

    def _begin(self) -> None:
        with self._lock:
            if self._thread is not None or self._closed:
                return
            self._thread = threading.Thread(target=self._run, name="line-writer", daemon=True)
        atexit.register(self.close)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._hurry.wait(PAUSE)
            self._wake.clear()
            self._write_all()
        self._write_all()

    def _write_all(self) -> None:
        with self._writing:
            with self._lock:
                batch, self._waiting, self._size = self._waiting, {}, 0
            for name, lines in batch.items():
                try:
                    _append(self._place(name), b"".join(lines))
                except (OSError, ValueError) as error:
                    self._lost += len(lines)
                    self._warn(getattr(error, "strerror", None) or str(error))
            if self._refused:
                self._warn("the disk is too slow, too many lines wait for it")

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("%s: %s; rollouts go on without", self._trouble, why)


def _append(path: Path, data: bytes) -> None:
    """Append all of `data` or nothing of it. Raises OSError."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        written = 0
        try:
            while written < len(data):
                written += os.write(file, data[written:] if written else data)
        except OSError:
            if written:
                os.ftruncate(file, os.fstat(file).st_size - written)
            raise
    finally:
        os.close(file)
