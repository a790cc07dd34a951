"""Processes that are killed, that race each other, and that run out of disk: what was answered is there."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.store.errors import NoRoom, StoreError
from runner.store.outbox import Accepted, Outbox, Owed, Verdict

WORKING = """
import asyncio, os, sys
from pathlib import Path
from runner.store.outbox import Accepted, Contradiction, Outbox, Owed, Verdict

path, name = Path(sys.argv[1]), sys.argv[2]

def say(*words):  # one write: a line is whole or not there
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

async def play(box, lane):
    number = 0
    while True:
        attempt = f"{name}-{lane}-{number}"
        assert await box.accept(Accepted(attempt, attempt, "d", (f"id:{attempt}",), b"r" * 3000, 1.0)) is None
        say("accepted", attempt)
        if number % 3 == 0:
            await box.hold(attempt, b"left", [Owed("completion", "u", b"held")])
            say("held", attempt)
        if number % 5:
            reward = float(number)
            both = [Owed("completion", "u", b"settled"), Owed("grader", "u", str(reward).encode())]
            await box.settle(attempt, Verdict("scored", "s", reward, ""), both)
            say("settled", attempt, reward)
            try:
                await box.settle(attempt, Verdict("failed", "s", None, ""), [])
                say("twice", attempt)
            except Contradiction:
                pass
            if number % 2:
                box.acknowledged(attempt, "completion")
                await box.written()
                say("taken", attempt)
        number += 1

async def main():
    box = Outbox.open(path)
    await asyncio.gather(*(play(box, lane) for lane in range(64)))

asyncio.run(main())
"""


def said(line: str, facts: dict[str, dict[str, str]]) -> None:
    word, attempt, *rest = line.split()
    facts.setdefault(attempt, {})[word] = rest[0] if rest else ""


@pytest.mark.parametrize("seed", range(4))
def test_what_a_killed_process_was_told_is_there(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "rollouts.db"
    facts: dict[str, dict[str, str]] = {}
    for number in range(2):  # the second run goes on with the file the first one left
        command = [sys.executable, "-c", WORKING, str(path), f"p{number}"]
        with (tmp_path / f"said{number}").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 30
        while (tmp_path / f"said{number}").stat().st_size < 30_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.Random(seed * 10 + number).random() * 0.3)
        process.send_signal(signal.SIGKILL)
        assert process.communicate()[1] == b""
        for line in (tmp_path / f"said{number}").read_text().splitlines():
            said(line, facts)
    assert len(facts) > 500
    asyncio.run(look(path, facts))


async def look(path: Path, facts: dict[str, dict[str, str]]) -> None:
    box = Outbox.open(path)
    unfinished = {one.accepted.attempt_id: one for one in await box.unfinished()}
    owing: dict[str, list[tuple[str, bytes]]] = {}
    for one in await box.owing():
        owing.setdefault(one.attempt_id, []).append((one.channel, one.owed.body))
    for attempt, fact in facts.items():
        assert "twice" not in fact
        known = await box.find(attempt)
        assert known is not None
        if "settled" in fact:
            assert known.verdict == Verdict("scored", "s", float(fact["settled"]), "")
            first = [] if known.undelivered == 1 else [("completion", b"held" if "held" in fact else b"settled")]
            assert owing[attempt] == [*first, ("grader", fact["settled"].encode())]
            assert first == [] or "taken" not in fact
        elif known.verdict is None:
            assert unfinished[attempt].accepted.request == b"r" * 3000
            assert unfinished[attempt].left == b"left" or "held" not in fact
    await box.aclose()


RACING = """
import asyncio, json, random, sys, time
from pathlib import Path
from runner.store.outbox import Accepted, Outbox

async def main():
    box = Outbox.open(Path(sys.argv[1]))
    name = sys.argv[2]
    while time.time() < float(sys.argv[3]):
        await asyncio.sleep(0.001)
    answers = {}
    async def take(key):
        answers[key] = await box.accept(Accepted(f"{name}-{key}", "r", "d", (f"key:{key}",), b"x", 1.0))
    keys = random.Random(name).sample(range(600), 600)
    for start in range(0, 600, 30):
        await asyncio.gather(*map(take, keys[start : start + 30]))
    await box.aclose()
    print(json.dumps(answers))

asyncio.run(main())
"""


def test_processes_that_race_for_a_key_agree_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"  # made by whichever comes first
    begin = str(time.time() + 1.5)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACING, str(path), name, begin], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in "ab"
    ]
    answers = []
    for racer in racers:
        out, trouble = racer.communicate(timeout=60)
        assert trouble == b""
        answers.append(json.loads(out))
    for key in map(str, range(600)):
        winner, loser = ("a", "b") if answers[0][key] is None else ("b", "a")
        by_name = {"a": answers[0][key], "b": answers[1][key]}
        assert by_name == {winner: None, loser: f"{winner}-{key}"}
    assert {answers[0][key] is None for key in answers[0]} == {True, False}, "they did not race"


MAKING = """
import sys, time
from pathlib import Path
from runner.store.outbox_tables import connect

for number in range(60):
    while time.time() < float(sys.argv[2]) + number * 0.03:
        pass
    connect(Path(sys.argv[1]) / f"{number}.db").close()
"""


def test_processes_that_make_one_file_at_once_take_none_for_a_strangers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKING, str(tmp_path), str(time.time() + 1.5)]
    makers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    assert [maker.communicate(timeout=60)[1] for maker in makers] == [b""] * 3


FULL = """
import asyncio, resource, sys
from pathlib import Path
from runner.store.errors import NoRoom
from runner.store.outbox import Accepted, Outbox

async def main():
    box = Outbox.open(Path(sys.argv[1]))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, most))
    rollouts = [Accepted(f"a{number}", "r", "d", (f"k{number}",), b"x" * 9000, 1.0) for number in range(400)]
    answers = await asyncio.gather(*map(box.accept, rollouts), return_exceptions=True)
    refused = [place for place, answer in enumerate(answers) if answer is not None]
    assert refused and all(isinstance(answers[place], NoRoom) for place in refused), answers
    print(answers[refused[0]], "|", answers[refused[0]].hint)
    stored = {one.accepted.attempt_id for one in await box.unfinished()}
    assert stored == {f"a{place}" for place, answer in enumerate(answers) if answer is None}, (stored, refused)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert await asyncio.gather(*(box.accept(rollouts[place]) for place in refused)) == [None] * len(refused)
    await box.aclose()

asyncio.run(main())
"""


def test_a_file_that_may_not_grow_and_then_may_again(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    command = [sys.executable, "-c", FULL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout == (
        f"{path}: cannot be written: the file may not grow any more (see `ulimit -f`) | "
        "let it grow: the server works on as soon as that is mended; what was accepted before is safe\n"
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no permission to mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "rollouts.db"
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 600_000)

    async def fill() -> None:
        box = Outbox.open(path)
        done: list[str] = []
        trouble: NoRoom | None = None
        while trouble is None:
            name = f"a{len(done)}"
            try:
                await box.accept(Accepted(name, name, "d", (name,), b"x" * 20_000, 1.0))
                done.append(name)
            except NoRoom as error:
                trouble = error
        assert str(trouble) == f"{path}: cannot be written: the disk is full"
        assert "make room" in trouble.hint
        with pytest.raises(NoRoom):
            await box.settle("a0", Verdict("scored", "s", 1.0, ""), [Owed("grader", "u", b"y" * 500_000)])
        known = await box.find("a0")
        assert known is not None
        assert (known.phase, known.undelivered) == ("accepted", 0)
        assert [one.accepted.attempt_id for one in await box.unfinished()] == done
        ballast.unlink()
        await box.settle("a0", Verdict("scored", "s", 1.0, ""), [Owed("grader", "u", b"{}")])
        assert await box.accept(Accepted("more", "more", "d", ("more",), b"x" * 20_000, 1.0)) is None
        await box.aclose()
        again = Outbox.open(path)
        assert [one.accepted.attempt_id for one in await again.unfinished()] == [*done[1:], "more"]
        await again.aclose()

    asyncio.run(fill())


def test_no_room_to_begin_with(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space left"):
        ballast.write_bytes(b"x" * 3_000_000)
    with pytest.raises(NoRoom, match="the disk is full"):
        Outbox.open(small_disk / "rollouts.db")


def test_a_disk_that_became_read_only(small_disk: Path) -> None:
    path = small_disk / "rollouts.db"

    async def main() -> None:
        await Outbox.open(path).aclose()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)  # noqa: ASYNC221
        with pytest.raises(StoreError, match="cannot be opened: Read-only file system") as caught:
            Outbox.open(path)
        assert "[serve] state" in caught.value.hint

    asyncio.run(main())
