"""`summary.json`: everything a run says about itself, computed from its journal alone.

It is a pure function of the records and the manifest, so a killed run loses nothing by having none: it is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.batch.statistics import UNIT, Bounds, cluster_mean, ladder, quantile
from runner.batch.tally import GraderFacts, Tally
from runner.records.rollout import STATUSES

SCHEMA = "summary/1"
_MOST_FAILURES = 50
_MOST_GROUPS = 200


@dataclass(frozen=True, slots=True)
class Scope:
    """What the run set out to do, beside what its records say.

    `rows` and `attempts` are what was asked for; `reward_range` is `[reward] range` or None; `stopped` says why the
    run was stopped while something was left to do; `measured` names graders outside the reward.
    """

    name: str
    rows: int
    attempts: int
    reward_range: Bounds | None = None
    stopped: str = ""
    measured: Sequence[str] = ()


def summarise(tally: Tally, scope: Scope) -> dict[str, Any]:
    """The summary as it stands in `summary.json`."""
    planned = scope.rows * scope.attempts
    outcomes: dict[str, int] = {status: tally.outcomes.get(status, 0) for status in STATUSES}
    complete = tally.rollouts >= planned and outcomes["cancelled"] == 0 and not scope.stopped
    steps = [k for k in ladder(scope.attempts) if any(count >= k for count in tally.passed.counts)]
    bounds = reward_bounds(tally, scope.reward_range)
    reward = tally.reward.estimate(bounds, binary=_is_binary(tally))
    return {
        "schema": SCHEMA,
        "name": scope.name,
        "complete": complete,
        "stopped": scope.stopped,
        "rows": scope.rows,
        "attempts": scope.attempts,
        "rollouts": {"planned": planned, "recorded": tally.rollouts, "missing": max(0, planned - tally.rollouts)},
        "outcomes": outcomes,
        "reward": reward.to_json(),
        "pass_threshold": tally.threshold,
        "pass_at": {str(k): tally.pass_at(k).to_json("value") for k in steps},
        "pass_all": {str(k): tally.pass_all(k).to_json("value") for k in steps},
        "graders": {name: _grader(facts, name in scope.measured) for name, facts in sorted(tally.graders.items())},
        "groups": _groups(tally, bounds),
        "stop_reasons": dict(tally.stop_reasons.most_common()),
        "reward_by_stop_reason": {name: column.estimate(bounds).to_json()
                                  for name, column in sorted(tally.by_stop.items())},
        "failures": _failures(tally),
        "variance": tally.variance(),
        "bounds": _bounds(tally, planned, bounds),
        "usage": {**tally.usage, "total_tokens": tally.tokens},
        "cost": tally.cost if tally.costed else None,
        "wall_seconds": round(tally.active.seconds, 3),
        "rollout_seconds": _spread(tally.seconds),
        "calls": _spread(tally.turns),
        "counts": counts(outcomes, tally.rollouts, planned),
    }  # fmt: skip


def counts(outcomes: Mapping[str, int], recorded: int, planned: int) -> str:
    """Which outcomes the numbers count, in one sentence."""
    left = {name: outcomes[name] for name in ("ungraded", "failed", "cancelled") if outcomes.get(name)}
    if missing := planned - recorded:
        left["not run"] = missing
    out = ", ".join(f"{count:,} {name}" for name, count in left.items())
    text = f"reward, pass@k and graders count the {outcomes.get('scored', 0):,} scored of {planned:,} rollouts"
    return f"{text}; left out, never counted as 0: {out}" if out else text


def reward_bounds(tally: Tally, declared: Bounds | None) -> Bounds | None:
    """The range of the reward: the declared one, else 0 to 1 where every reward so far lies there."""
    if declared is not None:
        return declared
    inside = all(low >= 0.0 for low in tally.lowest) and all(high <= 1.0 for high in tally.highest)
    return UNIT if inside else None


def _is_binary(tally: Tally) -> bool:
    """True when every reward so far is 0 or 1."""
    ends = (0.0, 1.0, float("inf"), float("-inf"))
    return all(low in ends and high in ends for low, high in zip(tally.lowest, tally.highest, strict=True)) and all(
        total == int(total) for total in tally.reward.sums
    )


def _grader(facts: GraderFacts, measured: bool) -> dict[str, Any]:
    unit = facts.low >= 0.0 and facts.high <= 1.0
    estimate = facts.scores.estimate(UNIT if unit else None)
    spread = {"least": facts.low, "most": facts.high} if estimate.n else {}
    return {**estimate.to_json(), "failed": facts.failed, "measured": measured, **spread}


def _groups(tally: Tally, bounds: Bounds | None) -> dict[str, Any]:
    return {
        column: {value: _group(tally, slots, bounds) for value, slots in _largest(values)}
        for column, values in sorted(tally.groups.items())
    }


def _largest(values: Mapping[str, list[int]]) -> list[tuple[str, list[int]]]:
    """The groups by name; of very many, the largest: a column of ids makes no readable table."""
    kept = sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))[:_MOST_GROUPS]
    return sorted(kept)


def _group(tally: Tally, slots: list[int], bounds: Bounds | None) -> dict[str, Any]:
    reward = cluster_mean((tally.reward.get(slot) for slot in slots), bounds)
    return {"rows": len(slots), "reward": reward.to_json(), "pass_at": {"1": tally.pass_at(1, slots).to_json("value")}}


def _failures(tally: Tally) -> list[dict[str, Any]]:
    ranked = sorted(tally.failures.items(), key=lambda item: (-item[1].count, item[0]))
    return [
        {
            "signature": key.split(" ", 1)[1],
            "outcome": facts.outcome,
            "boundary": facts.boundary,
            "kind": facts.kind,
            "count": facts.count,
            "first": facts.first,
            "message": facts.message,
        }
        for key, facts in ranked[:_MOST_FAILURES]
    ]


def _bounds(tally: Tally, planned: int, bounds: Bounds | None) -> dict[str, float] | None:
    """The mean if every rollout without a reward had got the worst, or the best, that the range allows."""
    scored = tally.outcomes.get("scored", 0)
    total = max(planned, tally.rollouts)
    if bounds is None or total == 0:
        return None
    known = sum(tally.reward.sums)
    missing = total - scored
    return {"worst": (known + missing * bounds[0]) / total, "best": (known + missing * bounds[1]) / total}


def _spread(values: Any) -> dict[str, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    return {
        "mean": sum(ordered) / len(ordered),
        "p50": quantile(ordered, 0.5),
        "p95": quantile(ordered, 0.95),
        "max": ordered[-1],
    }


def metric(summary: Mapping[str, Any], name: str, bound: str = "value") -> float | None:
    """A number of the summary by the name that gates use, or None where there is none.

    `reward`, `pass_rate` (pass@1), `pass@k`, `pass^k`, `grader.NAME` (or `grader:NAME`) have the bounds `value`, `low`
    (`lower`) and `high` (`upper`); `failed` and `ungraded` are shares of the planned rollouts, `cost` is USD.
    Raises KeyError for a name that is none of these.
    """
    if name == "cost":
        return None if summary["cost"] is None else float(summary["cost"])
    if name in STATUSES:
        planned = summary["rollouts"]["planned"]
        return summary["outcomes"][name] / planned if planned else None
    found = _estimate_of(summary, name)
    if found is None:
        return None
    key = {"lower": "low", "upper": "high"}.get(bound, bound)
    value = found.get("value", found.get("mean")) if key == "value" else found[key]
    return None if value is None else float(value)


def _estimate_of(summary: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None
    if name == "reward":
        found = summary["reward"]
    elif name == "pass_rate":
        found = summary["pass_at"].get("1")
    elif name.startswith("pass@"):
        found = summary["pass_at"].get(name[5:])
    elif name.startswith("pass^"):
        found = summary["pass_all"].get(name[5:])
    elif name.startswith(("grader.", "grader:")):
        found = summary["graders"].get(name[7:])
    else:
        raise KeyError(name)
    return found
