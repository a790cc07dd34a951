"""What a pod must do whatever the cluster: run on the stand-in by the tests, and on any cluster by
`against_a_cluster.py`."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from runner.sandboxes.preparation import copy_in
from runner.sandboxes.sandbox import Command, Entry, Sandbox
from tests.sandboxes.conftest import sh


async def codes_and_streams(box: Sandbox) -> None:
    ran = await sh(box, "pwd; echo wrong >&2; exit 7")
    assert (ran.code, ran.stdout, ran.stderr) == (7, f"{box.workdir}\n".encode(), b"wrong\n")
    for code in (0, 1, 125, 126, 255):
        assert (await sh(box, f"exit {code}")).code == code
    ran = await sh(box, "kill -9 $$")
    assert (ran.code, ran.stderr, ran.timed_out, ran.out_of_memory) == (137, b"", False, False)
    ran = await box.exec(Command(["no-such-program", "x"]))
    assert ran.code == 127 and b"no-such-program" in ran.stderr
    assert (await box.exec(Command(["pwd"], cwd="no/such/folder"))).code == 126


async def words_and_variables(box: Sandbox) -> None:
    words = ["a b", "it's", "", "$HOME `id` \\", "two\nlines\n", "é", "-n", "x" * 100_000]
    ran = await box.exec(Command(["printf", "%s|", *words], max_output=1 << 20))
    assert ran.stdout.decode() == "".join(f"{word}|" for word in words)
    ran = await box.exec(Command(["env"], env={"MINE": "a=b 'c'\nd", "PATH": "/bin:/usr/bin:/x"}))
    assert b"MINE=a=b 'c'\nd\n" in ran.stdout and b"PATH=/bin:/usr/bin:/x\n" in ran.stdout


async def input_of_every_size(box: Sandbox) -> None:
    for size in (0, 1, 65_537, 3 << 20):
        data = bytes(range(256)) * (size // 256 + 1)
        ran = await box.exec(Command(["cat"], stdin=data[:size], max_output=8 << 20))
        assert (ran.code, ran.stdout) == (0, data[:size])
    # One that does not read it: its code is what counts, and nobody waits for the rest to be taken.
    ran = await box.exec(Command(["sh", "-c", "exit 3"], stdin=bytes(5 << 20), timeout=20.0))
    assert (ran.code, ran.timed_out) == (3, False)


async def fifty_megabytes(box: Sandbox) -> None:
    ran = await sh(box, "echo first; head -c 50000000 /dev/zero; echo last", max_output=100, timeout=60.0)
    assert ran.stdout.startswith(b"first\n") and ran.stdout.endswith(b"last\n") and len(ran.stdout) == 100
    assert (ran.code, ran.dropped_out) == (0, 50_000_011 - 100)


async def time_is_over(box: Sandbox) -> None:
    started = time.monotonic()
    loop = "sh -c 'while :; do echo x >> alive; sleep 0.02; done'"
    # One in a session of its own whose parent is gone, and one that has cleared its environment as well.
    text = f"trap '' TERM; (setsid {loop} &) ; env -i PATH=$PATH setsid {loop} & while :; do sleep 1; done"
    ran = await sh(box, text, timeout=1.0)
    assert ran.timed_out and ran.code == 137 and time.monotonic() - started < 8
    before = len(await box.get("alive"))
    await asyncio.sleep(0.3)
    assert len(await box.get("alive")) == before > 0


async def given_up(box: Sandbox) -> None:
    """Whoever is cancelled takes the command with it."""
    doing = asyncio.create_task(sh(box, "while :; do echo x >> going; sleep 0.02; done"))
    while not [each for each in await box.list() if each.name == "going"]:
        await asyncio.sleep(0.1)
    doing.cancel()
    await asyncio.wait({doing})
    sizes = [-1, -2]
    end = time.monotonic() + 15
    while sizes[-1] != sizes[-2] and time.monotonic() < end:
        await asyncio.sleep(0.3)
        sizes.append(len(await box.get("going")))
    assert sizes[-1] == sizes[-2] > 0


async def a_daemon_holds_nobody(box: Sandbox) -> None:
    """It keeps the streams of its command open, and a server would wait for them."""
    started = time.monotonic()
    ran = await sh(box, "sleep 30 & echo begun; exit 4")
    assert (ran.code, ran.stdout) == (4, b"begun\n") and time.monotonic() - started < 6


async def files(box: Sandbox) -> None:
    data = bytes(range(256))
    await box.put("a/b c/é\n.bin", data, mode=0o755)
    assert await box.get("a/b c/é\n.bin") == data and await box.get(f"{box.workdir}/a/b c/é\n.bin", limit=5) == data[:5]
    assert (await sh(box, "ln -s /etc/passwd who; ln -s a here; stat -c %a 'a/b c/'*")).stdout == b"755\n"
    await box.put("a/b c/é\n.bin", b"")  # whole and at once, its mode kept
    assert await box.list("here/b c") == [Entry("é\n.bin", "file", 0)]
    assert (await sh(box, "stat -c %a 'a/b c/'*")).stdout == b"755\n"
    kinds = {each.name: each.kind for each in await box.list()}
    assert kinds["a"] == "folder" and kinds["here"] == kinds["who"] == "link"
    for use, wrong in (
        (box.get("who"), (PermissionError, FileNotFoundError)),  # an image may have none
        (box.put("who", b""), (PermissionError, FileNotFoundError)),
        (box.get("../proc/self/environ"), PermissionError),
        (box.get("no"), FileNotFoundError),
        (box.get("a"), IsADirectoryError),
        (box.list("no"), FileNotFoundError),
        (box.remove("no"), FileNotFoundError),
        (box.remove("a"), OSError),
    ):
        with pytest.raises(wrong):
            await use
    await box.remove("who")


async def trees(box: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "run me.sh").write_text("echo copied")
        (folder / "deep" / "er" / "run me.sh").chmod(0o755)
        (folder / "big").write_bytes(bytes(2_000_000))
        (folder / "to").symlink_to("deep")
        await copy_in(box, folder, "repo")
        await copy_in(box, folder / "big", "one")
    assert (await sh(box, "repo/to/er/run\\ me.sh && wc -c < repo/big && wc -c < one")).stdout.split() == [
        b"copied", b"2000000", b"2000000"]  # fmt: skip


async def a_shell_that_goes_on(box: Sandbox) -> None:
    shell = await box.start(Command(["/bin/sh"], env={"GIVEN": "g"}))
    await shell.write(b"cd /; x=5\necho $x $PWD $GIVEN; echo wrong >&2\n")
    said = b""
    while said.count(b"\n") < 2:
        said += await asyncio.wait_for(shell.read(), 10)
    assert sorted(said.split(b"\n")) == [b"", b"5 / g", b"wrong"]
    await shell.write(b"exit 3\n")
    assert await asyncio.wait_for(shell.wait(), 10) == 3 and await shell.read() == b""
    with pytest.raises(BrokenPipeError):
        await shell.write(b"x")
    other = await box.start(Command(["sh", "-c", "sleep 61 & sleep 62"]))
    await asyncio.sleep(0.5)
    await asyncio.wait_for(other.kill(), 20)
    assert await other.wait() == 137
    left = await sh(box, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 6[12]'")
    assert left.stdout == b"0\n"


async def a_slow_reader(box: Sandbox) -> None:
    """What nobody reads waits on the other side, not in our memory, and all of it comes."""
    flood = await box.start(Command(["head", "-c", "12000000", "/dev/zero"]))
    await asyncio.sleep(0.5)
    total, most = 0, 0
    while data := await asyncio.wait_for(flood.read(), 20):
        total, most = total + len(data), max(most, len(data))
        await asyncio.sleep(0.01)
    assert total == 12_000_000 and most < 3 << 20 and await flood.wait() == 0


async def many_at_once(box: Sandbox) -> None:
    started = time.monotonic()
    rans = await asyncio.gather(*(sh(box, f"sleep 0.5; echo {number}") for number in range(8)))
    assert [ran.stdout for ran in rans] == [f"{number}\n".encode() for number in range(8)]
    assert time.monotonic() - started < 3.5


async def what_holds(box: Sandbox) -> None:
    status = (await sh(box, "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status")).stdout.split()
    assert int(status[1], 16) == 0 and status[3] == b"1"
    assert (await sh(box, "ls /var/run/secrets/kubernetes.io/serviceaccount/token")).code != 0


Case: TypeAlias = Callable[[Sandbox], Awaitable[None]]

BY_PROTOCOL: list[Case] = [codes_and_streams, input_of_every_size, time_is_over, a_shell_that_goes_on]
"""Those where the version of the protocol makes a difference."""
CASES: list[Case] = [
    *BY_PROTOCOL,
    words_and_variables,
    fifty_megabytes,
    given_up,
    a_daemon_holds_nobody,
    files,
    trees,
    a_slow_reader,
    many_at_once,
    what_holds,
]
