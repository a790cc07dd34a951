"""Our server and the simulated controller across real sockets, in one event loop: what a test plays agents over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from runner.build.plan import Plan
from runner.simulate.answers import Answers
from runner.simulate.client import SYSTEM, Client
from runner.simulate.controller import Controller
from runner.simulate.history import History
from runner.simulate.ledger import Ledger
from runner.simulate.parity import Compared, compare_rows
from runner.simulate.run import ledger_for
from runner.simulate.starts import DIALECTS, Asking


@dataclass
class Says:
    """A model: `answer` is given the messages, and gives a text, a message or a whole completion."""

    answer_to: Callable[[list[dict[str, Any]]], Any]

    def answer(self, history: History, asked: Any) -> Any:
        return self.answer_to(list(asked["messages"]))

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


def calls(*wanted: tuple[str, dict[str, Any] | str]) -> dict[str, Any]:
    """A message that calls tools: each is a name and its arguments."""
    made = []
    for place, (name, arguments) in enumerate(wanted):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        made.append({"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": text}})
    return {"content": None, "tool_calls": made}


def uses(name: str, arguments: dict[str, Any], answer: str) -> Says:
    """A model that calls one tool, and then answers."""
    return Says(lambda messages: answer if messages[-1]["role"] == "tool" else calls((name, arguments)))


@dataclass
class Wire:
    """What is between a controller and a server. `breaches` is what the ledger saw go wrong."""

    ledger: Ledger
    controller: Controller
    client: Client
    asking: Asking

    async def play(self, dialect: str, **ask: Any) -> History:
        """One rollout, to its verdict. `ask` are fields of `Ask` said differently."""
        asked = replace(self.asking.one(dialect), **ask)
        history = self.ledger.expect(asked)
        self.ledger.posted(history)
        answer = await self.client.send("POST", asked.path, asked.encoded(self.controller.url))
        self.ledger.answered(history, answer.status, answer.headers, answer.body)
        history.status, history.answer = answer.status, answer.body
        if history.accepted:
            async with asyncio.timeout(20):
                await history.over.wait()
        return history

    @property
    def breaches(self) -> list[str]:
        found = [each for kept in self.ledger.violations.values() for each in kept]
        return [f"{each.rule}: {each.evidence}" for each in found]


@asynccontextmanager
async def wired(
    plan: Plan, port: int, answers: Answers, *, token_ids: bool = False, key: str = ""
) -> AsyncIterator[Wire]:
    """A controller for the server that listens on `port` with `key` and plays `plan`."""
    ledger, client = ledger_for(plan, keep=True, key=key), Client(f"http://127.0.0.1:{port}", key)
    try:
        async with Controller(ledger, answers, token_ids=token_ids) as controller:
            yield Wire(ledger, controller, client, Asking(plan, DIALECTS, anew=True))
    finally:
        await client.aclose()


def played(
    stage: Any,
    answers: Answers,
    *,
    workflow: str,
    toml: str = "",
    serve: str = "",
    dialects: Sequence[str] = DIALECTS,
    breaches: bool = False,
    token_ids: bool = False,
    **ask: Any,
) -> list[History]:
    """One rollout in each dialect, at once. Nothing may go wrong between the two, unless `breaches`."""
    found: list[History] = []

    async def test() -> None:
        async with stage.serving(toml, serve, workflow) as server:
            plan = stage.plan(toml, serve, workflow)
            async with wired(plan, server.port, answers, token_ids=token_ids) as wire:
                found.extend(await asyncio.gather(*(wire.play(dialect, **ask) for dialect in dialects)))
                await server.quiet()
                assert breaches or not wire.breaches, wire.breaches

    stage.run(test)
    return found


def compared(
    stage: Any, answers: Answers, *, workflow: str, toml: str = "", dialects: Sequence[str] = DIALECTS, most: int = 1
) -> list[Compared]:
    """The first rows of the file, directly and over the wire: what `simulate --parity` compares."""
    found: list[Compared] = []

    async def test() -> None:
        async with stage.serving(toml, "", workflow) as server:
            where = (None, f"http://127.0.0.1:{server.port}", "", SYSTEM)
            found.extend(await compare_rows(stage.plan(toml, "", workflow), answers, where, dialects, most))

    stage.run(test)
    return found


def sample_of(history: History) -> dict[str, Any]:
    """What the last callback says of the rollout's sample, whatever the dialect; the body itself in the first."""
    _, body = history.bodies[-1]
    if body.get("sample") is not None:
        return dict(body["sample"])
    for sample in (body.get("samples") or {}).values():
        return dict(sample)
    return body
