"""The outbox's reads: rows to records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from runner.store.outbox_records import CHANNELS, Accepted, Delivery, Known, Owed, Phase, Unfinished, Verdict

_PHASES: tuple[Phase, ...] = ("accepted", "held", "settled")

_KNOWN = """
    SELECT attempt_id, rollout_id, worker, phase, status, stop_reason, reward, message,
        (SELECT count(*) FROM owed WHERE owed.place BETWEEN rollouts.number * 2 AND rollouts.number * 2 + 1),
        EXISTS (SELECT 1 FROM cancels WHERE cancels.number = rollouts.number)
    FROM rollouts
"""
_UNFINISHED = """
    SELECT attempt_id, rollout_id, dialect, keys, request, accepted_at, worker, record,
        EXISTS (SELECT 1 FROM cancels WHERE cancels.number = rollouts.number)
    FROM rollouts WHERE phase < 2 AND (?1 IS NULL OR worker = ?1) ORDER BY number
"""
_TO_CANCEL = """
    SELECT r.attempt_id FROM cancels c CROSS JOIN rollouts r ON r.number = c.number
    WHERE r.phase < 2 AND (?1 IS NULL OR r.worker = ?1)
"""
_OWING = """
    SELECT r.attempt_id, r.rollout_id, o.place, o.url, o.body, o.bearer, o.tries, o.first_at, o.next_at, o.problem
    FROM owed o CROSS JOIN rollouts r ON r.number = o.place / 2
    WHERE ?1 IS NULL OR r.worker = ?1 ORDER BY o.place
"""
_COUNTS = """
    SELECT
        (SELECT count(*) FROM rollouts WHERE phase < 2 AND (?1 IS NULL OR worker = ?1)),
        (SELECT count(*) FROM rollouts WHERE phase = 1 AND (?1 IS NULL OR worker = ?1))
"""
_OWED_OF = """
    SELECT r.attempt_id, o.place, o.url, o.body, o.bearer
    FROM json_each(?) w CROSS JOIN rollouts r ON r.attempt_id = json_extract(w.value, '$[0]')
    JOIN owed o ON o.place = r.number * 2 + (json_extract(w.value, '$[1]') = 'grader')
"""
_OWED_COUNTS = """
    SELECT total(o.state = 0), total(o.state = 2) FROM owed o
    WHERE ?1 IS NULL OR (SELECT worker FROM rollouts r WHERE r.number = o.place / 2) = ?1
"""


def unfinished(connection: sqlite3.Connection, worker: int | None) -> list[Unfinished]:
    """Every rollout without a verdict, in order of acceptance."""
    return [_unfinished(*row) for row in connection.execute(_UNFINISHED, (worker,))]


def to_cancel(connection: sqlite3.Connection, worker: int | None) -> list[str]:
    """The attempts that shall be cancelled and have no verdict yet."""
    return [str(row[0]) for row in connection.execute(_TO_CANCEL, (worker,))]


def owing(connection: sqlite3.Connection, worker: int | None) -> list[Delivery]:
    """Every callback nobody has acknowledged, oldest first."""
    return [_delivery(*row) for row in connection.execute(_OWING, (worker,))]


def owing_briefly(connection: sqlite3.Connection, worker: int | None) -> list[Delivery]:
    """The same without the bodies, which may be more than memory holds."""
    return [_delivery(*row) for row in connection.execute(_OWING.replace("o.body", "x''"), (worker,))]


def owed_of(connection: sqlite3.Connection, wanted: Sequence[tuple[str, str]]) -> list[Owed | None]:
    """What is owed by each (attempt_id, channel), or None."""
    rows = connection.execute(_OWED_OF, (json.dumps(wanted),))
    made = ((attempt_id, Owed(CHANNELS[place % 2], *owed)) for attempt_id, place, *owed in rows)
    found = {(attempt_id, owed.channel): owed for attempt_id, owed in made}
    return [found.get(key) for key in wanted]


def find(connection: sqlite3.Connection, rollout_id: str) -> Known | None:
    """The latest attempt with that id."""
    row = connection.execute(
        _KNOWN + "WHERE rollout_id = ? ORDER BY number DESC LIMIT 1", (blob(rollout_id),)
    ).fetchone()
    return None if row is None else _known(*row)


def attempt(connection: sqlite3.Connection, attempt_id: str) -> Known | None:
    """That attempt."""
    row = connection.execute(_KNOWN + "WHERE attempt_id = ?", (attempt_id,)).fetchone()
    return None if row is None else _known(*row)


def holder(connection: sqlite3.Connection, keys: Sequence[bytes]) -> str | None:
    """The attempt that holds one of these digests of keys."""
    for key in keys:
        row = connection.execute(
            "SELECT r.attempt_id FROM keys k JOIN rollouts r ON r.number = k.number WHERE k.key = ?", (key,)
        ).fetchone()
        if row is not None:
            return str(row[0])
    return None


def by_prefix(connection: sqlite3.Connection, prefix: str) -> list[Known]:
    """The unsettled attempts whose id begins so, in order of acceptance."""
    wanted = blob(prefix)
    rows = connection.execute(_KNOWN + "WHERE phase < 2 ORDER BY number")
    return [_known(*row) for row in rows if row[1].startswith(wanted)]


def counts(connection: sqlite3.Connection, worker: int | None) -> dict[str, int]:
    """How many rollouts are accepted and held, how many callbacks owed and abandoned."""
    open_, held = connection.execute(_COUNTS, (worker,)).fetchone()
    owed, abandoned = connection.execute(_OWED_COUNTS, (worker,)).fetchone()
    return {"accepted": open_ - held, "held": held, "owed": int(owed), "abandoned": int(abandoned)}


def blob(text: str) -> bytes:
    """A controller's text as it is stored: any text can be, and comes back the same."""
    return text.encode("utf-8", "surrogatepass")


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def _unfinished(
    attempt_id: str, rollout_id: bytes, dialect: str, keys: str, request: bytes, at: float, worker: int, *rest: Any
) -> Unfinished:
    left, cancelled = rest
    accepted = Accepted(attempt_id, _text(rollout_id), dialect, tuple(json.loads(keys)), request, at, worker)
    return Unfinished(accepted, left, bool(cancelled))


def _delivery(
    attempt_id: str, rollout_id: bytes, place: int, url: str, body: bytes, bearer: str | None, *rest: Any
) -> Delivery:
    owed = Owed(CHANNELS[place % 2], url, body, bearer)
    return Delivery(attempt_id, _text(rollout_id), owed.channel, place, owed, *rest)


def _known(attempt_id: str, rollout_id: bytes, worker: int, phase: int, *rest: Any) -> Known:
    status, stop_reason, reward, message, undelivered, cancelled = rest
    verdict = None if status is None else Verdict(status, stop_reason, reward, message)
    known = attempt_id, _text(rollout_id), worker, _PHASES[phase], verdict, undelivered
    return Known(*known, cancelled=verdict is None and bool(cancelled))
