"""`Membership`: what a worker process gets from its supervisor, through one variable and inherited descriptors."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

VARIABLE = "_OSMOSIS_RUN_WORKER"
"""Holds a `Membership` as JSON in the environment of a worker process."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Worker `worker` of `workers`.

    `sockets` listen already. `life` is a pipe that closes when the supervisor is gone, `report` one to tell it things
    through, and `lock` the lock on the state file, which is free when the last process that has it open is gone.
    """

    worker: int
    workers: int
    path: str
    sockets: tuple[int, ...]
    life: int
    report: int
    lock: int

    @property
    def folder(self) -> Path:
        """The private folder of this server while it runs."""
        return Path(self.path)

    @property
    def board(self) -> Path:
        """The memory that all workers share."""
        return self.folder / "board"

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the process inherits."""
        return (*self.sockets, self.life, self.report, self.lock)

    def variable(self) -> str:
        """What `joined` reads."""
        return json.dumps(asdict(self))

    def tell(self, **said: Any) -> None:
        """Report to the supervisor. One that is gone does not hear it."""
        try:
            os.write(self.report, json.dumps(said).encode() + b"\n")
        except OSError:
            return

    def listening(self) -> list[socket.socket]:
        """The sockets, to be closed by whoever asks."""
        return [socket.socket(fileno=each) for each in self.sockets]

    def follow(self) -> None:
        """From now on, end at once when the supervisor is gone: nobody would restart this worker, or end it.

        As after a kill of the whole server, what was accepted goes on after the next start. A thread waits, since the
        event loop may be held up by a user's code.
        """
        threading.Thread(target=self._outlive, name="supervisor watch", daemon=True).start()

    def _outlive(self) -> None:
        os.read(self.life, 1)
        shutil.rmtree(self.path, ignore_errors=True)
        os._exit(130)


def joined() -> Membership | None:
    """The membership of this process; None if it is no worker. What it started itself inherits nothing of that."""
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return None
    found: Mapping[str, Any] = json.loads(text)
    member = Membership(**{**found, "sockets": tuple(found["sockets"])})
    for each in member.descriptors:
        os.set_inheritable(each, False)
    return member
