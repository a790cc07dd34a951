"""The outbox's writes: each kind of task for many rollouts in one statement.

A statement hands the interpreter lock over and takes it back, which costs far more than its rows while the event loop
is busy. So a batch is a `VALUES` list padded with NULLs to a power of two: few texts to prepare, one step to run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Any, TypeAlias

from runner.store.errors import StoreError
from runner.store.outbox_records import CHANNELS

Values: TypeAlias = tuple[Any, ...]

CHUNK = 256
"""Rows of one statement at most."""

SWEPT_AT_ONCE = 500
"""Rollouts that one transaction drops at most, so that others get their turn."""


class Kind(IntEnum):
    """What a task does. In a batch, tasks of a lower kind are written first."""

    ACCEPT = 0
    HOLD = 1
    SETTLE = 2
    TRIED = 3
    ACKNOWLEDGED = 4
    ABANDONED = 5
    SWEEP = 6
    ADOPT = 7
    TIDY = 8
    CANCEL = 9
    WITHDRAW = 10
    NOTHING = 11


@dataclass(slots=True)
class Task:
    """One thing to write. `values` is a row for the kind's statement, `more` the rows that go with it (keys, owed).

    `heard` is told of its answer, or why it is not written. `release`: of a verdict, that the rollout gives up its
    keys. `note`: if it is not written, a callback is posted once more after a restart.
    """

    kind: Kind
    attempt_id: str
    values: Values
    more: Sequence[Values] = ()
    size: int = 0
    heard: Callable[[Any, StoreError | None], None] | None = None
    note: bool = False
    release: bool = False


class Contradiction(StoreError):
    """A rollout that does not allow what was asked: its verdict stands, or it is unknown."""


class Withdrawn(Contradiction):
    """Its controller has cancelled it: no other verdict than that is stored."""


class Unclear(Exception):
    """Some task of a batch did not find its rollout: play them one by one to see which."""


def digest(key: str) -> bytes:
    """What stands for a key in the file: short however long the key is, and the same for the same text only."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def write(connection: sqlite3.Connection, kind: Kind, tasks: Sequence[Task]) -> Sequence[Any]:
    """Write tasks of one kind inside a transaction; their answers. Raises `Unclear`, `Contradiction`, sqlite3.Error."""
    if kind is Kind.ACCEPT:
        return _accept(connection, tasks)
    if kind in (Kind.HOLD, Kind.SETTLE):
        _end(connection, kind, tasks)
    elif kind is Kind.CANCEL:
        _cancel(connection, tasks)
    elif kind is Kind.WITHDRAW:
        _withdraw(connection, tasks)
    elif kind is Kind.SWEEP:
        return [_sweep(connection, task.values[0]) for task in tasks]
    elif kind is Kind.ADOPT:
        return [connection.execute(_ADOPT, task.values).rowcount for task in tasks]
    elif kind is Kind.ACKNOWLEDGED:
        _run(connection, _TAKE, [row for task in tasks for row in task.more])
    elif kind is not Kind.NOTHING:
        _run(connection, _CALLBACKS[kind], [task.values for task in tasks])
    return [None] * len(tasks)


def _run(connection: sqlite3.Connection, statement: tuple[str, str], rows: Sequence[Values]) -> int:
    """Run a statement over `rows`, all of one width; how many rows of the file it changed."""
    changed = 0
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        count = 1 << (len(chunk) - 1).bit_length()
        width = len(chunk[0])
        values = [value for row in chunk for value in row]
        values += [None] * (width * (count - len(chunk)))
        changed += connection.execute(_text(statement, width, count), values).rowcount
    return changed


def _text(statement: tuple[str, str], width: int, count: int) -> str:
    known = _TEXTS.get((statement[0], count))
    if known is None:
        row = f"({','.join('?' * width)})"
        known = f"{statement[0]} (VALUES {','.join([row] * count)}) v {statement[1]}"
        _TEXTS[statement[0], count] = known
    return known


_TEXTS: dict[tuple[str, int], str] = {}

_NEW = (
    "INSERT INTO rollouts (phase, attempt_id, rollout_id, worker, dialect, accepted_at, keys, request)"
    " SELECT 0, v.* FROM",
    "WHERE v.column1 IS NOT NULL",
)
_NEW_KEYS = (
    "INSERT INTO keys (key, number) SELECT v.column1, r.number FROM",
    "CROSS JOIN rollouts r ON r.attempt_id = v.column2",
)
_OWE = (
    "INSERT OR IGNORE INTO owed (place, state, url, bearer, body, first_at, next_at)"
    " SELECT r.number * 2 + v.column2, 0, v.column3, v.column4, v.column5, v.column6, v.column6 FROM",
    "CROSS JOIN rollouts r ON r.attempt_id = v.column1 WHERE r.told & (1 << v.column2) = 0",
)
_TELL = (
    "UPDATE rollouts SET told = told | (1 << v.column2) FROM",
    "WHERE attempt_id = v.column1",
)
_NOT_CANCELLED = "NOT EXISTS (SELECT 1 FROM cancels WHERE cancels.number = rollouts.number)"
_ENDS = {
    Kind.HOLD: (
        "UPDATE rollouts SET phase = 1, record = v.column2 FROM",
        f"WHERE attempt_id = v.column1 AND phase = 0 AND {_NOT_CANCELLED}",
    ),
    Kind.SETTLE: (
        "UPDATE rollouts SET phase = 2, settled_at = v.column2, status = v.column3, stop_reason = v.column4,"
        " reward = v.column5, message = v.column6, record = NULL, request = NULL FROM",
        f"WHERE attempt_id = v.column1 AND phase < 2 AND (v.column3 = 'cancelled' OR {_NOT_CANCELLED})",
    ),
}
_THAT_ONE = "place = (SELECT number FROM rollouts WHERE attempt_id = v.column1) * 2 + v.column2"
_CALLBACKS = {
    Kind.TRIED: (
        "UPDATE owed SET tries = v.column3, next_at = v.column4, problem = v.column5 FROM",
        f"WHERE {_THAT_ONE} AND owed.state = 0",
    ),
    Kind.ABANDONED: (
        "UPDATE owed SET state = 2, problem = v.column3, next_at = v.column4 FROM",
        f"WHERE {_THAT_ONE} AND owed.state = 0",
    ),
}
_TAKE = (
    "DELETE FROM owed WHERE place IN (SELECT r.number * 2 + v.column2 FROM",
    "CROSS JOIN rollouts r ON r.attempt_id = v.column1)",
)
_TAKEN = (
    "SELECT k.key, r.attempt_id FROM",
    "CROSS JOIN keys k ON k.key = v.column1 JOIN rollouts r ON r.number = k.number",
)
_LOSE_KEYS = ("DELETE FROM keys WHERE key IN (SELECT v.column1 FROM", ")")
_LOSE_OWED = (
    "DELETE FROM owed WHERE place IN"
    " (SELECT value * 2 FROM json_each(?1) UNION ALL SELECT value * 2 + 1 FROM json_each(?1))"
)
_ADOPT = "UPDATE rollouts SET worker = worker % ?1 WHERE worker >= ?1"
_SWEEPABLE = (
    "SELECT json_group_array(number) FROM (SELECT number FROM rollouts WHERE phase = 2 AND settled_at < ?1"
    " AND NOT EXISTS (SELECT 1 FROM owed WHERE owed.place BETWEEN number * 2 AND number * 2 + 1"
    " AND (owed.state = 0 OR owed.next_at >= ?1)) LIMIT ?2)"
)
_CANCEL = (
    "INSERT OR IGNORE INTO cancels (number) SELECT number FROM rollouts"
    " WHERE attempt_id IN (SELECT value FROM json_each(?)) AND phase < 2"
)
_WITHDRAW = (
    "UPDATE rollouts SET phase = 2, settled_at = ?2, status = 'cancelled', stop_reason = 'cancelled',"
    " message = 'cancelled', request = NULL WHERE attempt_id IN (SELECT value FROM json_each(?1)) AND phase = 0"
)
_CANCELLED = (
    "DELETE FROM cancels WHERE number IN"
    " (SELECT number FROM rollouts WHERE phase = 2 AND attempt_id IN (SELECT value FROM json_each(?)))"
)


def _accept(connection: sqlite3.Connection, tasks: Sequence[Task]) -> list[str | None]:
    taken = _holders(connection, [(row[0],) for task in tasks for row in task.more])
    answers: list[str | None] = []
    new: list[Task] = []
    for task in tasks:
        holder = next((taken[row[0]] for row in task.more if row[0] in taken), None)
        answers.append(holder)
        if holder is None:
            new.append(task)
            for row in task.more:
                taken[row[0]] = task.attempt_id
    _run(connection, _NEW, [task.values for task in new])
    _run(connection, _NEW_KEYS, [row for task in new for row in task.more])
    return answers


def _holders(connection: sqlite3.Connection, keys: Sequence[Values]) -> dict[bytes, str]:
    """Which attempt holds each of these keys already."""
    found: dict[bytes, str] = {}
    for start in range(0, len(keys), CHUNK):
        chunk = keys[start : start + CHUNK]
        count = 1 << (len(chunk) - 1).bit_length()
        values = [row[0] for row in chunk] + [None] * (count - len(chunk))
        found.update(connection.execute(_text(_TAKEN, 1, count), values).fetchall())
    return found


def _end(connection: sqlite3.Connection, kind: Kind, tasks: Sequence[Task]) -> None:
    if _run(connection, _ENDS[kind], [task.values for task in tasks]) < len(tasks):
        if len(tasks) > 1:
            raise Unclear
        raise _why_not(connection, tasks[0])
    owed = [row for task in tasks for row in task.more]
    if owed:
        _run(connection, _OWE, owed)
    if kind is Kind.HOLD:
        _tell(connection, owed)
    else:
        _forget_cancels(connection, [task.attempt_id for task in tasks if task.values[2] == "cancelled"])
        _release(connection, [task.attempt_id for task in tasks if task.release])


def _tell(connection: sqlite3.Connection, owed: Sequence[Values]) -> None:
    """What is owed from now on is not owed again with the verdict, even if it is delivered by then."""
    for channel in range(len(CHANNELS)):
        told = [row[:2] for row in owed if row[1] == channel]
        if told:
            _run(connection, _TELL, told)


def _why_not(connection: sqlite3.Connection, task: Task) -> Contradiction:
    attempt_id = task.attempt_id
    found = connection.execute("SELECT phase FROM rollouts WHERE attempt_id = ?", (attempt_id,)).fetchone()
    if found is None:
        return Contradiction(f"attempt {attempt_id}: was never accepted")
    if found[0] == 0 or (found[0] == 1 and task.kind is Kind.SETTLE):
        return Withdrawn(f"attempt {attempt_id}: its controller has cancelled it")
    return Contradiction(
        f"attempt {attempt_id}: " + ("its agent ended before" if found[0] == 1 else "its verdict stands")
    )


def _cancel(connection: sqlite3.Connection, tasks: Sequence[Task]) -> None:
    for task in tasks:
        connection.execute(_CANCEL, task.values)


def _withdraw(connection: sqlite3.Connection, tasks: Sequence[Task]) -> None:
    for task in tasks:
        connection.execute(_WITHDRAW, task.values)
        attempt_ids = json.loads(task.values[0])
        _forget_cancels(connection, attempt_ids)
        _release(connection, attempt_ids)


def _forget_cancels(connection: sqlite3.Connection, attempt_ids: Sequence[str]) -> None:
    if attempt_ids:
        connection.execute(_CANCELLED, (json.dumps(attempt_ids),))


def _release(connection: sqlite3.Connection, attempt_ids: Sequence[str]) -> None:
    if not attempt_ids:
        return
    wanted = json.dumps(attempt_ids)
    which = "phase = 2 AND attempt_id IN (SELECT value FROM json_each(?))"
    _lose_keys(connection, which, wanted)
    connection.execute(f"UPDATE rollouts SET keys = '[]' WHERE {which}", (wanted,))


def _sweep(connection: sqlite3.Connection, before: float) -> int:
    numbers = connection.execute(_SWEEPABLE, (before, SWEPT_AT_ONCE)).fetchone()[0]
    return _drop(connection, numbers)


def _drop(connection: sqlite3.Connection, numbers: str) -> int:
    """Delete rollouts with all that is theirs; `numbers` is a JSON array."""
    if numbers == "[]":
        return 0
    which = "number IN (SELECT value FROM json_each(?))"
    _lose_keys(connection, which, numbers)
    connection.execute(_LOSE_OWED, (numbers,))
    connection.execute(f"DELETE FROM cancels WHERE {which}", (numbers,))
    return connection.execute(f"DELETE FROM rollouts WHERE {which}", (numbers,)).rowcount


def _lose_keys(connection: sqlite3.Connection, which: str, argument: str) -> None:
    found = connection.execute(
        f"SELECT json_group_array(json(keys)) FROM rollouts WHERE {which}", (argument,)
    ).fetchone()
    keys = [(digest(key),) for held in json.loads(found[0]) for key in held]
    if keys:
        _run(connection, _LOSE_KEYS, keys)
