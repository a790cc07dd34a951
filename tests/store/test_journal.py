"""What the journal has answered is on disk, whatever happens to the process or the disk."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.store.errors import StoreError
from runner.store.index import Index
from runner.store.journal import Journal
from runner.store.journal_reading import at, read


def record(number: int, attempt: int = 0, outcome: str = "scored", **more: object) -> dict[str, object]:
    digests = {"result": "aa", "grade": "bb"}
    return {"schema": "rollout/1", "row": number, "attempt": attempt, "outcome": outcome, "digests": digests, **more}


def test_appends_are_read_back_by_offset(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"

    async def play() -> list[int]:
        async with Journal.open(path) as journal:
            offsets = await asyncio.gather(*(journal.append(record(number)) for number in range(500)))
            assert journal.size == path.stat().st_size
            return offsets

    offsets = asyncio.run(play())
    found = dict(read(path))
    assert sorted(found) == sorted(offsets)
    assert [at(path, offset)["row"] for offset in offsets] == list(range(500))


def test_many_appends_share_few_syncs_and_keep_up(tmp_path: Path) -> None:
    line = json.dumps(record(1, text="x" * 4000)).encode()

    async def play() -> float:
        async with Journal.open(tmp_path / "rollouts.jsonl") as journal:
            began = time.perf_counter()
            await asyncio.gather(*(journal.append(line) for _ in range(10_000)))
            return time.perf_counter() - began

    assert asyncio.run(play()) < 10  # 5,000 a second and far more; the bound is loose for a busy machine


def test_back_pressure_holds_bytes_back(tmp_path: Path) -> None:
    line = json.dumps(record(1, text="x" * 1000)).encode()

    async def play() -> None:
        async with Journal.open(tmp_path / "rollouts.jsonl", max_waiting=5000) as journal:
            appends = [asyncio.ensure_future(journal.append(line)) for _ in range(200)]
            await asyncio.sleep(0)
            assert journal._waiting_bytes < 10_000
            await asyncio.gather(*appends)

    asyncio.run(play())
    assert sum(1 for _ in read(tmp_path / "rollouts.jsonl")) == 200


def test_a_cancelled_append_harms_no_other(tmp_path: Path) -> None:
    async def play() -> None:
        async with Journal.open(tmp_path / "rollouts.jsonl") as journal:
            first = asyncio.ensure_future(journal.append(record(1)))
            second = asyncio.ensure_future(journal.append(record(2)))
            await asyncio.sleep(0)
            first.cancel()
            assert at(tmp_path / "rollouts.jsonl", await second)["row"] == 2

    asyncio.run(play())


@pytest.mark.parametrize("torn", [b'{"schema": "rollout/1", "row": 7', b"\0" * 70_000, b"{"])
def test_a_torn_last_line_is_moved_away(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "rollouts.jsonl"
    asyncio.run(append_all(path, 0, 3))
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert [found["row"] for _, found in read(path)] == [0, 1, 2]
    asyncio.run(append_all(path, 3, 5))
    assert path.read_bytes().startswith(whole)
    assert [found["row"] for _, found in read(path)] == [0, 1, 2, 3, 4]
    assert (tmp_path / "rollouts.torn").read_bytes() == torn + b"\n"


async def append_all(path: Path, first: int, end: int) -> None:
    async with Journal.open(path) as journal:
        for number in range(first, end):
            await journal.append(record(number))


KILLED = """
import asyncio, sys
from pathlib import Path
from runner.store.journal import Journal

async def main():
    journal = Journal.open(Path(sys.argv[1]))
    async def one(number):
        await journal.append({"schema": "rollout/1", "row": number, "text": "x" * 3000})
        print(number, flush=True)
    first = int(sys.argv[2])
    while True:
        await asyncio.gather(*(one(number) for number in range(first, first + 20)))
        first += 20

asyncio.run(main())
"""


def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    chance = random.Random(3)
    acknowledged: set[int] = set()
    for attempt in range(4):
        command = [sys.executable, "-c", KILLED, str(path), str(attempt * 1_000_000)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            head = process.stdout.readline()
            time.sleep(chance.uniform(0, 0.2))
            process.kill()
            said = head + process.stdout.read()
        acknowledged |= {int(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")}
    asyncio.run(append_all(path, -1, 0))
    rows = [found["row"] for _, found in read(path)]
    assert len(rows) == len(set(rows))
    assert acknowledged <= set(rows)
    assert rows[-1] == -1
    assert len(acknowledged) > 50


FULL = """
import asyncio, resource, sys
from pathlib import Path
from runner.store.errors import StoreError
from runner.store.journal import Journal

async def main():
    journal = Journal.open(Path(sys.argv[1]))
    done = 0
    try:
        while True:
            lines = [{"schema": "rollout/1", "row": n, "text": "x" * 3000} for n in range(7)]
            await asyncio.gather(*(journal.append(line) for line in lines))
            done += 7
    except StoreError as error:
        print(done, error, "|", error.hint)
    try:
        await journal.append({"schema": "rollout/1"})
    except StoreError as error:
        print("refused:", error)
    await journal.aclose()

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
asyncio.run(main())
"""


def test_a_file_that_cannot_grow_ends_with_a_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    said = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True).stdout
    first, second = said.splitlines()
    done = int(first.split()[0])
    assert "cannot be written: the file may not grow any more" in first
    assert "every rollout that was counted is safe" in first
    assert second.startswith(f"refused: {path}: cannot be written")
    assert sum(1 for _ in read(path)) == done > 0
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny disk needs root")
def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no permission to mount")
    try:
        path = disk / "rollouts.jsonl"

        async def fill() -> tuple[int, StoreError]:
            async with Journal.open(path) as journal:
                done = 0
                while True:
                    try:
                        await journal.append(record(done, text="x" * 3000))
                    except StoreError as error:
                        return done, error
                    done += 1

        done, error = asyncio.run(fill())
        assert str(error) == f"{path}: cannot be written: the disk is full"
        assert "make room" in error.hint
        assert [found["row"] for _, found in read(path)] == list(range(done))
        assert path.read_bytes().endswith(b"\n")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_journal_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened: No such file or directory"):
        Journal.open(tmp_path / "nowhere" / "rollouts.jsonl")
    with pytest.raises(StoreError, match="Is a directory"):
        Journal.open(tmp_path)


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        journal = Journal.open(tmp_path / "rollouts.jsonl")
        await journal.aclose()
        await journal.aclose()
        with pytest.raises(StoreError, match="the journal is closed"):
            await journal.append(record(1))

    asyncio.run(play())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{broken", r"rollouts\.jsonl:2: is not JSON: key must be a string"),
        (b"[1]", r"rollouts\.jsonl:2: is not a record"),
        (b'{"row": 1}', r"rollouts\.jsonl:2: is not from osmosis-run: its `schema` is None"),
        (b'{"schema": "rollout/2"}', r"rollouts\.jsonl:2: written by a newer osmosis-run \(rollout/2"),
        (b'{"schema": "run/1"}', r"rollouts\.jsonl:2: is not from osmosis-run"),
    ],
)
def test_a_broken_line_in_the_middle_has_its_place(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "rollouts.jsonl"
    good = json.dumps(record(0)).encode()
    path.write_bytes(b"\n".join([good, line, good, b""]))
    with pytest.raises(StoreError, match=message):
        list(read(path))


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    assert list(read(tmp_path / "rollouts.jsonl")) == []


def test_index_keeps_the_last_record(tmp_path: Path) -> None:
    index = Index()
    index.add(record(3, 1, "failed"), 0)
    index.add(record(3, 0, "scored"), 10)
    index.add(record(3, 1, "scored", digests={"result": "cc"}), 20)
    entry = index.get(3, 1)
    assert entry is not None
    assert (entry.status, entry.digests, entry.offset) == ("scored", {"result": "cc"}, 20)
    index.add(record(4, 0, "cancelled", digests={"result": "0" * 15 + "f", "odd": "x"}), 30)
    entry = index.get(4, 0)
    assert entry is not None
    assert (entry.status, entry.digests) == ("cancelled", {"result": "0" * 15 + "f", "odd": "x"})
    assert len(index) == 3
    assert (3, 0) in index
    assert (0, 3) not in index
    assert index.get(1, 3) is None
    assert [(row, attempt, entry.offset) for row, attempt, entry in index.items()] == [
        (3, 1, 20),
        (3, 0, 10),
        (4, 0, 30),
    ]


def test_index_of_a_file_is_small(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "rollouts.jsonl"
    with path.open("w") as file:
        for number in range(5000):
            file.write(json.dumps(record(number, digests={"result": "a" * 16, "row": f"{number:016x}"})) + "\n")
    tracemalloc.start()
    index = Index.of(path)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    entry = index.get(4999, 0)
    assert entry is not None
    assert entry.digests == {"result": "a" * 16, "row": f"{4999:016x}"}
    assert used / 5000 < 300
