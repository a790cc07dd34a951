"""A file of an earlier version is brought up to date: what it owed is owed, what was delivered is not owed again."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from runner.store.outbox import Outbox, Owed, Verdict
from runner.store.outbox_tables import APPLICATION, MIGRATIONS

_ROLLOUT = "INSERT INTO rollouts (attempt_id, rollout_id, phase, worker, dialect, accepted_at, keys, request)"
_OWED = "INSERT INTO owed (number, channel, state, first_at, next_at, url, bearer, body)"


def test_callbacks_of_the_first_version(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    connection = sqlite3.connect(path)
    connection.executescript(MIGRATIONS[0])
    for name, phase in (("waits", 0), ("told", 1), ("telling", 1), ("settled", 2)):
        connection.execute(f"{_ROLLOUT} VALUES (?, ?, ?, 0, 'd', 1.0, '[]', x'')", (name, name.encode(), phase))
    rows = ((2, "completion", 1), (3, "completion", 0), (4, "completion", 1), (4, "grader", 2))
    for number, channel, state in rows:
        connection.execute(f"{_OWED} VALUES (?, ?, ?, 1.0, 1.0, 'u', 'key', ?)", (number, channel, state, b"old"))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()

    async def main() -> None:
        box = Outbox.open(path)

        async def owing() -> list[tuple[str, str, bytes]]:
            return [(one.attempt_id, one.channel, one.owed.body) for one in await box.owing()]

        assert await owing() == [("telling", "completion", b"old"), ("settled", "grader", b"old")]
        both = [Owed("completion", "u", b"new"), Owed("grader", "u", b"new")]
        for name in ("told", "telling"):
            await box.settle(name, Verdict("success", "s", 1.0, ""), both)
        assert await owing() == [
            ("told", "grader", b"new"),
            ("telling", "completion", b"old"),
            ("telling", "grader", b"new"),
            ("settled", "grader", b"old"),
        ]
        await box.aclose()

    asyncio.run(main())


def test_each_commit_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        box, heard = Outbox.open(tmp_path / "rollouts.db"), list[float]()
        box.on_commit(heard.append)
        await box.adopt(1)
        assert [0 < seconds < 5 for seconds in heard] == [True]
        await box.aclose()

    asyncio.run(main())
