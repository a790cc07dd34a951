"""What a command is told and what comes back, for every local kind: codes, streams, limits, endings."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.sandbox import Command, Sandbox
from tests.sandboxes.conftest import needs_groups, opened, play, sh


def test_streams_code_and_folder(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        ran = await sh(sandbox, "pwd; echo wrong >&2; exit 7")
        assert (ran.code, ran.stdout.decode().strip(), ran.stderr) == (7, sandbox.workdir, b"wrong\n")
        assert (await sh(sandbox, "kill -9 $$")).code == 137
        assert (await sandbox.exec(Command(["no-such-program"]))).code == 127

    play(kind, work)


def test_argv_needs_no_shell_and_input_is_binary(kind: str) -> None:
    data = bytes(range(256)) * 4000  # 1 MB: more than any pipe holds

    async def work(sandbox: Sandbox) -> None:
        ran = await sandbox.exec(Command(["printf", "%s|", "a b", "$HOME", "'\"\n"]))
        assert ran.stdout == b"a b|$HOME|'\"\n|"
        ran = await sandbox.exec(Command(["cat"], stdin=data, max_output=2 << 20))
        assert ran.stdout == data
        assert (await sandbox.exec(Command(["cat"]))).stdout == b""
        ran = await sandbox.exec(Command(["true"], stdin=data))  # which never reads it
        assert ran.code == 0

    play(kind, work)


def test_only_its_own_variables_and_those_of_the_command(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def work(sandbox: Sandbox) -> None:
        ran = await sandbox.exec(Command(["env"], env={"MINE": "a=b c"}))
        lines = ran.stdout.decode().splitlines()
        assert "MINE=a=b c" in lines and "GIVEN=1" in lines
        assert not any("secret" in line for line in lines)

    play(kind, work, LocalOptions(env={"GIVEN": "1"}))


def test_fifty_megabytes_keep_head_and_tail(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        ran = await sh(sandbox, "echo first; head -c 50000000 /dev/zero; echo last", max_output=1000)
        assert len(ran.stdout) == 1000 and ran.dropped_out == 50_000_011 - 1000
        assert ran.stdout.startswith(b"first\n\0") and ran.stdout.endswith(b"\0last\n")
        assert ran.dropped_err == 0 and not ran.timed_out

    play(kind, work)


def test_a_command_that_ignores_sigterm_ends_in_time(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        ran = await sh(sandbox, "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done", timeout=0.5)
        assert ran.timed_out and ran.code == 137 and ran.stdout == b"begun\n" and ran.seconds < 3

    play(kind, work)


_DAEMON = """import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {streams}
        while True:
            open("alive", "a").write("x")
            time.sleep(0.02)
    os._exit(0)
{end}
"""


@pytest.mark.parametrize("streams", ["pass", "os.closerange(0, 3)"])
@pytest.mark.parametrize("end", ["time.sleep(60)", "time.sleep(0.3)"])
def test_a_daemon_ends_with_its_command(kind: str, streams: str, end: str) -> None:
    """Double-forked, in a session of its own, holding the streams or not; when time is up and when all went well."""

    async def work(sandbox: Sandbox) -> None:
        await sandbox.put("daemon.py", _DAEMON.format(streams=streams, end=end).encode())
        started = time.monotonic()
        ran = await sandbox.exec(Command(["python3", "daemon.py"], timeout=0.8))
        assert ran.timed_out == (end == "time.sleep(60)") and time.monotonic() - started < 4
        await asyncio.sleep(0.1)
        before = len(await sandbox.get("alive"))
        await asyncio.sleep(0.2)
        assert len(await sandbox.get("alive")) == before > 0

    play(kind, work)


def test_files_of_a_command_stay_for_the_next(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        await sh(sandbox, "mkdir deep; echo one > deep/a; echo two > $TMPDIR/b")
        assert (await sh(sandbox, "cat deep/a $TMPDIR/b")).stdout == b"one\ntwo\n"
        assert (await sh(sandbox, "pwd", cwd="deep")).stdout.decode().strip() == f"{sandbox.workdir}/deep"

    play(kind, work)


def test_many_at_once(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        started = time.monotonic()
        ran = await asyncio.gather(*(sh(sandbox, f"sleep 0.5; exit {n}") for n in range(8)))
        assert [each.code for each in ran] == list(range(8)) and time.monotonic() - started < 2

    play(kind, work)


def test_a_cancelled_command_is_killed(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        task = asyncio.create_task(sh(sandbox, "while :; do echo x >> alive; sleep 0.02; done"))
        while True:
            await asyncio.sleep(0.05)
            if any(entry.name == "alive" for entry in await sandbox.list()):
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)
        before = len(await sandbox.get("alive"))
        await asyncio.sleep(0.2)
        assert len(await sandbox.get("alive")) == before

    play(kind, work)


def test_a_shell_that_goes_on(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        shell = await sandbox.start(Command(["/bin/sh"]))
        await shell.write(b"cd /; x=5\n")
        await shell.write(b"echo $x $PWD; echo wrong >&2\n")
        said = b""
        while b"wrong" not in said:
            said += await asyncio.wait_for(shell.read(), 10)
        assert said == b"5 /\nwrong\n"
        await shell.write(b"exit 3\n")
        assert await asyncio.wait_for(shell.read(), 10) == b""
        assert await shell.wait() == 3
        with pytest.raises(BrokenPipeError):
            await shell.write(b"echo more\n")
        other = await sandbox.start(Command(["sleep", "60"]))
        await asyncio.wait_for(other.kill(), 5)
        assert await other.read() == b"" and await other.wait() == 137

    play(kind, work)


def test_one_that_floods_waits_for_its_reader(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        running = await sandbox.start(Command(["head", "-c", "20000000", "/dev/zero"]))
        await asyncio.sleep(0.5)
        total = 0
        while piece := await asyncio.wait_for(running.read(), 10):
            assert len(piece) < 3 << 20
            total += len(piece)
        assert total == 20_000_000 and await running.wait() == 0

    play(kind, work)


def test_stopped_it_answers_nothing_and_leaves_nothing(kind: str) -> None:
    async def main() -> None:
        async with opened(kind) as sandbox:
            folder = sandbox.place.folder
            running = await sandbox.start(Command(["sleep", "60"]))
            hanging = asyncio.create_task(sh(sandbox, "sleep 60"))
            await asyncio.sleep(0.2)
            await sandbox.stop()
            await sandbox.stop()
            with pytest.raises(SandboxError, match="stopped"):
                await asyncio.wait_for(hanging, 5)
            with pytest.raises(SandboxError, match="stopped"):
                await asyncio.wait_for(running.wait(), 5)
            for use in (sh(sandbox, "true"), sandbox.put("a", b""), sandbox.list()):
                with pytest.raises(SandboxError, match="stopped"):
                    await use
            assert not folder.exists()
            group = sandbox.place.group
            assert group is None or not any(each.exists() for each in group.folders)

    asyncio.run(main())


def test_no_descriptor_is_left_open(kind: str) -> None:
    async def work(sandbox: Sandbox) -> None:
        await sh(sandbox, "true")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for n in range(20):
            await sh(sandbox, "true", timeout=5)
            await sandbox.put(f"a/b/{n}", b"x")
            await sandbox.get(f"a/b/{n}")
            running = await sandbox.start(Command(["true"]))
            await running.wait()
        await sh(sandbox, "sleep 9", timeout=0.05)
        await asyncio.sleep(0.1)
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    play(kind, work)


def test_the_sandbox_that_is_gone_is_lost(kind: str) -> None:
    """Somebody else removed its folder: found at the next use, whichever it is."""

    async def main() -> None:
        async with opened(kind) as sandbox:
            os.rename(sandbox.place.folder, f"{sandbox.place.folder}.away")
            try:
                for use in (sh(sandbox, "true"), sandbox.get("a"), sandbox.start(Command(["true"]))):
                    with pytest.raises(SandboxError, match="is gone") as caught:
                        await use
                    assert caught.value.kind == "sandbox_lost"
            finally:
                os.rename(f"{sandbox.place.folder}.away", sandbox.place.folder)

    asyncio.run(main())


@needs_groups
def test_a_daemon_that_has_lost_its_mark_is_found_in_its_group() -> None:
    async def work(sandbox: Sandbox) -> None:
        loop = "while :; do echo x >> alive; sleep 0.02; done"
        lost = f"os.execve('/bin/sh', ['sh', '-c', {loop!r}], {{'PATH': '/bin'}})"
        code = _DAEMON.format(streams=lost, end="time.sleep(0.3)")
        await sandbox.put("daemon.py", code.encode())
        assert (await sandbox.exec(Command(["python3", "daemon.py"]))).code == 0
        await asyncio.sleep(0.1)
        before = len(await sandbox.get("alive"))
        await asyncio.sleep(0.2)
        assert len(await sandbox.get("alive")) == before > 0

    play("none", work)
