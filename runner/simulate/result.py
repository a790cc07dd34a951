"""What a simulation amounts to: counts, latencies and violations as one JSON object, and the exit code they deserve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from runner.simulate.controller import Controller
from runner.simulate.history import History
from runner.simulate.ledger import Ledger
from runner.simulate.load import Load
from runner.simulate.rules import RULES

_SHOWN = 5
_INCOMPLETE = "verdict-missing"


@dataclass(frozen=True, slots=True)
class Result:
    """`facts` is the whole report as JSON."""

    facts: dict[str, Any]

    @property
    def exit_code(self) -> int:
        code: int = self.facts["exit_code"]
        return code


def measured(
    name: str,
    dialects: Sequence[str],
    url: str,
    ledger: Ledger,
    load: Load,
    controller: Controller,
    interrupted: bool = False,
) -> Result:
    """The report of a load that has ended."""
    played, seconds = load.played, max(1e-9, load.ended - load.began)
    verdicts = [each for each in played if each.verdict is not None]
    rewards = [each.verdict.reward for each in verdicts if each.verdict and each.verdict.reward is not None]
    facts: dict[str, Any] = {
        "name": name,
        "server": url,
        "dialects": list(dialects),
        "interrupted": interrupted,
        "rollouts": {
            "posted": len(played),
            "accepted": sum(each.accepted for each in played),
            "verdicts": len(verdicts),
            "cancelled": sum(each.cancelled is not None and each.verdict is None for each in played),
            "missing": sum(_missing(each) for each in played),
            "unacknowledged": sum(each.owed for each in played),
        },
        "notes": load.notes,
        "seconds": round(seconds, 3),
        "rollouts_per_second": round(len(verdicts) / seconds, 2),
        "latency": {
            "accept": quantiles(_spans(played, "posted", "answered")),
            "first_chat": quantiles(_spans(played, "posted", "first_chat")),
            "verdict": quantiles(_spans(played, "posted", "verdict_at")),
        },
        "outcomes": dict(Counter(each.outcome() for each in played).most_common()),
        "by_dialect": {dialect: _dialect([each for each in played if each.dialect == dialect]) for dialect in dialects},
        "reward": {"n": len(rewards), "mean": round(sum(rewards) / len(rewards), 4) if rewards else None},
        "failures": _failures(verdicts),
        "requests": dict(controller.requests),
        "load": dict(load.counts),
        "trouble": load.last_trouble,
        "faults": dict(controller.faults.most_common()),
        "violations": violations(ledger),
    }
    facts["exit_code"] = _exit_code(facts)
    return Result(facts)


def _missing(history: History) -> bool:
    return history.verdict is None and history.cancelled is None


def _exit_code(facts: dict[str, Any]) -> int:
    if facts["interrupted"]:
        return 130
    if facts["rollouts"]["missing"]:
        return 3
    return 2 if facts["violations"] else 0


def violations(ledger: Ledger) -> list[dict[str, Any]]:
    """Every rule that was broken: how often, and the first pieces of evidence."""
    found = []
    for rule, count in ledger.counts.most_common():
        evidence = [each.to_json() for each in ledger.violations[rule][:_SHOWN]]
        found.append({"rule": rule, "trap": RULES[rule].trap, "says": RULES[rule].says, "count": count,
                      "incomplete": rule == _INCOMPLETE, "evidence": evidence})  # fmt: skip
    return found


def _dialect(played: Sequence[History]) -> dict[str, Any]:
    return {
        "posted": len(played),
        "outcomes": dict(Counter(each.outcome() for each in played).most_common()),
        "verdict": quantiles(_spans(played, "posted", "verdict_at")),
    }


def _failures(verdicts: Iterable[History]) -> list[dict[str, Any]]:
    """What failed rollouts said, most frequent first, with ids taken out so that they can be counted."""
    said: Counter[str] = Counter()
    for history in verdicts:
        if history.verdict is not None and history.verdict.status != "success":
            words = [channel.first.message for channel in history.channels.values() if channel.first is not None]
            word = next((word for word in words if word), "no word why")
            said[word.replace(history.rollout_id, "ID")[:200]] += 1
    return [{"message": message, "count": count} for message, count in said.most_common(10)]


def _spans(played: Iterable[History], begin: str, end: str) -> list[float]:
    pairs = ((getattr(each, begin), getattr(each, end)) for each in played)
    return [later - sooner for sooner, later in pairs if sooner is not None and later is not None]


def quantiles(values: list[float]) -> dict[str, float | int | None]:
    """p50, p90, p99 and the largest, in seconds; None without values."""
    values.sort()
    found: dict[str, float | int | None] = {"n": len(values)}
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        index = min(len(values) - 1, int(share * len(values)))
        found[name] = round(values[index], 6) if values else None
    return found
