"""`osmosis-run test -m MODULE:NAME`: an agent on rows of a dataset with a real model, one after the other.

Nothing is graded and nothing is journalled: what passes is a rollout that ended. With `-i` a person steps through it.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from runner.cli.baseline import write_json
from runner.cli.console import Console, console
from runner.cli.exit import CommandError, Exit
from runner.cli.module import Module, model_settings, option_settings, row_settings
from runner.records.quick import quick

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runner.build.plan import Plan
    from runner.records.rollout import Outcome

MODEL = "gpt-5-mini"
"""The model that is asked where nobody names one, as that command line had it."""

_DEFAULTS = {"limits.turns": 10, "limits.time": "1h"}
_KEYS = {
    "max_turns": ("limits.turns", "--max-turns"),
    "max_tokens": ("sampling.max_tokens", "--max-tokens"),
    "temperature": ("sampling.temperature", "--temperature"),
}
_ALL_ROWS = ("model_refused", "model_unavailable")
"""Kinds of failure that the next row would meet, too."""


@quick
class AgentTest:
    """What the command line asked for."""

    module: str | None
    mcp: Path | None
    profile: str | None
    overrides: tuple[str, ...]
    dataset: Path | None
    model: str | None
    base_url: str | None
    api_key: str | None
    max_turns: int | None
    max_tokens: int | None
    temperature: float | None
    limit: int | None
    offset: int | None
    report: Path | None
    interactive: bool
    row: int | None

    def plan(self) -> Plan:
        """The plan, its dataset narrowed to the rows that were asked for. Raises `ConfigError`, `CommandError`."""
        from runner.build.plan import build
        from runner.config.layers import Override

        if self.dataset is None:
            agent = f"--mcp {self.mcp}" if self.module is None else f"-m {self.module}"
            raise CommandError(f"`test {agent}` needs rows to play", "name them: `-d data.jsonl`")
        asked = {"max_turns": self.max_turns, "max_tokens": self.max_tokens, "temperature": self.temperature}
        settings = [
            Override.from_option("dataset.path", str(self.dataset.resolve()), f"-d {self.dataset}"),
            *option_settings(asked, _KEYS),
            *model_settings((self.model or MODEL, self.base_url, self.api_key), guess=True),
        ]
        if self.limit is not None and not self.offset:
            settings.append(Override.from_option("dataset.limit", self.limit, f"--limit {self.limit}"))
        module = Module(self.module, self.profile, self.overrides, _DEFAULTS, tuple(settings), self.mcp)
        more = row_settings(module.load(), self.offset, self.limit)
        return build(module.load(*more))


def run_agent_test(asked: AgentTest) -> Exit:
    """Play the rows, or step through them. 1 if one of them failed."""
    if asked.row is not None and not asked.interactive:
        raise CommandError("`--row` is for `--interactive`", f"`--offset {asked.row} --limit 1` plays that row alone")
    plan, shell = asked.plan(), console()
    if asked.interactive:
        from runner.cli.commands.debug import walk

        if asked.report is not None:
            raise CommandError("`-o` reports rows that were played by themselves", "leave it out with `--interactive`")
        walk(plan, "" if asked.row is None else str(asked.row), 0, as_json=False)
        return Exit.OK
    from runner.cli.event_loop import run_async

    began = perf_counter()
    played = run_async(_all(plan, shell))
    failed = sum(not _passed(outcome) for outcome in played)
    tokens = sum(outcome.usage.total_tokens for outcome in played)
    text = f"{len(played) - failed} passed" + (f", {failed} failed" if failed else "")
    shell.out(f"{(shell.data.bad if failed else shell.data.ok)(text)}  {tokens:,} tokens")
    if asked.report is not None:
        from json import dumps

        write_json(asked.report, dumps(_report(played, perf_counter() - began), indent=2, ensure_ascii=False))
        shell.say(f"report: {asked.report}")
    return Exit.USAGE if failed else Exit.OK


async def _all(plan: Plan, shell: Console) -> list[Outcome]:
    played = []
    async for outcome in _play(plan):
        played.append(outcome)
        _tell(outcome, shell)
    if played and _stops(played[-1]):
        assert plan.dataset is not None
        left = plan.dataset.count() - len(played)
        if left:
            shell.say(f"stopped: the next {left} rows would fail in the same way")
    return played


async def _play(plan: Plan) -> AsyncIterator[Outcome]:
    from runner.runtime.rollout import run_rollout

    assert plan.dataset is not None
    async with plan.open() as live:
        for row in plan.dataset.rows():
            outcome = await run_rollout(live, plan.request(row, 0))
            yield outcome
            if _stops(outcome):
                return


def _passed(outcome: Outcome) -> bool:
    return outcome.status in ("scored", "ungraded")


def _stops(outcome: Outcome) -> bool:
    """Whether the model would answer no other row either: no key, no such model, nobody there."""
    failure = outcome.failure
    return (
        failure is not None and failure.boundary == "model" and failure.kind in _ALL_ROWS and not outcome.sample.calls
    )


def _tell(outcome: Outcome, shell: Console) -> None:
    style, request = shell.data, outcome.request
    reward = "" if outcome.reward is None else f"  reward {outcome.reward:.3f}"
    facts = (
        f"{outcome.ended or outcome.stop_reason}  {outcome.usage.total_tokens:,} tokens  {_ms(outcome):,.0f} ms{reward}"
    )
    if _passed(outcome):
        shell.out(f"{style.ok('✓')} row {request.row_index}  {facts}")
        return
    message = "cancelled" if outcome.failure is None else outcome.failure.message
    shell.out(f"{style.bad('✗')} row {request.row_index}  {message}")


def _ms(outcome: Outcome) -> float:
    return float(outcome.timing.get("total", 0.0)) * 1000


def _report(played: list[Outcome], seconds: float) -> dict[str, Any]:
    """The report in the first generation's form."""
    passed = sum(map(_passed, played))
    return {
        "summary": {
            "total": len(played),
            "passed": passed,
            "failed": len(played) - passed,
            "total_duration_ms": round(seconds * 1000, 3),
            "total_tokens": sum(outcome.usage.total_tokens for outcome in played),
        },
        "results": [
            {
                "row_index": outcome.request.row_index,
                "success": _passed(outcome),
                "error": None if outcome.failure is None or _passed(outcome) else outcome.failure.message,
                "duration_ms": round(_ms(outcome), 3),
                "token_usage": {
                    "prompt_tokens": outcome.usage.input_tokens,
                    "completion_tokens": outcome.usage.output_tokens,
                    "total_tokens": outcome.usage.total_tokens,
                    "num_llm_calls": len(outcome.sample.calls),
                },
                "reward": outcome.reward if outcome.reward is not None else outcome.sample.agent_reward,
                "finish_reason": outcome.sample.info.get("finish_reason") or outcome.ended or outcome.stop_reason,
            }
            for outcome in played
        ],
    }
