"""`configure`: every log record of the process, ours, a library's, or the user's, goes one way to stderr.

Through the standard library's loggers, because everybody has them. A record becomes text where it was made and is
written by a thread: a terminal that hangs or a pipe that nobody reads stops no rollout, it loses lines, and they are
counted.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from runner.telemetry.log_format import Format, formatting
from runner.telemetry.redaction import Redaction

MOST_WAITING = 10_000
"""Lines that wait for the stream at most."""

_REROUTED = ("hypercorn.access", "hypercorn.error", "py.warnings")
_ACCESS_LEVELS = ((500, logging.ERROR), (400, logging.WARNING), (0, logging.DEBUG))


class Logs:
    """The logging of this process until `close`, which puts back what was there."""

    def __init__(self, handler: _Handler, level: int) -> None:
        self._handler = handler
        self._root = logging.getLogger()
        self._before = self._root.handlers[:], self._root.level
        self._others = [(logger, logger.handlers[:], logger.propagate) for logger in map(logging.getLogger, _REROUTED)]
        self._root.handlers[:] = [handler]
        self._root.setLevel(level)
        for logger, _, _ in self._others:
            logger.handlers[:] = []
            logger.propagate = True
        self._access = logging.getLogger("hypercorn.access")
        self._access.addFilter(_access_level)
        logging.captureWarnings(True)
        atexit.register(self.close)

    @property
    def access(self) -> logging.Logger | None:
        """For hypercorn's `accesslog`: None unless the level is debug, for each line costs the server much."""
        return self._access if self._root.isEnabledFor(logging.DEBUG) else None

    @property
    def error(self) -> logging.Logger:
        """For hypercorn's `errorlog`."""
        return logging.getLogger("hypercorn.error")

    @property
    def dropped(self) -> int:
        """Records that nobody will read: the stream was too slow, or is gone."""
        return self._handler.dropped

    def close(self, wait: float = 2.0) -> None:
        """Write what waits, for `wait` seconds at most, and put the loggers back as they were. Idempotent."""
        if self._handler.closed:
            return
        atexit.unregister(self.close)
        logging.captureWarnings(False)
        self._access.removeFilter(_access_level)
        if self._root.handlers == [self._handler]:
            self._root.handlers[:], level = self._before
            self._root.setLevel(level)
        for logger, handlers, propagate in self._others:
            logger.handlers[:] = handlers
            logger.propagate = propagate
        self._handler.stop(wait)


def configure(
    level: str = "info",
    format: Format = "console",
    timestamp: bool = True,
    caller: bool = False,
    stream: TextIO | None = None,
    secrets: Iterable[str] = (),
) -> Logs:
    """Log to `stream`, stderr when None. `secrets` are never shown, nor is anything that looks like a credential.

    Raises ValueError for a level or a format that is none.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"no log level is called {level!r}; there are debug, info, warning, error, critical")
    out = sys.stderr if stream is None else stream
    colour = out.isatty() and not os.environ.get("NO_COLOR")
    handler = _Handler(out, formatting(format, timestamp, caller, colour, Redaction(secrets)))
    return Logs(handler, number)


class _Handler(logging.Handler):
    """Turns a record into text at once, and leaves the writing to its thread."""

    def __init__(self, stream: TextIO, shape: Callable[[logging.LogRecord], str]) -> None:
        super().__init__()
        self._stream = stream
        self._shape = shape
        self._waiting: deque[str] = deque()
        self._wake = threading.Event()
        self.dropped = 0
        self._reported = 0
        self.closed = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises, and never prints a traceback of its own: a record that cannot be shown is counted."""
        try:
            line = self._shape(record)
        except Exception:
            self.dropped += 1
            return
        if len(self._waiting) >= MOST_WAITING or self.closed:
            self.dropped += 1
            return
        self._waiting.append(f"{line}\n")
        if not self._wake.is_set():
            self._wake.set()

    def stop(self, wait: float) -> None:
        self.closed = True
        self._wake.set()
        self._thread.join(wait)
        self.close()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            closing = self.closed
            while self._waiting:
                self._write_some()
            self._report()
            if closing:
                return

    def _write_some(self) -> None:
        lines = [self._waiting.popleft() for _ in range(min(len(self._waiting), 500))]
        if not self._write("".join(lines)):
            self.dropped += len(lines)

    def _report(self) -> None:
        lost = self.dropped - self._reported
        if lost <= 0:
            return
        record = logging.makeLogRecord(
            {
                "name": __name__,
                "levelno": logging.WARNING,
                "levelname": "WARNING",
                "msg": f"{lost} log records were dropped: they came faster than they could be written",
            }
        )
        if self._write(f"{self._shape(record)}\n"):
            self._reported += lost

    def _write(self, text: str) -> bool:
        """Whether it was written: a stream that is closed or full says no, now and perhaps for ever."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            return self._write(text.encode(encoding, "backslashreplace").decode(encoding))
        except (OSError, ValueError):
            return False
        return True


def _access_level(record: logging.LogRecord) -> bool:
    """Gives hypercorn's access lines, which are all "info", the level of their status."""
    args: Any = record.args
    try:
        status = int(args["s"])
    except (TypeError, KeyError, ValueError, IndexError):
        return True
    record.levelno = next(level for least, level in _ACCESS_LEVELS if status >= least)
    record.levelname = logging.getLevelName(record.levelno)
    return True
