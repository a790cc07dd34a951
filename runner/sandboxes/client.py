"""`Client`: the command line of podman or docker, asked for one thing at a time."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence

from runner.records.failure import SandboxError
from runner.sandboxes.capture import Capture
from runner.sandboxes.process import Process, Start, exit_code
from runner.sandboxes.sandbox import Ran

_MOST = 1 << 16

_ITS_OWN = re.compile(
    r"PATH|HOME|XDG_.*|TMPDIR|LD_.*|DOCKER_.*|CONTAINER.*|STORAGE_.*|REGISTRY_.*|GO.*|SSH_.*|.*_PROXY|.*_proxy"
)
"""Variables that would change the command line itself: they are given as words, not through its environment."""


class Client:
    """`program` is a name on PATH or a path; it runs with our own environment, where its settings are."""

    def __init__(self, program: str) -> None:
        self.program = program

    def start(self, words: Sequence[str], env: Mapping[str, str], *, merged: bool = False) -> Start:
        """How to start it. `env` holds what `variables` could not give as words."""
        return Start([self.program, *words], {**os.environ, **env}, merged=merged)

    async def ask(self, words: Sequence[str], *, env: Mapping[str, str] | None = None, seconds: float = 60.0) -> Ran:
        """Run it to its end. Raises `SandboxError` (kind "sandbox_unavailable") when it does not answer."""
        import asyncio

        streams = {"out": Capture(_MOST), "err": Capture(_MOST)}
        try:
            process = Process(self.start(words, env or {}), lambda stream, data: streams[stream].add(data))
        except OSError as error:
            raise SandboxError(f"`{self.program}` cannot be started: {error}", kind="sandbox_unavailable") from error
        try:
            process.feed(b"", close=True)
            async with asyncio.timeout(seconds):
                returned = await process.exited()
            await process.drained()
        except TimeoutError:
            message = f"`{self.program} {words[0]}` did not answer within {seconds:g} s"
            raise SandboxError(message, kind="sandbox_unavailable") from None
        finally:
            process.signal(signal.SIGKILL)
            process.close()
        return Ran(exit_code(returned), streams["out"].kept(), streams["err"].kept(), 0.0)


def variables(env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The words that give these variables to a container, and what the command line must have in its environment.

    Values go through its environment, where nobody else on the machine reads them, wherever they do not mean something
    to the command line itself.
    """
    words: list[str] = []
    given: dict[str, str] = {}
    for name, value in env.items():
        if _ITS_OWN.fullmatch(name):
            words += ["-e", f"{name}={value}"]
        else:
            words += ["-e", name]
            given[name] = value
    return words, given


def said_by(ran: Ran) -> str:
    """The last words of a command, for a message."""
    return (ran.stderr.strip() or ran.stdout.strip()).decode("utf-8", "replace")[-400:] or f"exit code {ran.code}"
