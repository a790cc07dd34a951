"""`Outbox`: what was accepted, how it ended, and which callbacks are owed for it.

A call returns when its facts are on disk. One thread writes, and commits what waits in one transaction, so that
thousands of calls a second cost a few syncs; several processes may have the same file open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.store.outbox_records import Accepted, Delivery, Known, Owed, Unfinished, Verdict

__all__ = ["Accepted", "Delivery", "Known", "Outbox", "Owed", "Unfinished", "Verdict"]


class Outbox:
    """Open with `open`, use from one event loop, and close."""

    @classmethod
    def open(cls, path: Path, *, worker: int | None = None) -> Outbox:
        raise NotImplementedError

    async def accept(self, rollout: Accepted) -> str | None: raise NotImplementedError
    async def hold(self, attempt_id: str, left: bytes, owed: Sequence[Owed]) -> None: raise NotImplementedError
    async def settle(self, attempt_id: str, verdict: Verdict, outcome: bytes | None, owed: Sequence[Owed]) -> None: raise NotImplementedError
    async def acknowledged(self, attempt_id: str, channel: str, status: int) -> None: raise NotImplementedError
    def tried(self, attempt_id: str, channel: str, tries: int, next_at: float, problem: str) -> None: raise NotImplementedError
    async def abandoned(self, attempt_id: str, channel: str, problem: str) -> None: raise NotImplementedError
    async def erase(self, attempt_id: str) -> None: raise NotImplementedError
    async def unfinished(self) -> list[Unfinished]: raise NotImplementedError
    async def owing(self) -> list[Delivery]: raise NotImplementedError
    async def find(self, rollout_id: str) -> Known | None: raise NotImplementedError
    async def by_prefix(self, prefix: str) -> list[Known]: raise NotImplementedError
    async def sweep(self, before: float) -> int: raise NotImplementedError
    async def counts(self) -> Mapping[str, int]: raise NotImplementedError
    async def aclose(self) -> None: raise NotImplementedError
    async def attempt(self, attempt_id: str) -> Known | None: raise NotImplementedError
    async def holder(self, keys: Sequence[str]) -> str | None: raise NotImplementedError
