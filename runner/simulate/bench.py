"""`Bench`: what a conformance case works with: a server, a controller that does as told, and the ledger of both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from pydantic_core import from_json

from runner.models.http1_parser import Answer
from runner.simulate.client import Client
from runner.simulate.controller import Controller
from runner.simulate.decode import shown
from runner.simulate.history import History
from runner.simulate.ledger import Ledger
from runner.simulate.server import Server
from runner.simulate.starts import DIALECTS, Ask, Asking

if TYPE_CHECKING:
    from runner.build.plan import Plan

PATIENCE = 30.0
STALL = 4.0


class CaseFailed(Exception):
    """The server did not do what the case is about."""


class CaseSkipped(Exception):
    """The case cannot be played here; the message says why."""


@dataclass(slots=True)
class Bench:
    """One case's view. `server` is None for a server that somebody else runs; `seen` are the case's own rollouts."""

    plan: Plan
    client: Client
    controller: Controller
    ledger: Ledger
    asking: Asking
    server: Server | None
    seen: list[History] = field(default_factory=list)
    refusing: bool = False

    def ask(self, dialect: str, **changes: Any) -> Ask:
        """A rollout of the dataset's first row. `changes` are fields of `Ask`."""
        return replace(self.asking.one(dialect), **changes)

    def expect(self, ask: Ask, *, script: Mapping[str, Sequence[str]] | None = None, reply: Any = None) -> History:
        """Open a rollout's history, with what is to go wrong and what its model is to say."""
        history = self.ledger.expect(ask)
        history.script = {what: list(faults) for what, faults in (script or {}).items()}
        history.reply = reply
        self.seen.append(history)
        return history

    async def post(self, history: History) -> Answer:
        """Post its start and note the answer."""
        self.ledger.posted(history)
        answer = await self.client.send("POST", history.ask.path, history.ask.encoded(self.controller.url))
        self.ledger.answered(history, answer.status, answer.headers, answer.body)
        return answer

    async def start(self, ask: Ask, *, script: Mapping[str, Sequence[str]] | None = None, reply: Any = None) -> History:
        """Start a rollout that must be accepted."""
        history = self.expect(ask, script=script, reply=reply)
        answer = await self.post(history)
        if not history.accepted:
            raise CaseFailed(f"a good start was answered {answer.status}: {shown(answer.body)}")
        return history

    async def verdict(self, history: History, patience: float = PATIENCE) -> History:
        """Wait for the verdict."""
        try:
            async with asyncio.timeout(patience):
                await history.over.wait()
        except TimeoutError:
            first = history.channels["completion"].first
            heard = "nothing was heard" if first is None else f"the completion said {first.status}"
            raise CaseFailed(f"no verdict within {patience:g} s; {heard}, {history.chats} chat calls") from None
        return history

    async def play(self, ask: Ask, *, script: Mapping[str, Sequence[str]] | None = None, reply: Any = None) -> History:
        """Start a rollout and wait for its verdict."""
        return await self.verdict(await self.start(ask, script=script, reply=reply))

    async def scored(self, ask: Ask, **how: Any) -> History:
        """Play a rollout that must end as a success."""
        history = await self.play(ask, **how)
        verdict = history.verdict
        if verdict is None or verdict.status != "success":
            said = [each.first.message for each in history.channels.values() if each.first is not None]
            raise CaseFailed(f"the verdict is {verdict.status if verdict else 'none'}: {shown(' '.join(said))}")
        return history

    async def quiet(self, seconds: float = 1.2) -> None:
        """Let pass a time in which a server that contradicts itself would do so."""
        await asyncio.sleep(seconds)

    async def refuses(self, ask: Ask, *statuses: int, why: str, headers: Mapping[str, str] | None = None) -> Answer:
        """A start that must be answered with one of `statuses` and never be heard of again."""
        body = ask.encoded(self.controller.url)
        answer = await self.client.send("POST", ask.path, body, headers)
        self.want(answer.status in statuses, f"{why}: answered {answer.status} {shown(answer.body)}")
        return answer

    def want(self, holds: object, otherwise: str) -> None:
        """Raises CaseFailed unless it holds."""
        if not holds:
            raise CaseFailed(otherwise)

    def skip(self, why: str) -> NoReturn:
        raise CaseSkipped(why)

    def own_server(self) -> Server:
        """The server, if it is ours to kill."""
        if self.server is None:
            self.skip("needs a server that simulate starts itself")
        return self.server

    def plain_agent(self) -> None:
        """Skip unless the file's agent talks as `chat` and `tools` do."""
        if self.plan.config.workflow.agent not in (None, "chat", "tools"):
            self.skip("needs one of the agents `chat` and `tools`: what this one asks its model is its own affair")

    def tool(self) -> str:
        """A tool of the file."""
        self.plain_agent()
        if not self.plan.offered:
            self.skip("the file offers no tool")
        return self.plan.offered[0].name


def value_of(answer: Answer) -> Any:
    """The JSON value of an answer. Raises CaseFailed."""
    try:
        return from_json(answer.body)
    except ValueError:
        raise CaseFailed(f"the answer ({answer.status}) is not JSON: {shown(answer.body)}") from None


Play: TypeAlias = Callable[[Bench, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """One situation. `dialects` are those it is played in, one line each; `traps` the known traps it is about.

    `settings` are `--set` words for a server of its own; `alone` keeps other cases away while it is played.
    """

    name: str
    traps: tuple[int, ...]
    says: str
    play: Play
    dialects: tuple[str, ...] = DIALECTS
    settings: tuple[str, ...] = ()
    alone: bool = False
    needs_key: bool = False
