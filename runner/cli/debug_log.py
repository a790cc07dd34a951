"""`--debug`: everything that is logged, on stderr, for as long as the command works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_all(on: bool) -> Iterator[None]:
    """Log at every level inside the block; without `on` nothing changes."""
    if not on:
        yield
        return
    from runner.telemetry.logs import configure

    logs = configure("debug")
    try:
        yield
    finally:
        logs.close()
