"""`Archiving`: when the archive is written: at a rollout's verdict, and again when an acknowledgement brings a report.

Both happen beside the callbacks, never before them. A rollout's are written one after the other: the later one stands.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.records.completion import ToolSpec
from runner.records.rollout import Outcome
from runner.serve.archive.archive import Archive, Report, report_of
from runner.serve.delivery.posting import Posted
from runner.serve.played import Played
from runner.serve.start import Start

_REMEMBERED = 2000
"""Ended rollouts whose callbacks are still out. The report of an older one is not merged any more: outcomes are large,
and a controller may be away for long."""
_AT_ONCE = 4
"""Rollouts written at once: a slow disk must not take all threads."""


@dataclass(slots=True)
class _Ended:
    start: Start
    outcome: Outcome
    attempt_id: str
    name: str
    reports: dict[str, Report] = field(default_factory=dict)
    writing: asyncio.Task[None] | None = None
    again: bool = False


class Archiving:
    """Feeds an `Archive`. Its methods return at once; `aclose` waits for what is being written."""

    def __init__(self, archive: Archive, tools: Sequence[ToolSpec]) -> None:
        self._archive = archive
        self._tools = tools
        self._ended: OrderedDict[str, _Ended] = OrderedDict()
        # What came with the acknowledgement of a completion that went out while graders were still thinking.
        self._early: OrderedDict[str, bytes] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)

    def artifacts(self, label: str) -> Path:
        """Where the code of a rollout may leave files."""
        return self._archive.artifacts(label)

    def ended(self, played: Played, outcome: Outcome) -> None:
        """A verdict is stored: write it down."""
        # It is filed under its label, which is another one's in no case; what it is called to its controller is a fact.
        start = replace(played.start, rollout_id=played.label)
        ended = self._ended[played.attempt_id] = _Ended(start, outcome, played.attempt_id, played.name)
        if outcome.status == "cancelled" or len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=outcome.status == "cancelled")
        if (report := report_of(self._early.pop(played.attempt_id, b""))) is not None:
            ended.reports["completion"] = report
        self._write_soon(ended)

    def posted(self, posted: Posted) -> None:
        """A callback was posted: if its acknowledgement tells of the model's calls, that belongs to the trajectory."""
        ended = self._ended.get(posted.attempt_id)
        if ended is None and posted.report and posted.channel == "completion":
            self._early[posted.attempt_id] = posted.report
            if len(self._early) > _REMEMBERED:
                self._early.popitem(last=False)
        report = report_of(posted.report) if ended is not None and posted.report else None
        if ended is not None and report is not None:
            ended.reports[posted.channel] = report
            self._write_soon(ended)
        if ended is not None and posted.result != "retry" and posted.channel == _last_channel(ended.start):
            del self._ended[posted.attempt_id]

    async def aclose(self) -> None:
        """Wait until all is written."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _write_soon(self, ended: _Ended) -> None:
        if ended.writing is not None:
            ended.again = True
            return
        ended.writing = asyncio.get_running_loop().create_task(self._write(ended))
        self._tasks.add(ended.writing)
        ended.writing.add_done_callback(self._tasks.discard)

    async def _write(self, ended: _Ended) -> None:
        try:
            async with self._room:
                again = True
                while again:
                    ended.again = False
                    # The completion's report comes first: a later one replaces it as a whole.
                    reports = [ended.reports[name] for name in ("completion", "grader") if name in ended.reports]
                    facts = {"attempt_id": ended.attempt_id, "rollout_id": ended.name}
                    await self._archive.write(ended.start, ended.outcome, self._tools, reports, facts)
                    again = ended.again
        finally:
            ended.writing = None


def _last_channel(start: Start) -> str:
    return "completion" if start.grader_url is None else "grader"
