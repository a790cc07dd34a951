"""`none`: commands as plain processes of this machine, in a temporary folder. Nothing is held apart from anything.

For code that is trusted. What it still does: an environment of its own, limits where control groups can hold them, and
the whole tree of a command ends with it, setsid children and daemons too, by its control group or by a mark that all of
them inherit.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

from runner.sandboxes.asked import Mount
from runner.sandboxes.inside import Inside
from runner.sandboxes.limits import Group, joining
from runner.sandboxes.local import Launch, LocalSandbox, Place
from runner.sandboxes.local_maker import LocalMaker, LocalOptions
from runner.sandboxes.owner import MARK, marked, owner_key
from runner.sandboxes.process import Process, Start, exit_code
from runner.sandboxes.sandbox import Command

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class NoneMaker(LocalMaker):
    """Makes sandboxes of kind `none`."""

    kind = "none"

    async def probe(self) -> Sequence[str]:
        said = await super().probe()
        return ["kind `none` holds nothing apart: commands run as you, with your files and your network", *said]

    def build(self, place: Place, forget: Callable[[LocalSandbox], None]) -> LocalSandbox:
        return NoneSandbox(place, self.options, forget)


class NoneSandbox(LocalSandbox):
    """Commands start in a folder of their own; where else they go is theirs to say."""

    def __init__(self, place: Place, options: LocalOptions, forget: Callable[[LocalSandbox], None]) -> None:
        self._work = place.folder / "work"
        self._tmp = place.folder / "tmp"
        self._work.mkdir()
        self._tmp.mkdir()
        inside = Inside({str(self._work): Mount(self._work), str(self._tmp): Mount(self._tmp)}, str(self._work))
        super().__init__(place, inside, options.time, forget)
        own = {"PATH": PATH, "HOME": str(self._tmp), "TMPDIR": str(self._tmp), "LANG": "C.UTF-8"}
        self._env = {**own, **options.env}
        self._numbers = count()
        self._setpriv = shutil.which("setpriv")

    @property
    def workdir(self) -> str:
        return str(self._work)

    def _launch(self, command: Command, *, merged: bool) -> Launch:
        mark = f"{owner_key()}/{self.place.name}/{next(self._numbers)}"
        env = {**self._env, **command.env, MARK: mark}
        # A runner that is killed takes what it started along; what that started is found by its mark at the next start.
        dying = [self._setpriv, "--pdeathsig", "KILL", "--"] if self._setpriv else []
        group = self.place.group
        # Through a shell in any case: a program that is not there is then a 127, and not a sandbox that is lost.
        first = joining(group.folders) if group else ["/bin/sh", "-c", 'exec "$@"', "sh"]
        argv = [*first, *dying, *command.argv]
        cwd = str(self._work / command.cwd)
        return _Launch(Start(argv, env, cwd, merged=merged), mark, lambda: group if len(self._running) <= 1 else None)


class _Launch(Launch):
    def __init__(self, start: Start, mark: str, group: Callable[[], Group | None]) -> None:
        self.start = start
        self._mark = mark
        self._group = group
        """The control group, where nothing else runs in it: whoever has lost the mark is found there."""

    def opened(self) -> None:
        """Nothing was opened for it."""

    def kill(self, process: Process) -> None:
        process.signal(signal.SIGKILL)
        group = self._group()
        if group is not None:
            group.kill_all()
            return
        for _ in range(20):  # until a look finds none: one may be born between two
            found = list(marked(self._mark))
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return

    def judge(self, returned: int, said: bytes) -> int:
        return exit_code(returned)

    def close(self) -> None:
        """Nothing was opened for it."""
