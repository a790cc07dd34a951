"""A warm `osmosis-run`: one interpreter that has imported what the commands import, forked once a command.

The pages run some hundred commands as a user would, in a shell. Started afresh each would spend a third of a second on
imports alone. `python warm.py SOCKET COMMAND` listens at SOCKET and writes COMMAND, the script to put on the PATH: it
hands over its streams, its words, its folder and its environment, and ends as the command did.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

COMMAND = """#!{python} -ISE
import marshal, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({socket!r})
socket.send_fds(line, [b"!"], [0, 1, 2])
said = marshal.dumps((sys.argv, os.getcwd(), dict(os.environ)))
line.sendall(len(said).to_bytes(4, "big") + said)
child = int.from_bytes(line.recv(4), "big")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(child, number))
sys.exit(line.recv(1)[0])
"""
APART = ("runner.strands", "runner.models.litellm", "runner.datasets.parquet", "runner.telemetry.span_export")
"""Modules behind which heavy libraries wait: a command that needs one imports it itself."""


def warm_up() -> None:
    import runner

    for found in pkgutil.walk_packages(runner.__path__, "runner."):
        if not found.name.startswith(APART) and "projects" not in found.name and "main" not in found.name:
            # One that cannot be imported here is for the command to fail over that needs it.
            with suppress(ImportError, SyntaxError):
                importlib.import_module(found.name)
    importlib.import_module("runner.cli.main")


def answer(line: socket.socket) -> None:
    """Play one command and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(line, 1, 3)
    size = int.from_bytes(line.recv(4), "big")
    said = b""
    while len(said) < size:
        said += line.recv(size - len(said))
    child = os.fork()
    if child == 0:
        os._exit(play(streams, *marshal.loads(said)))
    line.sendall(child.to_bytes(4, "big"))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    line.sendall(bytes([code if code >= 0 else 128 - code]))


def play(streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> int:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 (these are for good)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(Path(sys.executable).with_name("osmosis-run")), *words[1:]]
    from runner.cli.main import main

    try:
        main(words[1:])
    except SystemExit as leave:
        code = leave.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 0


def main() -> None:
    address, command = sys.argv[1:]
    warm_up()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    script = Path(command)
    script.write_text(COMMAND.format(python=sys.executable, socket=address))
    script.chmod(0o755)
    os.write(1, b"ready\n")
    while True:
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(line)
            os._exit(0)
        line.close()


if __name__ == "__main__":
    main()
