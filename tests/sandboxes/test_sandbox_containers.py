"""podman and docker, where they run. `OSMOSIS_TEST_PODMAN` names a program that speaks alike, `OSMOSIS_TEST_IMAGE` an
image with a POSIX shell (default: busybox, if it is here or can be pulled)."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.asked import Limits, Mount
from runner.sandboxes.container import ContainerOptions, ContainerSandbox
from runner.sandboxes.containers import LABEL, ContainerMaker
from runner.sandboxes.preparation import copy_in
from runner.sandboxes.sandbox import Command, Entry
from tests.sandboxes.conftest import sh

IMAGE = os.environ.get("OSMOSIS_TEST_IMAGE", "docker.io/library/busybox:latest")


def _usable() -> tuple[str, str]:
    """The program, and why there is none."""
    why = "neither podman nor docker is installed"
    for name in (os.environ.get("OSMOSIS_TEST_PODMAN", ""), "podman", "docker"):
        if name and shutil.which(name):
            ran = subprocess.run([name, "ps"], capture_output=True, text=True, timeout=30)
            if ran.returncode:
                why = f"{name}: {ran.stderr.strip()[-200:]}"
                continue
            had = subprocess.run([name, "image", "inspect", IMAGE], capture_output=True, timeout=30)
            if had.returncode == 0 or subprocess.run([name, "pull", IMAGE], capture_output=True).returncode == 0:
                return name, ""
            why = f"{name} has no image {IMAGE} and cannot pull it"
    return "", why


PROGRAM, WHY = _usable()
pytestmark = pytest.mark.skipif(not PROGRAM, reason=f"containers: {WHY}")


def play(work: Callable[[ContainerSandbox], Awaitable[None]], options: ContainerOptions | None = None) -> None:
    async def main() -> None:
        maker = ContainerMaker(options or ContainerOptions(PROGRAM, IMAGE))
        try:
            await maker.probe()
            await work(await maker.make("test"))
        finally:
            await maker.aclose()
        assert not _of_ours()

    asyncio.run(main())


def _of_ours() -> list[str]:
    listed = subprocess.run([PROGRAM, "ps", "-aq", "--filter", f"label={LABEL}"], capture_output=True, text=True)
    return listed.stdout.split()


def test_commands() -> None:
    async def work(box: ContainerSandbox) -> None:
        ran = await sh(box, "pwd; echo wrong >&2; exit 7")
        assert (ran.code, ran.stdout, ran.stderr) == (7, b"/workspace\n", b"wrong\n")
        for code in (1, 125, 126, 255):
            assert (await sh(box, f"exit {code}")).code == code
        assert (await sh(box, "kill -9 $$")).code == 137
        assert (await box.exec(Command(["no-such-program"]))).code == 127
        data = bytes(range(256)) * 2000
        assert (await box.exec(Command(["cat"], stdin=data))).stdout == data
        assert (await box.exec(Command(["env"], env={"MINE": "a=b c", "PATH": "/bin:/x"}))).stdout.count(b"MINE=a=b c")
        ran = await sh(box, "head -c 5000000 /dev/zero; echo last", max_output=100)
        assert ran.dropped_out == 5_000_005 - 100 and ran.stdout.endswith(b"last\n")

    play(work)


def test_a_time_out_ends_what_runs_inside() -> None:
    async def work(box: ContainerSandbox) -> None:
        started = time.monotonic()
        text = (
            "trap '' TERM; (setsid sh -c 'while :; do echo x >> alive; sleep 0.02; done' &) ; while :; do sleep 1; done"
        )
        ran = await sh(box, text, timeout=1.0)
        assert ran.timed_out and ran.code == 137 and time.monotonic() - started < 6
        before = len(await box.get("alive"))
        await asyncio.sleep(0.3)
        assert len(await box.get("alive")) == before > 0

    play(work)


def test_limits_hold(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("mounted")

    async def work(box: ContainerSandbox) -> None:
        ran = await sh(box, "x=$(head -c 200000000 /dev/zero | tr '\\0' a); echo held")
        assert b"held" not in ran.stdout and ran.code == 137 and ran.out_of_memory
        bomb = "i=0; while [ $i -lt 200 ]; do sleep 3 & i=$((i+1)); done; echo all"
        assert b"all" not in (await sh(box, bomb, timeout=2)).stdout
        while (await sh(box, "echo alive")).stdout != b"alive\n":  # until they end: a command of its own, no loss
            await asyncio.sleep(0.5)
        await asyncio.sleep(3)
        assert (await sh(box, "cat /data/seen; touch /data/x")).code != 0
        assert (await sh(box, "grep -c : /proc/net/dev")).stdout == b"1\n"
        status = (await sh(box, "grep -E 'CapEff|NoNewPrivs' /proc/self/status")).stdout.split()
        assert int(status[1], 16) == 0 and status[3] == b"1"

    mounts = {"/data": Mount(tmp_path, writable=False)}
    play(work, ContainerOptions(PROGRAM, IMAGE, limits=Limits(memory=64 << 20, pids=40), mounts=mounts))


def test_files(tmp_path: Path) -> None:
    async def work(box: ContainerSandbox) -> None:
        data = bytes(range(256))
        await box.put("a/b c/é\n.bin", data, mode=0o755)
        assert await box.get("a/b c/é\n.bin") == data and await box.get("/workspace/a/b c/é\n.bin", limit=5) == data[:5]
        assert (await sh(box, "ln -s /etc/passwd who; ln -s a here; stat -c %a 'a/b c/'*")).stdout == b"755\n"
        await box.put("a/b c/é\n.bin", b"")
        assert await box.list("here/b c") == [Entry("é\n.bin", "file", 0)]
        assert [(each.name, each.kind) for each in await box.list()] == [
            ("a", "folder"),
            ("here", "link"),
            ("who", "link"),
        ]
        for use, wrong in (
            (box.get("who"), PermissionError),
            (box.put("who", b""), PermissionError),
            (box.get("/etc/passwd"), PermissionError),
            (box.get("no"), FileNotFoundError),
            (box.get("a"), IsADirectoryError),
            (box.list("no"), FileNotFoundError),
            (box.remove("no"), FileNotFoundError),
            (box.remove("a"), OSError),
        ):
            with pytest.raises(wrong):
                await use
        await box.remove("who")
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "f").write_text("copied")
        await copy_in(box, tmp_path, "repo")
        assert await box.get("repo/deep/f") == b"copied"

    play(work)


def test_a_shell_that_goes_on() -> None:
    async def work(box: ContainerSandbox) -> None:
        shell = await box.start(Command(["/bin/sh"]))
        await shell.write(b"cd /; x=5\necho $x $PWD\n")
        assert await asyncio.wait_for(shell.read(), 10) == b"5 /\n"
        await shell.write(b"exit 3\n")
        assert await asyncio.wait_for(shell.wait(), 10) == 3
        other = await box.start(Command(["sleep", "60"]))
        await asyncio.sleep(0.5)
        await asyncio.wait_for(other.kill(), 10)
        assert (await sh(box, "ps | grep -c '[s]leep 60'")).stdout == b"0\n"

    play(work)


def test_a_dead_container_is_lost() -> None:
    async def work(box: ContainerSandbox) -> None:
        running = asyncio.create_task(sh(box, "sleep 30"))
        await asyncio.sleep(1.0)
        subprocess.run([PROGRAM, "rm", "-f", box.name], capture_output=True, check=True)
        started = time.monotonic()
        for use in (running, sh(box, "true"), box.get("a")):
            with pytest.raises(SandboxError) as caught:
                await asyncio.wait_for(use, 10)
            assert caught.value.kind == "sandbox_lost"
        assert time.monotonic() - started < 5

    play(work)


def test_what_cannot_be_had() -> None:
    async def main() -> None:
        with pytest.raises(SandboxError, match="no image `localhost/no-such:1`"):
            await ContainerMaker(ContainerOptions(PROGRAM, "localhost/no-such:1")).probe()
        with pytest.raises(SandboxError, match="not installed"):
            await ContainerMaker(ContainerOptions("no-such-podman", IMAGE)).probe()

    asyncio.run(main())


def test_containers_of_a_dead_run_are_removed() -> None:
    words = [
        "--stop-timeout",
        "0",
        "--network",
        "none",
        "--label",
        f"{LABEL}=00000000-1-1-1",
        IMAGE,
        "/bin/sleep",
        "100",
    ]
    subprocess.run([PROGRAM, "run", "-d", *words], check=True, capture_output=True)
    assert _of_ours()

    async def work(box: ContainerSandbox) -> None:
        assert len(_of_ours()) == 1

    play(work)
