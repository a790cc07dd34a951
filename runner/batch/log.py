"""`log.txt`: what a run would like to have said, a line at a time; tracebacks of failures are here."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from runner.records.rollout import Outcome
from runner.store.errors import not_written


class RunLog:
    """Open while the run runs; appends to what is there. Raises `StoreError` where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: TextIO = path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
        except OSError as error:
            raise not_written(path, error) from None

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.say(f"stopped by {type(error).__name__}: {error}")
        self._file.close()

    def say(self, text: str) -> None:
        """Write one entry, stamped; more lines are indented. A full disk must not end the run twice: it is let go."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        try:
            self._file.write(f"{stamp} {text}".replace("\n", "\n    ") + "\n")
        except OSError:
            return

    def outcome(self, outcome: Outcome) -> None:
        """Write down what went wrong in a rollout, if something did."""
        failure = outcome.failure
        if failure is None:
            return
        request = outcome.request
        where = f" at {failure.where}" if failure.where else ""
        text = f"{request.row_id}/{request.attempt} {outcome.status}: {failure.boundary}/{failure.kind}: "
        self.say(text + failure.message + where + (f"\n{failure.detail}" if failure.detail else ""))
