"""A container of the stand-in: processes in namespaces of their own over a folder, that live and die together."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

AGENT = Path(__file__).with_name("agent.py")


class NotStartedError(Exception):
    """The runtime cannot start the program; the text is what it says."""


class Container:
    """Started at once; `kill` ends everything in it. `workdir` is the folder that is mounted at that path inside."""

    def __init__(self, mount: str) -> None:
        self.workdir = Path(tempfile.mkdtemp(prefix="stand-in-"))
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._waiting: dict[int, asyncio.Future[dict[str, object]]] = {}
        self._number = 0
        self.refuses = ""
        """A program that is not in the image."""
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        python, prefix = os.path.realpath(sys.executable), sys.base_prefix
        words = ["bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"]
        words += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
        words += ["--ro-bind", prefix, prefix, "--ro-bind", str(AGENT), "/.agent.py"]
        words += ["--bind", str(self.workdir), mount, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
        words += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/", "--hostname", "sandbox"]
        words += ["--setenv", "FROM_IMAGE", "yes", "--", python, "-I", "-S", "/.agent.py", str(theirs.fileno())]
        self._process = subprocess.Popen(words, pass_fds=(theirs.fileno(),), start_new_session=True)
        theirs.close()
        asyncio.get_running_loop().add_reader(self._ours, self._heard)

    async def started(self) -> None:
        await asyncio.wait_for(asyncio.shield(self._ready), 20)

    async def run(self, argv: list[str], streams: tuple[int, int, int]) -> asyncio.Future[dict[str, object]]:
        """Start a program on three descriptors. The future gives `code` or `error`; cancelled when all is killed."""
        self._number += 1
        future: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = future
        if self.refuses == argv[0]:
            argv = [f"/no-such-folder{argv[0]}"]
        message = json.dumps({"number": self._number, "argv": argv}).encode()
        try:
            socket.send_fds(self._ours, [message], list(streams))
        except OSError:
            future.cancel()
        return future

    def kill(self) -> None:
        """Everything in it, at once."""
        if self._ours.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._ours.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for future in self._waiting.values():
            future.cancel()
        shutil.rmtree(self.workdir, ignore_errors=True)

    def _heard(self) -> None:
        try:
            data = self._ours.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._ours)
            return
        told = json.loads(data)
        if not told:
            self._ready.set_result(None)
        elif not (future := self._waiting.pop(told["number"])).done():
            future.set_result(told)
