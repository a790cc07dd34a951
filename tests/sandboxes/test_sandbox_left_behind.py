"""`kill -9` of the runner: what it started dies with it or is removed by the next run; what lives is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from runner.sandboxes.limits import find_hierarchy
from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.owner import is_dead, marked, owner_key
from tests.sandboxes.conftest import KINDS, opened

_RUNNER = """
import asyncio, sys
from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.sandbox import Command
from tests.sandboxes.conftest import KINDS

async def main():
    maker = KINDS[sys.argv[1]](LocalOptions())
    await maker.probe()
    sandbox = await maker.make("left")
    await sandbox.put("secret", b"of a row")
    task = asyncio.create_task(sandbox.exec(Command(["sh", "-c", "setsid sleep 98765 & sleep 98765"], timeout=300)))
    session = await sandbox.start(Command(["sleep", "98765"]))
    await asyncio.sleep(0.5)
    print(sandbox.place.folder, flush=True)
    await task

asyncio.run(main())
"""


def _sleepers(folder: Path) -> int:
    count = 0
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if b"98765" in (each / "cmdline").read_bytes() and each.name != str(os.getpid()):
                count += b"sh\0-c" not in (each / "cmdline").read_bytes()
        except OSError:
            continue
    return count


def test_a_killed_runner_leaves_nothing_to_the_next(kind: str) -> None:
    runner = subprocess.Popen([sys.executable, "-c", _RUNNER, kind], stdout=subprocess.PIPE, text=True,
                              cwd=Path(__file__).parents[2])  # fmt: skip
    assert runner.stdout is not None
    with runner, runner.stdout:
        folder = Path(runner.stdout.readline().strip())
        assert (folder / "work" / "secret").exists()
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    if kind == "bubblewrap":  # nothing has to come and look: they end with their parent
        end = time.monotonic() + 5
        while _sleepers(folder) and time.monotonic() < end:
            time.sleep(0.05)
        assert not _sleepers(folder)
    key = folder.parent.name
    assert is_dead(key)  # whoever starts next, here or in another test, removes what is left

    async def next_run() -> None:
        async with opened(kind):
            assert not folder.parent.exists()

    asyncio.run(next_run())
    assert not list(marked(key))
    assert not any(list(parent.glob(f"*{key}*")) for parent in find_hierarchy().folders.values())


def test_a_run_beside_it_is_left_alone(kind: str) -> None:
    async def main() -> None:
        async with opened(kind) as sandbox:
            await sandbox.put("mine", b"")
            other = KINDS[kind](LocalOptions())
            await other.probe()
            await other.aclose()
            assert [entry.name for entry in await sandbox.list()] == ["mine"]
            assert sandbox.place.group is None or not sandbox.place.group.gone

    asyncio.run(main())


def test_keys() -> None:
    boot, namespace, pid, started = owner_key().split("-")
    assert not is_dead(owner_key())
    assert is_dead(f"{boot}-{namespace}-{pid}-{int(started) + 1}")
    assert is_dead(f"00000000-{namespace}-{pid}-{started}")
    assert not is_dead(f"{boot}-1-{pid}-{started}")  # of another container: nobody here can know
    assert not is_dead("something else")
