"""What a tool has started ends with its call, when nobody waits for the call any more."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.records.completion import Caller, ToolSpec
from runner.serve.http.loop import loop_factory
from runner.tools.callable import CallableTool
from runner.tools.tool import ToolScope
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="the system does not tell a thread's children"
)
SCOPE = ToolScope(Caller("r", {}, 0), {})
TREE = "echo $$ >> {0}; (sleep 60 & echo $! >> {0}; wait) & wait"


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def made(path: Path) -> dict[str, Callable[[], Any]]:
    import subprocess

    script = ["sh", "-c", TREE.format(path)]

    def plain() -> str:
        subprocess.run(script, check=False)
        (path.parent / "after").touch()
        subprocess.run(["sh", "-c", f"echo $$ >> {path}; sleep 60"], check=False)
        return "done"

    def system() -> str:
        return str(os.system(TREE.format(path)))

    def spawned() -> str:
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", TREE.format(path)], dict(os.environ))
        return str(os.waitpid(pid, 0))

    async def on_loop() -> str:
        process = await asyncio.create_subprocess_exec(*script)
        return str(await process.wait())

    async def in_shell() -> str:
        process = await asyncio.create_subprocess_shell(TREE.format(path))
        return str(await process.wait())

    async def in_thread() -> str:
        await asyncio.to_thread(subprocess.run, script)
        return "done"

    return {each.__name__: each for each in (plain, system, spawned, on_loop, in_shell, in_thread)}


@pytest.mark.parametrize("how", ["plain", "system", "spawned", "on_loop", "in_shell", "in_thread"])
@pytest.mark.parametrize("end", ["cancelled", "timed out", "cancelled under uvloop"])
def test_processes_end_with_the_call(tmp_path: Path, how: str, end: str) -> None:
    path = tmp_path / "pids"
    tool = CallableTool(ToolSpec("t", "", {}), made(path)[how], timeout=0.5 if end == "timed out" else None)

    async def main() -> None:
        call = asyncio.ensure_future(tool.call({}, SCOPE))
        await until(lambda: len(pids(path)) == 2)
        assert all(map(lives, pids(path)))
        if end != "timed out":
            call.cancel()
            await asyncio.wait({call})
        else:
            assert (await call).status == "timeout"
        await until(lambda: not any(map(lives, pids(path))))
        if how == "plain":  # the abandoned thread goes on, and can start no more
            await until((tmp_path / "after").exists)
            await asyncio.sleep(0.15)
            assert len(pids(path)) == 2
        await asyncio.sleep(0.02)  # the loop hears of its child's end

    with asyncio.Runner(loop_factory=loop_factory() if "uvloop" in end else None) as runner:
        runner.run(main())


def test_others_processes_are_not_touched(tmp_path: Path) -> None:
    """Calls at once on one loop: each has its own. What a call that returned has left is its author's business."""
    running: dict[str, Any] = {}

    async def starts(name: str) -> str:
        running[name] = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
        if name != "returns":
            await asyncio.sleep(60)
        return name

    tool = CallableTool(ToolSpec("t", "", {}), starts)

    async def main() -> None:
        names = ["a", "b", "returns", "c"]
        calls = {name: asyncio.ensure_future(tool.call({"name": name}, SCOPE)) for name in names}
        await until(lambda: len(running) == 4)
        await calls["returns"]
        for gone, left in (("b", {"a", "c", "returns"}), ("a", {"c", "returns"}), ("c", {"returns"})):
            calls[gone].cancel()
            await asyncio.wait({calls[gone]})
            await asyncio.wait_for(running[gone].wait(), 5)
            assert {name for name in names if lives(running[name].pid)} == left
        running["returns"].kill()
        await running["returns"].wait()

    asyncio.run(main())
