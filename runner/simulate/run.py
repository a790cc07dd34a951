"""`simulate`: a controller, a load and a server under test, brought together and watched to the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runner.simulate.answers import Answers, Asked, Fixed
from runner.simulate.client import SYSTEM, Client, Trust
from runner.simulate.controller import Controller
from runner.simulate.faults import Faults, Spell
from runner.simulate.ledger import Ledger
from runner.simulate.load import Load, LoadOptions
from runner.simulate.result import Result, measured
from runner.simulate.server import Server
from runner.simulate.starts import DIALECTS, Asking, fitting

if TYPE_CHECKING:
    from runner.build.plan import Plan


@dataclass(frozen=True, slots=True)
class Options:
    """What is simulated. `chances` are faults by name; `away` and `pauses` are when the controller is not there.

    `kill_after` seconds into the load the server is killed and started again, which needs a server of our own.
    """

    dialects: Sequence[str] = DIALECTS
    load: LoadOptions = field(default_factory=LoadOptions)
    group_size: int = 4
    chances: dict[str, float] = field(default_factory=dict)
    away: Sequence[Spell] = ()
    pauses: Sequence[Spell] = ()
    kill_after: float | None = None
    token_ids: bool = False
    stall: float = 12.0


def answers_of(plan: Plan, say: str | None = None, call: tuple[str, str] | None = None) -> Answers:
    """Who answers: `say` (after `call`, if one is given), else the file's model, else "OK."."""
    if say is not None or call is not None:
        return Fixed(say if say is not None else "OK.", call)
    return Fixed("OK.") if plan.make_model is None else Asked(plan.make_model(), plan.offered)


def ledger_for(plan: Plan, *, keep: bool = False, key: str = "") -> Ledger:
    """A ledger that knows what the file offers. A custom agent may ask for several first turns."""
    agent = plan.config.workflow.agent
    tools = [spec.wire() for spec in plan.offered]
    return Ledger(keep=keep, one_conversation=agent in (None, "chat", "tools"), tools=tools, secrets=[key])


_OURS = Trust(insecure=True)


@asynccontextmanager
async def reached(server: Server | None, url: str, key: str, trust: Trust = SYSTEM) -> AsyncIterator[Client]:
    """A client of the server under test: ours, or the one at `url`."""
    if server is not None:
        # We have started it ourselves on this machine: its certificate tells us nothing, unless somebody wants it to.
        client = Client(server.url, server.key, trust=trust if trust.ca is not None else _OURS)
    else:
        client = Client(url, key, trust=trust)
    try:
        yield client
    finally:
        await client.aclose()


class Simulation:
    """One simulation. `server` is ours, or None with the `url` (and `key`) of one that runs."""

    def __init__(
        self, plan: Plan, options: Options, answers: Answers, server: Server | None, url: str = "", key: str = "",
        trust: Trust = SYSTEM,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._options = options
        self._answers = answers
        self._server = server
        self._address = (url, key, trust)
        self.load: Load | None = None
        self.interrupted = False

    def interrupt(self) -> bool:
        """Stop posting and waiting; the report is made of what there is. False when asked before."""
        first, self.interrupted = not self.interrupted, True
        if self.load is not None:
            self.load.stop()
        return first

    async def run(self, tell: Callable[[Load], None] = lambda load: None) -> Result:
        """Play it and measure. `tell` hears of the load twice a second. Raises ServerError, Unreachable."""
        options, key = self._options, self._server.key if self._server else self._address[1]
        ledger = ledger_for(self._plan, key=key)
        faults = Faults(options.chances, options.load.seed)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(reached(self._server, *self._address))
            await client.send("GET", "/health")  # nobody there: said at once, before anything is counted
            controller = await stack.enter_async_context(
                Controller(ledger, self._answers, faults=faults, token_ids=options.token_ids, stall=options.stall)
            )
            self.load = load = Load(options.load, ledger, client, controller.url, faults)
            asking = self._asking(load)
            events = [asyncio.ensure_future(event) for event in self._events(controller, ledger, load, tell)]
            try:
                await load.run(asking)
            finally:
                for event in events:
                    event.cancel()
                await asyncio.gather(*events, return_exceptions=True)
            self._raise_first(events)
            ledger.close()
            return measured(self._plan.name, options.dialects, client.url, ledger, load, controller, self.interrupted)

    def _asking(self, load: Load) -> Asking:
        """What is asked for. Groups shrink where there would be none for some dialect, and the report says so."""
        options, rollouts = self._options, self._options.load.rollouts
        size = fitting(options.group_size, rollouts, len(options.dialects))
        if rollouts is not None and rollouts < len(options.dialects):
            without = " and ".join(options.dialects[rollouts:])
            load.notes.append(f"nothing was asked in {without}: so few rollouts cannot speak every dialect")
        elif size < options.group_size:
            load.notes.append(f"groups of {size}, not {options.group_size}, so that each dialect gets some")
        return Asking(self._plan, options.dialects, group_size=size, seed=options.load.seed, anew=self._server is None)

    @staticmethod
    def _raise_first(events: Sequence[asyncio.Future[None]]) -> None:
        for event in events:
            if event.done() and not event.cancelled() and (error := event.exception()) is not None:
                raise error

    def _events(self, controller: Controller, ledger: Ledger, load: Load, tell: Callable[[Load], None]) -> list[Any]:
        events: list[Any] = [_away(spell, controller) for spell in self._options.away]
        events += [_pause(spell, controller) for spell in self._options.pauses]
        if self._options.kill_after is not None and self._server is not None:
            events.append(self._kill(self._server, ledger, self._options.kill_after, load))
        events.append(self._watch(ledger, load, tell))
        return events

    async def _kill(self, server: Server, ledger: Ledger, after: float, load: Load) -> None:
        await asyncio.sleep(after)
        load.counts["under way at kill -9"] += ledger.killed()
        try:
            await server.kill()
            await server.restart()
        except BaseException:
            load.stop()
            raise
        ledger.killed()  # what was posted while it was away
        load.counts["kill -9"] += 1

    async def _watch(self, ledger: Ledger, load: Load, tell: Callable[[Load], None]) -> None:
        while True:
            await asyncio.sleep(0.5)
            tell(load)
            if self._server is not None and (code := self._server.died) is not None:
                ledger.breach("server-died", "", f"it ended with exit code {code}: {self._server.tail[-400:]}")
                load.stop()
                return


async def _away(spell: Spell, controller: Controller) -> None:
    await asyncio.sleep(spell.at)
    await controller.away(spell.seconds)


async def _pause(spell: Spell, controller: Controller) -> None:
    await asyncio.sleep(spell.at)
    controller.pause(spell.seconds)
