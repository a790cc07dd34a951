"""`Session`: a program in a sandbox that is handed one piece of work after the other and keeps its state between them.

It reads two texts for each piece, a mark and the work, each ended by a NUL, and says, when it is done, the mark and an
exit code on a line of their own. Everything it says before that is the piece's output. A piece that outlasts its time
ends the program with all that it started, and the next one begins a new program.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from runner.sandboxes.sandbox import Command, Running, Sandbox
from runner.tools.builtin.kept_output import KeptOutput

_LONGEST_CLOSING = 32
"""Bytes of an exit code and the end of its line, and some to spare: whatever is longer is no closing of ours."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a piece of work went: its output, `code` (None: the program ended over it), and whether time was over."""

    output: str
    code: int | None
    timed_out: bool = False
    dropped: int = 0


class Session:
    """One rollout's program: `argv` starts it. Pieces of work run one at a time, in the order they were asked for.

    `fresh` says that the next piece begins a new program, because the last one was ended.
    """

    def __init__(self, sandbox: Sandbox, argv: Sequence[str]) -> None:
        self._sandbox = sandbox
        self._argv = argv
        self._running: Running | None = None
        self._turn = asyncio.Lock()

    @property
    def fresh(self) -> bool:
        return self._running is None

    async def run(self, work: str, timeout: float, max_output: int) -> Done:
        """Do a piece of work. Raises `SandboxError` when the sandbox is gone; cancelled, it ends the program."""
        async with self._turn:
            running = self._running or await self._begin()
            mark = secrets.token_hex(12)
            heard = _Heard(mark.encode(), max_output)
            try:
                async with asyncio.timeout(timeout):
                    ended = await self._do(running, mark, work, heard)
            except TimeoutError:
                await self.close()
                return Done(heard.output(), None, timed_out=True, dropped=heard.dropped)
            except BaseException:
                await self.close()
                raise
            if not ended:
                return Done(heard.output(), await self._ended(running), dropped=heard.dropped)
            return Done(heard.output(), heard.code(), dropped=heard.dropped)

    async def close(self) -> None:
        """End the program and everything it has started."""
        running, self._running = self._running, None
        if running is not None:
            await running.kill()

    async def _begin(self) -> Running:
        self._running = await self._sandbox.start(Command(self._argv))
        return self._running

    async def _do(self, running: Running, mark: str, work: str, heard: _Heard) -> bool:
        """Whether the program says that it is done; it may end instead."""
        try:
            await running.write(f"{mark}\0{work}\0".encode("utf-8", "replace"))
        except BrokenPipeError:
            return False
        while not heard.whole:
            data = await running.read()
            if not data:
                return False
            heard.add(data)
        return True

    async def _ended(self, running: Running) -> int:
        self._running = None
        code = await running.wait()
        await running.kill()  # what it left behind
        return code


class _Heard:
    """What a program says: its output up to the mark, and the line behind that."""

    def __init__(self, mark: bytes, max_output: int) -> None:
        self._mark = b"\n" + mark + b" "
        self._kept = KeptOutput(max_output)
        self._open = b""
        self._closing: bytearray | None = None

    @property
    def whole(self) -> bool:
        return self._closing is not None and (b"\n" in self._closing or len(self._closing) >= _LONGEST_CLOSING)

    @property
    def dropped(self) -> int:
        return self._kept.dropped

    def add(self, data: bytes) -> None:
        if self._closing is not None:
            self._closing += data[:_LONGEST_CLOSING]
            return
        seen = self._open + data
        output, found, closing = seen.partition(self._mark)
        if found:
            self._kept.add(output)
            self._open, self._closing = b"", bytearray(closing[:_LONGEST_CLOSING])
            return
        keep = len(self._mark) - 1  # the mark may come in two pieces
        self._kept.add(seen[:-keep] if len(seen) > keep else b"")
        self._open = seen[-keep:]

    def output(self) -> str:
        self._kept.add(self._open)
        self._open = b""
        return self._kept.text()

    def code(self) -> int:
        line = bytes(self._closing or b"").partition(b"\n")[0].strip()
        return int(line) if line.isdigit() else 1
