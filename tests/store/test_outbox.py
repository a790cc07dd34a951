"""What the outbox has answered stands: keys are unique, verdicts final, callbacks owed until acknowledged."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from runner.store.errors import StoreError
from runner.store.outbox import Accepted, Contradiction, Outbox, Owed, Verdict

GOOD = Verdict("scored", "answered", 1.0, "")
SECRET = "bearer-0123456789abcdef"  # noqa: S105 (nobody's)


def accepted(name: str, *keys: str, worker: int = 0, request: bytes = b"{}") -> Accepted:
    return Accepted(name, f"wire-{name}", "single-sample", keys or (f"id:{name}",), request, 1.0, worker)


def owed(channel: str, body: bytes = b"{}") -> Owed:
    return Owed(channel, f"http://trainer/{channel}", body, SECRET)


def play(path: Path, steps: Callable[[Outbox], Awaitable[None]], worker: int | None = None) -> None:
    async def main() -> None:
        box = Outbox.open(path, worker=worker)
        try:
            await steps(box)
        finally:
            await box.aclose()

    asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "rollouts.db"


def test_a_rollout_from_acceptance_to_the_sweep(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        rollout = accepted("a", "id:a", "key:1", request=b"\x00raw")
        assert await box.accept(rollout) is None
        (unfinished,) = await box.unfinished()
        assert (unfinished.accepted, unfinished.left) == (rollout, None)
        await box.hold("a", b"left", [owed("completion")])
        assert (await box.unfinished())[0].left == b"left"
        assert await box.counts() == {"accepted": 0, "held": 1, "owed": 1, "abandoned": 0}
        await box.settle("a", GOOD, [owed("completion", b"another"), owed("grader")])
        assert [(one.channel, one.owed.body) for one in await box.owing()] == [("completion", b"{}"), ("grader", b"{}")]
        known = await box.find("wire-a")
        assert known is not None
        assert (known.phase, known.verdict, known.undelivered) == ("settled", GOOD, 2)
        assert await box.unfinished() == []
        for channel in ("completion", "grader"):
            assert await box.sweep(time.time() + 1) == 0
            box.acknowledged("a", channel)
        assert await box.sweep(known_before) == 0
        assert await box.sweep(time.time() + 1) == 1
        assert await box.find("wire-a") is None
        assert await box.accept(accepted("b", "key:1")) is None

    known_before = time.time() - 60
    play(path, steps)


def test_a_key_is_held_once(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        assert await box.accept(accepted("a", "id:1", "key:1")) is None
        assert await box.accept(accepted("b", "id:2", "key:1")) == "a"
        assert await box.accept(accepted("c", "id:2")) is None  # nothing of b was stored
        together = await asyncio.gather(*(box.accept(accepted(f"x{number}", "key:x")) for number in range(50)))
        assert together.count(None) == 1
        winner = f"x{together.index(None)}"
        assert {answer for answer in together if answer is not None} == {winner}
        await box.settle("a", Verdict("cancelled", "cancelled", None, ""), [], release=True)
        assert await box.accept(accepted("d", "key:1")) is None

    play(path, steps)


def test_a_verdict_is_final(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        await box.accept(accepted("a"))
        await box.settle("a", GOOD, [owed("completion")])
        with pytest.raises(Contradiction, match="attempt a: its verdict stands"):
            await box.settle("a", Verdict("failed", "agent_error", None, "no"), [owed("grader")])
        with pytest.raises(Contradiction, match="its verdict stands"):
            await box.hold("a", b"", [])
        with pytest.raises(Contradiction, match="attempt b: was never accepted"):
            await box.settle("b", GOOD, [])
        known = await box.find("wire-a")
        assert known is not None
        assert (known.verdict, known.undelivered) == (GOOD, 1)
        await box.accept(accepted("c"))
        await box.hold("c", b"", [])
        with pytest.raises(Contradiction, match="its agent ended before"):
            await box.hold("c", b"", [])

    play(path, steps)


def test_one_bad_call_harms_no_other(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        names = [f"r{number:03}" for number in range(200)]
        await asyncio.gather(*(box.accept(accepted(name)) for name in names))
        wanted = [*names[:77], "unknown", *names[77:], names[5]]
        ended = await asyncio.gather(
            *(box.settle(name, GOOD, [owed("completion")]) for name in wanted), return_exceptions=True
        )
        assert [place for place, answer in enumerate(ended) if answer is not None] == [77, 201]
        assert (await box.counts())["owed"] == 200
        twice = await asyncio.gather(
            box.accept(accepted("new")), box.accept(accepted("r000", "id:other")), return_exceptions=True
        )
        assert twice[0] is None
        assert isinstance(twice[1], StoreError)

    play(path, steps)


def test_tries_and_giving_up(path: Path) -> None:
    async def first(box: Outbox) -> None:
        await box.accept(accepted("a"))
        await box.settle("a", GOOD, [owed("completion"), owed("grader")])
        box.tried("a", "completion", 3, 99.0, "500 \ud800")
        await box.abandoned("a", "grader", "gone for a day")
        given_up, tried = sorted(await box.owing(), key=lambda one: one.channel == "completion")
        assert (tried.tries, tried.next_at, tried.problem) == (3, 99.0, "500 ?")
        assert given_up.problem == "gone for a day"
        assert await box.counts() == {"accepted": 0, "held": 0, "owed": 1, "abandoned": 1}
        assert await box.sweep(time.time() + 1) == 0

    async def second(box: Outbox) -> None:
        tried, revived = await box.owing()
        assert (tried.tries, revived.tries) == (3, 0)
        assert revived.owed == owed("grader")
        assert abs(revived.first_at - time.time()) < 60
        assert (await box.counts())["abandoned"] == 0
        box.acknowledged("a", "grader")
        await box.written()
        box.tried("a", "grader", 9, 1.0, "late")
        box.acknowledged("a", "grader")
        await box.written()
        (left,) = await box.owing()
        assert left.channel == "completion"

    play(path, first)
    play(path, second)


def test_ids_are_any_text(path: Path) -> None:
    ids = ["", "../../etc/passwd", "a\0b", "\ud800", "ü" * 5000, "x' OR 1=1 --", "%", "a_"]

    async def steps(box: Outbox) -> None:
        for number, text in enumerate(ids):
            assert await box.accept(Accepted(f"a{number}", text, "d", (f"id:{text}",), b"", 0.0)) is None
        assert [one.accepted.rollout_id for one in await box.unfinished()] == ids
        assert [one.accepted.keys for one in await box.unfinished()] == [(f"id:{text}",) for text in ids]
        for number, text in enumerate(ids):
            known = await box.find(text)
            assert known is not None
            assert known.attempt_id == f"a{number}"
        assert [known.rollout_id for known in await box.by_prefix("%")] == ["%"]
        assert [known.rollout_id for known in await box.by_prefix("a")] == ["a\0b", "a_"]
        assert len(await box.by_prefix("")) == len(ids)

    play(path, steps)


def test_the_latest_attempt_of_an_id_is_found(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        for name in ("b", "a"):
            await box.accept(Accepted(name, "same", "d", (f"key:{name}",), b"", 0.0))
        known = await box.find("same")
        assert known is not None
        assert known.attempt_id == "a"

    play(path, steps)


def test_workers_see_their_own_work_and_everybodys_ids(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        other = Outbox.open(path, worker=1)
        for name, worker in (("a", 0), ("b", 1), ("c", 5)):
            await box.accept(accepted(name, worker=worker))
            await box.settle("c", GOOD, [owed("grader")]) if name == "c" else None
        assert [one.accepted.attempt_id for one in await other.unfinished()] == ["b"]
        assert len(await other.by_prefix("wire-")) == 2
        assert await other.owing() == []
        assert await other.find("wire-a") is not None
        assert await box.adopt(2) == 1
        assert [one.attempt_id for one in await other.owing()] == ["c"]
        assert await other.counts() == {"accepted": 1, "held": 0, "owed": 1, "abandoned": 0}
        await other.aclose()

    play(path, steps, worker=None)


def test_secrets_leave_the_files(path: Path) -> None:
    request = SECRET.encode() + b"." * 9000 + b'{"llm_api_key": "sk-abcdefghijkl"}' + b"," * 9000

    def traces() -> set[str]:
        kept = b"".join(file.read_bytes() for file in path.parent.iterdir())
        return {name for name in (SECRET, "sk-abcdefghijkl") if name.encode() in kept}

    async def steps(box: Outbox) -> None:
        await asyncio.gather(*(box.accept(accepted(f"a{number}", request=request)) for number in range(20)))
        assert traces() == {SECRET, "sk-abcdefghijkl"}
        for number in range(20):
            await box.settle(f"a{number}", GOOD, [owed("completion")])
        await box.sweep(0)
        assert traces() == {SECRET}
        for number in range(20):
            box.acknowledged(f"a{number}", "completion")
            await box.written()
        await box.sweep(0)
        assert traces() == set()
        assert all(file.stat().st_mode & 0o777 == 0o600 for file in path.parent.iterdir())

    play(path, steps)


def test_the_file_shrinks_again(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        body = b"x" * 4000

        async def one(number: int) -> None:
            await box.accept(accepted(f"{number:05}", request=body))
            await box.settle(f"{number:05}", GOOD, [owed("completion", body)])
            box.acknowledged(f"{number:05}", "completion")
            await box.written()

        for start in range(0, 6000, 300):
            await asyncio.gather(*(one(number) for number in range(start, start + 300)))
        assert size("rollouts.db") > 20 << 20
        assert await box.sweep(time.time() + 1) == 6000
        assert size("rollouts.db") < 10 << 20
        assert size("rollouts.db-wal") < 1 << 20

    def size(name: str) -> int:
        return path.with_name(name).stat().st_size

    play(path, steps)


def test_another_programs_file_is_left_alone(path: Path, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 1000)
    with pytest.raises(StoreError, match=r"notes\.txt: is not a database") as caught:
        Outbox.open(text)
    assert "[serve] state" in caught.value.hint
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StoreError, match=r"other\.db: is a database of another program"):
        Outbox.open(other)
    with pytest.raises(StoreError, match="cannot be opened: Is a directory"):
        Outbox.open(tmp_path)
    with pytest.raises(StoreError, match="cannot be opened"):
        Outbox.open(text / "state.db")


def test_a_newer_file_is_refused(path: Path) -> None:
    async def nothing(box: Outbox) -> None: ...

    play(path, nothing)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(
        StoreError, match=r"was written by a newer osmosis-run \(format 99; this one knows \d+\)"
    ) as caught:
        Outbox.open(path)
    assert "update osmosis-run" in caught.value.hint


@pytest.mark.parametrize("victim", ["rollouts.db", "rollouts.db-wal"])
def test_a_file_deleted_in_use_is_not_written_to_in_silence(path: Path, victim: str) -> None:
    async def steps(box: Outbox) -> None:
        await box.accept(accepted("a"))
        path.with_name(victim).unlink()
        for name in ("b", "c"):
            with pytest.raises(StoreError, match="was deleted or replaced while it was in use"):
                await box.accept(accepted(name))

    play(path, steps)


def test_a_damaged_file_says_so(path: Path) -> None:
    async def fill(box: Outbox) -> None:
        await asyncio.gather(*(box.accept(accepted(f"a{number}", request=b"x" * 3000)) for number in range(200)))

    play(path, fill)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreError, match=r"rollouts\.db: is damaged: .*malformed"):
        Outbox.open(path)


def test_a_closed_outbox_takes_nothing(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        waiting = asyncio.gather(*(box.accept(accepted(f"a{number}")) for number in range(20)))
        await asyncio.sleep(0)
        await box.aclose()
        assert await waiting == [None] * 20
        with pytest.raises(StoreError, match="the outbox is closed"):
            await box.accept(accepted("late"))
        with pytest.raises(StoreError, match="the outbox is closed"):
            await box.owing()

    play(path, steps)


def test_a_cancelled_call_harms_no_other(path: Path) -> None:
    async def steps(box: Outbox) -> None:
        first = asyncio.ensure_future(box.accept(accepted("a")))
        second = asyncio.ensure_future(box.accept(accepted("b")))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is None
        assert {known.attempt_id for known in await box.by_prefix("")} == {"a", "b"}  # what was asked for may be stored

    play(path, steps)


def test_a_verdict_that_gives_up_its_keys(tmp_path: Path) -> None:
    """The next start is a new rollout, and forgetting the old one leaves the new one its keys."""

    async def main() -> None:
        outbox = Outbox.open(tmp_path / "rollouts.db")
        for attempt in ("a", "b"):
            assert await outbox.accept(Accepted(attempt, "r", "d", ("id:r", "key:k"), b"{}", 1.0)) is None
            assert await outbox.holder(("key:k",)) == attempt
            if attempt == "a":
                await outbox.settle("a", Verdict("cancelled", "cancelled", None, ""), [], release=True)
                assert await outbox.holder(("id:r",)) is None
        assert await outbox.sweep(time.time() + 1) == 1
        assert await outbox.accept(Accepted("c", "r", "d", ("id:r",), b"{}", 1.0)) == "b"
        with pytest.raises(Contradiction):
            await outbox.settle("a", Verdict("cancelled", "cancelled", None, ""), [], release=True)
        await outbox.aclose()

    asyncio.run(main())
