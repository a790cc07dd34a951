"""A project on disk, and models that say what a test tells them to: the real plan, the real engine."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runner.build.live import Live
from runner.build.plan import Plan, build
from runner.config.load import load
from runner.datasets.dataset import Row
from runner.models.model import Model
from runner.records.completion import Caller, Completion, Sampling, ToolSpec, Usage
from runner.records.event import Event
from runner.records.message import Message
from runner.records.rollout import Outcome
from runner.runtime.rollout import run_rollout

HEAD = """
[workflow]
name = "test"
{workflow}
[model]
id = "x"
provider = "scripted"
[[model.rules]]
reply = "4"
"""

EXACT = '[graders.answer]\nkind = "exact"\n'


def says(text: str | None = "4", *calls: tuple[str, str], finish: str | None = None, **more: Any) -> Completion:
    """A completion; each call is (tool, argument text)."""
    message: Message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls)
        ]
    more.setdefault("usage", Usage(10, 5))
    return Completion(message, finish or ("tool_calls" if calls else "stop"), **more)


Answer = Completion | BaseException | Callable[..., Awaitable[Completion]]


@dataclass
class Says:
    """A model that gives `answers` in order, the last for ever. An exception is raised, a function is awaited."""

    answers: Sequence[Answer]
    asked: list[tuple[list[Message], list[str], Sampling]] = field(default_factory=list)
    closed: int = 0

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        number = min(len(self.asked), len(self.answers) - 1)
        self.asked.append((list(messages), [tool.name for tool in tools], sampling))
        await asyncio.sleep(0)  # as if it were far away: calls made at once are under way at once
        answer = self.answers[number]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Completion) else await answer()

    async def aclose(self) -> None:
        self.closed += 1


@dataclass
class Project:
    """A folder. `toml` is put after a head with a scripted model; `workflow` goes into `[workflow]`."""

    folder: Path
    says = staticmethod(says)
    Says = Says

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def build(self, toml: str = EXACT, *, workflow: str = "", head: str = HEAD) -> Plan:
        text = head.replace("{workflow}", workflow) + textwrap.dedent(toml)
        return build(load(self.write("workflow.toml", text)))

    def play(
        self,
        toml: str = EXACT,
        *answers: Answer,
        workflow: str = "",
        row: dict[str, Any] | None = None,
        events: list[Event] | None = None,
        model: Model | None = None,
        head: str = HEAD,
    ) -> Outcome:
        """One rollout of the plan, with a model that gives `answers` (none: that of the file)."""
        plan = self.build(toml, workflow=workflow, head=head)
        played = model or (Says(answers) if answers else None)

        async def main() -> Outcome:
            async with plan.open(model=played) as live:
                return await self.rollout(live, row, events=events)

        return asyncio.run(main())

    @staticmethod
    def row(data: dict[str, Any] | None = None) -> Row:
        return a_row(data)

    @staticmethod
    async def rollout(
        live: Live, row: dict[str, Any] | None = None, attempt: int = 0, events: list[Event] | None = None
    ) -> Outcome:
        outcome = await run_rollout(
            live,
            live.plan.request(a_row(row), attempt),
            (lambda event: None) if events is None else events.append,
        )
        check(outcome)
        return outcome

    @asynccontextmanager
    async def open(self, toml: str = EXACT, *answers: Answer, workflow: str = "") -> AsyncIterator[Live]:
        plan = self.build(toml, workflow=workflow)
        async with plan.open(model=Says(answers) if answers else None) as live:
            yield live


def a_row(data: dict[str, Any] | None = None) -> Row:
    data = {"user_prompt": "2+2?", "ground_truth": "4"} if data is None else data
    return Row(0, "r0", data, "digest")


def check(outcome: Outcome) -> None:
    """What holds for every outcome."""
    import math

    assert (outcome.reward is not None) == (outcome.status == "scored")
    assert outcome.reward is None or math.isfinite(outcome.reward)
    assert (outcome.failure is not None) == (outcome.status == "failed") or outcome.status == "ungraded"
    assert outcome.ended
    assert outcome.timing["total"] >= outcome.timing["grade"] >= 0.0
    used = [call["usage"] for call in outcome.sample.calls if call.get("usage")]
    assert outcome.usage.input_tokens == sum(usage["input_tokens"] for usage in used)
    assert outcome.usage.output_tokens == sum(usage["output_tokens"] for usage in used)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
