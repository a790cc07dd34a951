"""The outbox's file: its tables, how it is opened, and what SQLite's errors mean to whoever runs the server.

`secure_delete` overwrites what is erased, so a bearer is gone from the file once it is delivered; the write-ahead log
forgets it when it is next emptied.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from runner.store.errors import NoRoom, StoreError, Unusable, not_written

APPLICATION = 0x4F534D52
"""Marks the file as ours (`PRAGMA application_id`)."""

BUSY_SECONDS = 30.0
"""How long another process may keep the file before a write is given up."""

_LOG_BYTES = 16 << 20
_CHECKPOINT_PAGES = 4000
_AGAIN = "the server works on as soon as that is mended; what was accepted before is safe"
_OTHER = "set `[serve] state` to another file"

MIGRATIONS = (
    # 1: `rollout_id` is a blob because a controller's id may be any text, lone surrogates included; `keys` are digests,
    # so that a long key costs no more than a short one. Blobs come last: reading what is before does not touch them.
    """
    CREATE TABLE rollouts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        attempt_id TEXT NOT NULL UNIQUE,
        rollout_id BLOB NOT NULL,
        phase INTEGER NOT NULL,
        worker INTEGER NOT NULL,
        dialect TEXT NOT NULL,
        accepted_at REAL NOT NULL,
        settled_at REAL,
        status TEXT,
        stop_reason TEXT,
        reward REAL,
        message TEXT,
        keys TEXT NOT NULL,
        request BLOB,
        record BLOB
    );
    CREATE INDEX rollouts_by_id ON rollouts (rollout_id);
    CREATE INDEX rollouts_open ON rollouts (worker) WHERE phase < 2;
    CREATE INDEX rollouts_settled ON rollouts (settled_at) WHERE phase = 2;
    CREATE TABLE keys (key BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE owed (
        place INTEGER PRIMARY KEY,
        number INTEGER NOT NULL,
        channel TEXT NOT NULL,
        state INTEGER NOT NULL,
        answer INTEGER,
        tries INTEGER NOT NULL DEFAULT 0,
        first_at REAL NOT NULL,
        next_at REAL NOT NULL,
        problem TEXT NOT NULL DEFAULT '',
        url TEXT NOT NULL,
        bearer TEXT,
        body BLOB,
        UNIQUE (number, channel)
    );
    CREATE INDEX owed_open ON owed (number) WHERE state <> 1;
    """,
    # 2: rollouts that shall be cancelled and have no verdict yet. Whoever holds one reads it here, after a restart too.
    "CREATE TABLE cancels (number INTEGER PRIMARY KEY)",
    # 3: `owed` holds what is owed, and nothing that was delivered, in one tree: its place is made of the rollout's
    # number and the channel's. `told` remembers, a bit for each channel, what a rollout owed before its verdict.
    """
    ALTER TABLE rollouts ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
    UPDATE rollouts SET told =
        (SELECT coalesce(sum(1 << (channel = 'grader')), 0) FROM owed WHERE owed.number = rollouts.number)
        WHERE phase = 1;
    ALTER TABLE owed RENAME TO owed_before;
    CREATE TABLE owed (
        place INTEGER PRIMARY KEY,
        state INTEGER NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        first_at REAL NOT NULL,
        next_at REAL NOT NULL,
        problem TEXT NOT NULL DEFAULT '',
        url TEXT NOT NULL,
        bearer TEXT,
        body BLOB
    );
    INSERT INTO owed
        SELECT number * 2 + (channel = 'grader'), state, tries, first_at, next_at, problem, url, bearer, body
        FROM owed_before WHERE state <> 1;
    DROP TABLE owed_before
    """,
)


def connect(path: Path) -> sqlite3.Connection:
    """Open the file for writing, made (0600, with its folder) or brought up to date if need be. Raises `StoreError`."""
    if sqlite3.sqlite_version_info < (3, 35):
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old", "use a Python built with SQLite 3.35 or newer")
    _make_private(path)
    connection = _open(path, timeout=0.01)
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            _prepare(connection, path)
            return connection
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() > deadline:
                connection.close()
                raise explain(path, error) from None
            time.sleep(0.02)
        except BaseException:
            connection.close()
            raise


def connect_reader(path: Path) -> sqlite3.Connection:
    """A second connection, which only reads. Raises `StoreError`."""
    connection = _open(path, timeout=BUSY_SECONDS)
    connection.execute("PRAGMA query_only = ON")
    return connection


def begin(connection: sqlite3.Connection) -> None:
    """Begin to write, after whichever process is writing now. Raises sqlite3.Error."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.0005)  # SQLite waits for 10 ms by itself, in steps that grow


def is_busy(error: sqlite3.Error) -> bool:
    """True if another process had the file."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def explain(path: Path, error: sqlite3.Error) -> StoreError:
    """What to raise for an error of SQLite."""
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return NoRoom(f"{path}: cannot be written: the disk is full", f"make room: {_AGAIN}")
    if code == sqlite3.SQLITE_IOERR:
        return _failed_io(path, error)
    if is_busy(error):
        return StoreError(f"{path}: another process keeps it locked", f"end that process, or {_OTHER}")
    if code == sqlite3.SQLITE_NOTADB:
        return Unusable(f"{path}: is not a database", _OTHER)
    if code == sqlite3.SQLITE_CORRUPT:
        return Unusable(f"{path}: is damaged: {error}", f"move it away or {_OTHER}; its rollouts are lost")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(f"{path}: cannot be written: {error}", f"make the file and its folder writable, or {_OTHER}")
    return StoreError(f"{path}: {error}")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _failed_io(path: Path, error: sqlite3.Error) -> StoreError:
    """SQLite does not say why a write failed: try one in the same folder, which does."""
    import resource

    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        reason = "the file may not grow any more (see `ulimit -f`)"
        return NoRoom(f"{path}: cannot be written: {reason}", f"let it grow: {_AGAIN}")
    trial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        trial.write_bytes(bytes(1 << 16))
    except OSError as reason_of_it:
        failure = not_written(path, reason_of_it)
        return type(failure)(str(failure), f"make room: {_AGAIN}" if isinstance(failure, NoRoom) else _AGAIN)
    finally:
        trial.unlink(missing_ok=True)
    return StoreError(f"{path}: cannot be written: {error}", f"look at the disk: {_AGAIN}")


def _make_private(path: Path) -> None:
    """Make the file before SQLite does: its mode is then 0600 from the start, and so is that of its companions."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise not_written(path, error, _OTHER, "opened") from None


def _open(path: Path, timeout: float) -> sqlite3.Connection:
    try:
        return sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False, cached_statements=256
        )
    except sqlite3.Error as error:
        raise explain(path, error) from None


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    outdated = _outdated(connection, path)  # if it is not, nothing is written: a full disk still opens
    if outdated:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded only while the file is empty
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(f"{path}: its disk does not do write-ahead logging", "set `[serve] state` to a local disk")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")  # what undoes half a statement: else a file for each commit
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    if outdated:
        _migrate(connection, path)


def _outdated(connection: sqlite3.Connection, path: Path) -> bool:
    connection.execute("BEGIN")  # all is read of one moment: another process may be making the file just now
    try:
        _refuse_strangers(connection, path)
        return _version(connection) < len(MIGRATIONS)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    begin(connection)
    try:
        _refuse_strangers(connection, path)
        version = _version(connection)
        for migration in MIGRATIONS[version:]:
            for statement in migration.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _refuse_strangers(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = _version(connection)
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if application != APPLICATION and not (empty and application == version == 0):
        raise StoreError(f"{path}: is a database of another program", _OTHER)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path}: was written by a newer osmosis-run (format {version}; this one knows {len(MIGRATIONS)})",
            f"update osmosis-run, or {_OTHER}",
        )
