"""The acceptance suite: a fixed table of cases, each played against a real server over real sockets.

A case fails by its own word, or by any violation that the ledger saw in one of its rollouts.
"""

from __future__ import annotations

import asyncio
import fnmatch
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from runner.simulate.bench import STALL, Bench, Case, CaseFailed, CaseSkipped
from runner.simulate.cases.admission import ADMISSION
from runner.simulate.cases.callbacks import CALLBACKS
from runner.simulate.cases.chat import CHAT
from runner.simulate.cases.lifetime import LIFETIME
from runner.simulate.cases.questions import QUESTIONS
from runner.simulate.cases.starting import STARTING
from runner.simulate.client import SYSTEM, Trust, Unreachable
from runner.simulate.controller import Controller
from runner.simulate.decode import shown
from runner.simulate.run import answers_of, ledger_for, reached
from runner.simulate.server import Server, ServerError
from runner.simulate.starts import Asking

if TYPE_CHECKING:
    from runner.build.plan import Plan

CASES: tuple[Case, ...] = (*STARTING, *ADMISSION, *CHAT, *CALLBACKS, *QUESTIONS, *LIFETIME)

_AT_ONCE = 8
_SERVERS = 4
"""Servers of our own that run side by side: most cases wait for something, and do not compute."""
_LONGEST = 120.0

Played: TypeAlias = tuple[Case, str]
"""A case in a dialect."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """How a case went in one dialect: `result` is "ok", "failed" or "skipped", `reason` says why."""

    case: Case
    dialect: str
    result: str
    reason: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {"case": self.case.name, "dialect": self.dialect, "traps": list(self.case.traps),
                "says": self.case.says, "result": self.result, "reason": self.reason,
                "seconds": round(self.seconds, 3)}  # fmt: skip


Tell: TypeAlias = Callable[[Played, CaseOutcome], None]


class Suite:
    """Plays cases. `make_server` gives a server with the settings it is asked for, or None to use the one at `url`."""

    def __init__(
        self, plan: Plan, make_server: Callable[[tuple[str, ...]], Server | None], url: str = "", key: str = "",
        trust: Trust = SYSTEM,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._make_server = make_server
        self._url = url
        self._key = key
        self._trust = trust

    async def run(
        self, dialects: Sequence[str], globs: Sequence[str], tell: Callable[[CaseOutcome], None]
    ) -> list[CaseOutcome]:
        """Every chosen case in every chosen dialect, told in the order of the table."""
        chosen = [case for case in CASES if not globs or any(fnmatch.fnmatch(case.name, glob) for glob in globs)]
        plays = [(case, dialect) for case in chosen for dialect in case.dialects if dialect in dialects]
        coming = {play: asyncio.get_running_loop().create_future() for play in plays}
        slots = asyncio.Semaphore(1 if self._url else _SERVERS)
        lanes = [asyncio.ensure_future(self._lane(settings, lane, coming, slots))
                 for settings, lane in self._lanes(plays)]  # fmt: skip
        try:
            outcomes = []
            for play in plays:
                outcomes.append(await coming[play])
                tell(outcomes[-1])
            return outcomes
        finally:
            for task in lanes:
                task.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
            for future in coming.values():
                _ = future.cancel() or future.exception()  # one was raised; that of the others is the same

    def _lanes(self, plays: Sequence[Played]) -> list[tuple[tuple[str, ...], list[Played]]]:
        """What shares a server. Where servers cost us nothing but time, what must be alone gets one by dialect."""
        lanes: dict[tuple[tuple[str, ...], str], list[Played]] = {}
        for case, dialect in plays:
            own = dialect if case.alone and not self._url else ""
            lanes.setdefault((case.settings, own), []).append((case, dialect))
        return [(settings, lane) for (settings, _), lane in lanes.items()]

    async def _lane(
        self,
        settings: tuple[str, ...],
        plays: Sequence[Played],
        coming: Mapping[Played, asyncio.Future[CaseOutcome]],
        slots: asyncio.Semaphore,
    ) -> None:
        def tell(play: Played, outcome: CaseOutcome) -> None:
            coming[play].set_result(outcome)

        try:
            async with slots:
                await self._with_settings(settings, plays, tell)
        except Exception as error:  # whoever waits for the outcome hears of it
            for play in plays:
                if not coming[play].done():
                    coming[play].set_exception(error)

    async def _with_settings(self, settings: tuple[str, ...], plays: Sequence[Played], tell: Tell) -> None:
        """The cases that share one server. One that does not start with special settings fails just them."""
        server = self._make_server(settings)
        if server is None and settings:
            _all(plays, "skipped", f"needs a server of its own with {' '.join(settings)}", tell)
            return
        try:
            async with AsyncExitStack() as stack:
                if server is not None:
                    await stack.enter_async_context(server)
                await self._play(server, plays, tell, stack)
        except ServerError as error:
            if not settings:
                raise
            _all(plays, "failed", f"{error}: {shown(error.tail)}", tell)

    async def _play(self, server: Server | None, plays: Sequence[Played], tell: Tell, stack: AsyncExitStack) -> None:
        client = await stack.enter_async_context(reached(server, self._url, self._key, self._trust))
        await client.send("GET", "/health")
        ledger = ledger_for(self._plan, keep=True, key=client.key)
        controller = await stack.enter_async_context(Controller(ledger, answers_of(self._plan), stall=STALL))
        slots = asyncio.Semaphore(_AT_ONCE)
        asking = Asking(self._plan, ("single-sample",), seed=time.time_ns())

        async def one(play: Played) -> None:
            async with slots:
                tell(play, await played(*play, Bench(self._plan, client, controller, ledger, asking, server)))

        await asyncio.gather(*(one(play) for play in plays if not play[0].alone))
        for play in plays:
            if play[0].alone:
                await one(play)


async def played(case: Case, dialect: str, bench: Bench) -> CaseOutcome:
    """Play one case."""
    begun = time.monotonic()

    def ended(result: str, reason: str = "") -> CaseOutcome:
        return CaseOutcome(case, dialect, result, reason, time.monotonic() - begun)

    if case.needs_key and not bench.client.key:
        return ended("skipped", "the server was named without a key")
    try:
        async with asyncio.timeout(_LONGEST):
            await case.play(bench, dialect)
    except CaseSkipped as skipped:
        return ended("skipped", str(skipped))
    except CaseFailed as failed:
        return ended("failed", str(failed))
    except Unreachable as error:
        return ended("failed", f"the server gave no answer: {error}")
    except ServerError as error:
        return ended("failed", f"{error}: {shown(error.tail)}")
    except TimeoutError:
        return ended("failed", f"it was not over after {_LONGEST:g} s")
    broken = [each for history in bench.seen for each in bench.ledger.of(history.rollout_id)]
    if broken:
        return ended("failed", "; ".join(f"{each.rule}: {each.evidence}" for each in broken[:3]))
    return ended("ok")


def _all(plays: Sequence[Played], result: str, reason: str, tell: Tell) -> None:
    for case, dialect in plays:
        tell((case, dialect), CaseOutcome(case, dialect, result, reason))
