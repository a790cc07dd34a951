"""Parity: a row played by the engine directly and over the wire, compared word for word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.models.double_answer import completion
from runner.models.model import Opens
from runner.models.wire import parse_answer
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.message import Message, text_of, tool_calls_of
from runner.records.rollout import Outcome
from runner.runtime.rollout import run_rollout
from runner.simulate.answers import Answers
from runner.simulate.callbacks import samples_of
from runner.simulate.client import Client, Trust
from runner.simulate.controller import Controller
from runner.simulate.decode import shown
from runner.simulate.history import History
from runner.simulate.run import ledger_for, reached
from runner.simulate.server import Server
from runner.simulate.starts import AGENT_LOOP, Asking

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.datasets.dataset import Row

_PATIENCE = 120.0
_ENDS = {
    "final_answer": "stop",
    "finish_tool": "stop",
    "empty_answer": "stop",
    "max_tokens": "length",
    "context_overflow": "length",
    "max_total_tokens": "max_tokens",
}
"""What the first generation calls a stop reason of ours; it has no other words for the rest."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One row in one dialect: what differs, in sentences; none is parity."""

    row_id: str
    dialect: str
    differences: tuple[str, ...]
    summary: str

    def to_json(self) -> dict[str, Any]:
        return {"row_id": self.row_id, "dialect": self.dialect, "differences": list(self.differences),
                "summary": self.summary}  # fmt: skip


class _Answering:
    """The controller's answers as a model: both sides are told the same."""

    def __init__(self, answers: Answers, history: History) -> None:
        self._answers = answers
        self._history = history

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        asked = {"messages": list(messages), "tools": [tool.wire() for tool in tools]}
        said = self._answers.answer(self._history, asked)
        if not isinstance(said, str | Mapping):
            said = await said
        # Counted as the controller counts it, which sees no tools in the first generation: limits are the same.
        seen = {**asked, "tools": []} if self._history.dialect == AGENT_LOOP else asked
        return parse_answer(completion(seen, said))

    async def aclose(self) -> None:
        """The controller closes what answers."""


async def compare_rows(
    plan: Plan, answers: Answers, where: tuple[Server | None, str, str, Trust], dialects: Sequence[str], most: int
) -> list[Compared]:
    """The first `most` rows, each in every dialect. `where` is the server, or the URL and key of one, and its trust."""
    ledger = ledger_for(plan, keep=True)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(reached(*where))
        controller = await stack.enter_async_context(Controller(ledger, answers))
        asking = Asking(plan, dialects, anew=where[0] is None)
        rows: list[Row | None] = [None] if plan.dataset is None else list(_first(plan, most))
        found = []
        for row in rows:
            for dialect in dialects:
                history = ledger.expect(asking.one(dialect, row))
                outcome = await _directly(plan, answers, history, row)
                await _over_the_wire(history, client, controller)
                breaches = [f"{each.rule}: {each.evidence}" for each in ledger.of(history.rollout_id)]
                found.append(_compared(history, outcome, breaches))
        return found


def _first(plan: Plan, most: int) -> list[Row]:
    assert plan.dataset is not None
    rows = []
    for row in plan.dataset.rows():
        rows.append(row)
        if len(rows) == most:
            break
    return rows


@asynccontextmanager
async def _live(plan: Plan, answers: Answers, history: History) -> AsyncIterator[Any]:
    model = _Answering(answers, history)
    assert not isinstance(model, Opens)
    async with plan.open(model=model) as live:
        yield live


async def _directly(plan: Plan, answers: Answers, history: History, row: Row | None) -> Outcome:
    from runner.records.rollout import RolloutRequest

    ask = history.ask
    if row is not None:
        request = plan.request(row, ask.attempt)
    else:
        request = RolloutRequest(rollout_id=ask.rollout_id, prompt=ask.prompt, label=ask.label)
    async with _live(plan, answers, history) as live:
        return await run_rollout(live, request)


async def _over_the_wire(history: History, client: Client, controller: Controller) -> None:
    answer = await client.send("POST", history.ask.path, history.ask.encoded(controller.url))
    history.status = answer.status
    if not history.accepted:
        return
    try:
        async with asyncio.timeout(_PATIENCE):
            await history.over.wait()
    except TimeoutError:
        return


def _compared(history: History, outcome: Outcome, breaches: list[str]) -> Compared:
    differences = list(breaches)
    verdict = history.verdict
    if verdict is None:
        differences.append(f"no verdict over the wire; the start was answered {history.status}")
    else:
        ours = "success" if outcome.status == "scored" else "failure"
        if history.dialect == AGENT_LOOP and outcome.status == "ungraded":
            ours = verdict.status  # one word for agent and grade: what it says of such is the dialect's choice
        differences += _differs("status", ours, verdict.status)
        differences += _differs("reward", outcome.reward, verdict.reward)
        if outcome.status == "scored":
            differences += _messages(history, outcome)
            differences += _stop(history, outcome)
    reward = "no reward" if outcome.reward is None else f"reward {outcome.reward:g}"
    turns = sum(message.get("role") == "assistant" for message in outcome.sample.messages)
    noun = "turn" if turns == 1 else "turns"
    summary = f"{outcome.status}, {reward}, {turns} {noun}, {outcome.stop_reason}"
    return Compared(history.ask.row_id, history.dialect, tuple(differences), summary)


def _differs(what: str, ours: object, theirs: object) -> list[str]:
    return [] if ours == theirs else [f"{what}: directly {shown(repr(ours))}, over the wire {shown(repr(theirs))}"]


def _messages(history: History, outcome: Outcome) -> list[str]:
    channel, payload = history.bodies[-1]
    if history.dialect == AGENT_LOOP:
        theirs = payload.get("final_messages") or []
    else:
        samples = list(samples_of(history.dialect, payload).values())
        theirs = samples[0].get("messages") or [] if len(samples) == 1 else []
    ours = list(outcome.sample.messages)
    if len(ours) != len(theirs):
        return [f"directly {len(ours)} messages, {len(theirs)} in the {channel} callback"]
    found = []
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        found += _differs(f"message {index}", _plain(mine), _plain(other))
    return found


def _plain(message: Mapping[str, Any]) -> tuple[Any, ...]:
    calls = [(call.id, call.name, call.arguments) for call in tool_calls_of(message)]
    return message.get("role"), text_of(message), calls, message.get("tool_call_id")


def _stop(history: History, outcome: Outcome) -> list[str]:
    """Only the first generation says on the wire why an agent stopped."""
    if history.dialect != AGENT_LOOP or history.verdict is None:
        return []
    words = (outcome.ended, _ENDS.get(outcome.ended))
    said = history.verdict.stop_reason
    return [] if said in words else [f"stop reason: directly {outcome.ended}, over the wire {said}"]
