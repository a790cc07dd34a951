"""`Playing`: what one command does of a run: rollouts are played or graded again, written down, and watched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from runner.batch.guards import Breaker, Limits, Spending
from runner.batch.kept import Kept
from runner.batch.log import RunLog
from runner.batch.options import RunOptions
from runner.batch.past_run import PastRun, Record, shown
from runner.batch.plan import Chooser, Decision, Digests, RunPlan
from runner.batch.standing import Standing, Watcher
from runner.batch.write import line_of, outcome_of, regraded, ungradable, unplayable
from runner.datasets.dataset import DatasetError, Row
from runner.records.event import Listener, ignore
from runner.records.file_name import segment
from runner.records.rollout import Outcome
from runner.runtime.cassettes import open_on_cassette
from runner.runtime.grading import grade_outcome
from runner.runtime.pool import Pool
from runner.runtime.rollout import run_rollout
from runner.store.journal import Journal
from runner.store.journal_reading import at
from runner.store.record import encode
from runner.telemetry.event_log import EventLog

if TYPE_CHECKING:
    from runner.build.live import Live
    from runner.build.plan import Plan

_RETRIED = ("model", "tool", "sandbox")


@dataclass(frozen=True, slots=True)
class Item:
    """One row and attempt to play or to grade again."""

    row: Row
    attempt: int
    decision: Decision


class Playing:
    """What one command does of a run."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        planned: tuple[RunPlan, Chooser],
        past: PastRun,
        watcher: Watcher,
        log: RunLog,
    ) -> None:
        run_plan, chooser = planned
        section = plan.config.eval
        limits = Limits(section.budget.cost, section.budget.tokens, section.budget.time, section.breaker)
        self._plan = plan
        self._options = options
        self._past = past
        self._folder = past.folder
        self._run_plan = run_plan
        self._chooser = chooser
        self._watcher = watcher
        self._log = log
        self._limits = limits
        self._digests = Digests.of(plan.facts)
        self._pool = Pool(section.concurrency)
        self._spending = Spending(limits, run_plan.spent_cost, run_plan.spent_tokens)
        self._breaker = Breaker(limits.breaker)
        self._standing = Standing(run_plan, plan.config.reward.range)
        self._standing.running = lambda: self._pool.running
        self._kept = Kept(plan.facts, past.manifest, plan.config.graders)
        self._events = None if options.log is None else EventLog(options.log)
        self._listen: Listener = self._events or ignore
        self._journal: Journal | None = None
        self._left = run_plan.to_run + run_plan.counts["regrade"]
        self.stopped = ""
        self.interrupted = False

    async def play(self) -> None:
        """Play everything that is owed."""
        self._log.say(f"start: {self._run_plan.text()}")
        self._watcher.told(f"{shown(self._folder.path)}  {self._run_plan.text()}")
        self._watcher.began(self._standing)
        try:
            if self._run_plan.to_run or self._run_plan.counts["regrade"]:
                await self._play_all()
            else:
                for _ in self._work():
                    pass
        finally:
            if self._left <= 0:
                self.stopped = ""  # a stop that came when nothing was left to do is no news
            if self._events is not None:
                self._events.close()
            self._watcher.ended(self._standing)
            self._log.say(f"end: {self.stopped or 'nothing is owed'}")

    async def _play_all(self) -> None:
        timer = None
        if self._limits.time is not None:
            text = f"the time budget of {self._limits.time:g} s is used up"
            timer = asyncio.get_running_loop().call_later(self._limits.time, self.stop, text)
        try:
            async with Journal.open(self._folder.journal_path) as journal:
                self._journal = journal
                async with self._open() as live:
                    live.ask = self._options.ask
                    for notice in live.notices:
                        self._watcher.told(notice)
                        self._log.say(notice)
                    await self._pool.run(self._work(), partial(self._play, live))
        finally:
            if timer is not None:
                timer.cancel()

    def _open(self) -> AbstractAsyncContextManager[Live]:
        options, config = self._options, self._plan.config
        path = options.cassette or config.folder / "cassettes" / f"{segment(self._plan.name)}.jsonl"
        return open_on_cassette(self._plan, options.tools, path, record=options.record)

    def stop(self, why: str) -> None:
        """Start nothing new; let what runs end."""
        if not self.stopped:
            self.stopped = why
            self._watcher.told(f"stopping: {why}")
            self._log.say(f"stopping: {why}")
        self._pool.drain()

    def interrupt(self) -> None:
        """Start nothing new, and cancel what still runs after the grace."""
        self.interrupted = True
        running = self._pool.running
        self.stop(f"interrupted, {running} running" if running else "interrupted")
        asyncio.get_running_loop().call_later(self._options.grace, self._pool.cancel, "cancelled")

    def _work(self) -> Iterator[Item]:
        """What is owed, a row's attempts together, read from the dataset as places come free."""
        for row in self._plan.require_dataset().rows():
            for attempt in range(self._run_plan.attempts):
                decision = self._chooser.decide(row, attempt)
                past = decision.past
                if decision.choice == "reuse" and past is not None:
                    self._standing.reuse(row.id, past.status, past.reward)
                    continue
                if decision.choice != "regrade" and (why := self._spending.refuses(self._pool.running)):
                    self.stop(why)
                    return
                if decision.choice != "regrade":
                    self._breaker.begins(row.id, attempt)
                yield Item(row, attempt, decision)

    async def _play(self, live: Live, item: Item) -> None:
        if item.decision.choice == "regrade":
            await self._grade_again(live, item)
            return
        for attempt in range(self._plan.config.eval.retries + 1):
            outcome = await self._one(live, item)
            last = attempt == self._plan.config.eval.retries or not _worth_again(outcome) or bool(self.stopped)
            await self._keep(outcome, item.row, counted=last)
            if last:
                return

    async def _one(self, live: Live, item: Item) -> Outcome:
        try:
            request = self._plan.request(item.row, item.attempt)
        except DatasetError as error:
            return unplayable(item.row, item.attempt, self._plan.rollout_id(item.row, item.attempt), str(error))
        return await run_rollout(live, request, self._listen)

    async def _grade_again(self, live: Live, item: Item) -> None:
        assert item.decision.past is not None
        record = at(self._folder.journal_path, item.decision.past.place)
        try:
            label = self._plan.request(item.row, item.attempt).label
        except DatasetError as error:
            outcome = ungradable(outcome_of(record, item.row.data), str(error))
        else:
            keep = self._kept.since(record["digests"]["grading"])
            outcome = await grade_outcome(live, outcome_of(record, item.row.data, label), keep)
        await self._keep(outcome, item.row, before=record)

    async def _keep(self, outcome: Outcome, row: Row, *, counted: bool = True, before: Record | None = None) -> None:
        """On disk first; only then it counts."""
        assert self._journal is not None
        record = line_of(outcome, self._digests.record(row.digest), row, self._plan.config.eval.group_by)
        if before is not None:
            record["regraded"] = regraded(outcome, before)
        line = encode(record)
        place = await self._journal.append(line)
        self._log.outcome(outcome)
        if before is None:
            self._spending.add(outcome)
        if not counted:
            return
        self._left -= outcome.status != "cancelled"
        self._past.follow(place, line, record)
        self._standing.add(outcome)
        self._watcher.moved(self._standing)
        if why := self._breaker.add(outcome):
            self.stop(why)


def _worth_again(outcome: Outcome) -> bool:
    return outcome.status == "failed" and outcome.failure is not None and outcome.failure.boundary in _RETRIED
