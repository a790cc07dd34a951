"""The load: starts posted in groups, at a rate or so many at once, and everything a controller does around them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random

from runner.simulate.answered import cancel_findings, status_findings
from runner.simulate.client import Client, Unreachable
from runner.simulate.faults import Faults
from runner.simulate.history import History
from runner.simulate.ledger import Ledger
from runner.simulate.starts import Ask, Asking

_AGAIN = 0.2
"""Seconds before a start is tried again that got no answer."""
_ASKED = 200
"""Rollouts whose status is asked at the end."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How much, how fast. `rate` (starts a second) or else `concurrency` (rollouts without a verdict at once).

    `rollouts` ends the load after so many, `duration` after so many seconds; `warm_up` rollouts before are not
    measured. `patience` is how long one rollout may take from its start to its verdict.
    """

    rollouts: int | None = 100
    duration: float | None = None
    concurrency: int = 64
    rate: float | None = None
    warm_up: int = 0
    patience: float = 120.0
    seed: int = 0
    quiet: float = 0.5
    """Seconds at the end in which a server may still contradict itself."""
    settle: float = 10.0
    """Seconds at the end, and no more than patience, for callbacks that were refused to come again."""


class Load:
    """Plays the load against a server. `played` are the rollouts that are measured, in order of their starts."""

    def __init__(
        self, options: LoadOptions, ledger: Ledger, client: Client, base: str, faults: Faults | None = None
    ) -> None:
        self._options = options
        self._ledger = ledger
        self._client = client
        self._base = base
        self._faults = faults or Faults({})
        self._random = Random(options.seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(options.concurrency)
        self.played: list[History] = []
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        """What the report should say of how it was done."""
        self.began = self.ended = 0.0
        self.stopped = False
        self.last_trouble = ""
        """What the last start without an answer met."""

    async def run(self, asking: Asking) -> None:
        """Post everything and wait for every verdict, each for as long as patience lasts."""
        groups = asking.groups()
        if self._options.warm_up:
            await self._post(groups, self._options.warm_up, None, measured=False)
            await self._drain()
        self.began = self._ledger.now()
        await self._post(groups, self._options.rollouts, self._options.duration, measured=True)
        await self._drain()
        self.ended = max((each.verdict_at or 0.0 for each in self.played), default=0.0) or self._ledger.now()
        await self._settle()
        await asyncio.sleep(self._options.quiet)
        await self._ask_around()

    def stop(self) -> None:
        """Post nothing more, and wait no longer."""
        self.stopped = True
        for task in self._tasks:
            task.cancel()

    async def _drain(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _settle(self) -> None:
        """Wait for what is still owed: a server that contradicts itself does so when it tries again."""
        end = self._ledger.now() + min(self._options.settle, self._options.patience)
        owed = [each for each in self.played if each.owed]
        while owed and not self.stopped and self._ledger.now() < end:
            await asyncio.sleep(0.02)
            owed = [each for each in owed if each.owed]

    async def _post(self, groups: object, most: int | None, seconds: float | None, *, measured: bool) -> None:
        count, begun = 0, self._ledger.now()
        for group in groups:  # type: ignore[attr-defined]
            if self.stopped or (seconds is not None and self._ledger.now() - begun >= seconds):
                return
            wanted = group if most is None else group[: most - count]
            await self._make_room(count, begun, len(wanted), measured)
            for ask in wanted:
                self._begin(ask, measured)
            count += len(wanted)
            if most is not None and count >= most:
                return

    async def _make_room(self, count: int, begun: float, wanted: int, measured: bool) -> None:
        rate = self._options.rate if measured else None
        if rate is None:
            for _ in range(min(wanted, self._options.concurrency)):
                await self._slots.acquire()
            return
        early = begun + count / rate - self._ledger.now()
        if early > 0.001 or count % 64 == 0:
            await asyncio.sleep(max(0.0, early))

    def _begin(self, ask: Ask, measured: bool) -> None:
        history = self._ledger.expect(ask)
        if measured:
            self.played.append(history)
        task = asyncio.ensure_future(self._one(history, paced=measured and self._options.rate is not None))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, history: History, *, paced: bool) -> None:
        try:
            async with asyncio.timeout(self._options.patience):
                await self._start(history)
                if history.accepted:
                    await self._meanwhile(history)
                    await history.over.wait()
        except TimeoutError:
            self.counts["out of patience"] += 1
        finally:
            if not paced:
                self._slots.release()

    async def _start(self, history: History) -> None:
        body = history.ask.encoded(self._base)
        while True:
            if self._faults.happens("start-duplicate", history.rollout_id) and not history.starts:
                self.counts["start-duplicate"] += 1
                waits = await asyncio.gather(self._once(history, body), self._once(history, body))
                wait = None if history.accepted else min((each for each in waits if each is not None), default=None)
            else:
                wait = await self._once(history, body)
            if wait is None:
                return
            await asyncio.sleep(wait)

    async def _once(self, history: History, body: bytes) -> float | None:
        """Post a start. None when it is settled, else how long to wait before it is posted again."""
        self._ledger.posted(history)
        try:
            answer = await self._client.send("POST", history.ask.path, body)
        except Unreachable as error:
            self.counts["starts without an answer"] += 1
            self.last_trouble = str(error)
            return _AGAIN
        wait = self._ledger.answered(history, answer.status, answer.headers, answer.body)
        if answer.status == 429:
            self.counts["429"] += 1
            return wait + self._random.uniform(0.0, wait / 4)  # not all of them at the same moment
        return None

    async def _meanwhile(self, history: History) -> None:
        """What a controller does to a rollout that is under way."""
        if self._faults.happens("start-again", history.rollout_id):
            await asyncio.sleep(self._random.uniform(0.0, 0.3))
            self.counts["start-again"] += 1
            await self._once(history, history.ask.encoded(self._base))
        if self._faults.happens("cancel", history.rollout_id):
            await asyncio.sleep(self._random.uniform(0.0, 0.3))
            await self._cancel(history)

    async def _cancel(self, history: History) -> None:
        late = history.verdict_at is not None
        name = history.rollout_id
        by_id = self._random.random() < 0.5
        try:
            answer = await (self._client.cancel(ids=[name]) if by_id else self._client.cancel(prefix=name))
        except Unreachable:
            self.counts["cancels without an answer"] += 1
            return
        self.counts["cancel"] += 1
        dispositions, findings = cancel_findings([name] if by_id else None, answer.status, answer.body)
        self._ledger.note(history, findings)
        word = dispositions.get(name, "not_found")
        if late and word != "not_found":
            self._ledger.breach("cancel-untrue", name, f"{word}, and its verdict had been received")
        self._ledger.cancelled(history, word)

    async def _ask_around(self) -> None:
        """Ask for the status of some: it must agree with what the callbacks said."""
        some = self.played if len(self.played) <= _ASKED else self._random.sample(self.played, _ASKED)
        for history in some:
            if not history.accepted or self.stopped:
                continue
            try:
                answer = await self._client.status(history.rollout_id)
            except Unreachable:
                self.counts["status without an answer"] += 1
                continue
            self._ledger.note(history, status_findings(history, answer.status, answer.body))
