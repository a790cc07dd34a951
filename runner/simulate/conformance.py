"""The acceptance suite: a fixed table of cases, each played against a real server over real sockets.

A case fails by its own word, or by any violation that the ledger saw in one of its rollouts.
"""

from __future__ import annotations

import asyncio
import fnmatch
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.simulate.bench import STALL, Bench, Case, CaseFailed, CaseSkipped
from runner.simulate.cases.admission import ADMISSION
from runner.simulate.cases.callbacks import CALLBACKS
from runner.simulate.cases.chat import CHAT
from runner.simulate.cases.lifetime import LIFETIME
from runner.simulate.cases.questions import QUESTIONS
from runner.simulate.cases.starting import STARTING
from runner.simulate.client import Client, Unreachable
from runner.simulate.controller import Controller
from runner.simulate.decode import shown
from runner.simulate.run import answers_of, ledger_for
from runner.simulate.server import Server, ServerError
from runner.simulate.starts import Asking

if TYPE_CHECKING:
    from runner.build.plan import Plan

CASES: tuple[Case, ...] = (*STARTING, *ADMISSION, *CHAT, *CALLBACKS, *QUESTIONS, *LIFETIME)

_AT_ONCE = 8
_LONGEST = 120.0


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


class Suite:
    """Plays cases. `make_server` gives a server with the settings it is asked for, or None to use the one at `url`."""

    def __init__(
        self, plan: Plan, make_server: Callable[[tuple[str, ...]], Server | None], url: str = "", key: str = ""
    ) -> None:
        self._plan = plan
        self._make_server = make_server
        self._url = url
        self._key = key

    async def run(
        self, dialects: Sequence[str], globs: Sequence[str], tell: Callable[[CaseOutcome], None]
    ) -> list[CaseOutcome]:
        """Every chosen case in every chosen dialect, told in the order of the table."""
        chosen = [case for case in CASES if not globs or any(fnmatch.fnmatch(case.name, glob) for glob in globs)]
        outcomes: list[CaseOutcome] = []
        for settings in dict.fromkeys(case.settings for case in chosen):
            cases = [(case, dialect) for case in chosen if case.settings == settings
                     for dialect in case.dialects if dialect in dialects]  # fmt: skip
            if cases:
                outcomes += await self._with_settings(settings, cases, tell)
        return outcomes

    async def _with_settings(
        self, settings: tuple[str, ...], cases: list[tuple[Case, str]], tell: Callable[[CaseOutcome], None]
    ) -> list[CaseOutcome]:
        """The cases that share one server. One that does not start with special settings fails just them."""
        server = self._make_server(settings)
        if server is None and settings:
            why = f"needs a server of its own with {' '.join(settings)}"
            return _all(cases, "skipped", why, tell)
        try:
            async with AsyncExitStack() as stack:
                if server is not None:
                    await stack.enter_async_context(server)
                return await self._play(server, cases, tell, stack)
        except ServerError as error:
            if not settings:
                raise
            return _all(cases, "failed", f"{error}: {shown(error.tail)}", tell)

    async def _play(
        self,
        server: Server | None,
        cases: list[tuple[Case, str]],
        tell: Callable[[CaseOutcome], None],
        stack: AsyncExitStack,
    ) -> list[CaseOutcome]:
        client = Client(server.url, server.key) if server is not None else Client(self._url, self._key)
        stack.push_async_callback(client.aclose)
        await client.send("GET", "/health")
        ledger = ledger_for(self._plan, keep=True, key=client.key)
        controller = await stack.enter_async_context(Controller(ledger, answers_of(self._plan), stall=STALL))
        slots, whole = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_AT_ONCE)
        asking = Asking(self._plan, ("single-sample",), seed=time.time_ns())

        def bench() -> Bench:
            return Bench(self._plan, client, controller, ledger, asking, server)

        async def one(case: Case, dialect: str) -> CaseOutcome:
            async with slots:
                return await played(case, dialect, bench())

        together = [asyncio.ensure_future(one(*each)) for each in cases if not each[0].alone]
        outcomes = []
        for task in together:
            outcomes.append(await task)
            tell(outcomes[-1])
        for case, dialect in (each for each in cases if each[0].alone):
            async with whole:
                outcomes.append(await played(case, dialect, bench()))
            tell(outcomes[-1])
        return outcomes


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


def _all(
    cases: list[tuple[Case, str]], result: str, reason: str, tell: Callable[[CaseOutcome], None]
) -> list[CaseOutcome]:
    outcomes = [CaseOutcome(case, dialect, result, reason) for case, dialect in cases]
    for outcome in outcomes:
        tell(outcome)
    return outcomes
