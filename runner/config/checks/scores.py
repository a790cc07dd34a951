"""Scores to reward to gates: weights that name graders, gates that can hold, ranges that are ranges."""

from __future__ import annotations

import re

from runner.config.checks.checking import Checking
from runner.config.reference import Reference
from runner.config.reward import RewardGate

METRICS = ("reward", "pass_rate", "scored", "ungraded", "failed", "cancelled", "cost")
"""What an eval gate may look at, beside `pass@K`, `pass^K` and `grader:NAME`."""

_SHARES = ("pass_rate", "scored", "ungraded", "failed", "cancelled")


def check_scores(check: Checking) -> None:
    """`[reward]` and the gates of `[eval]` fit the graders of the file."""
    names = _graders(check)
    if not names:
        if check.config.graders == {} and not check.loaded.is_broken(("graders",)):
            _no_graders(check)
        return
    _weights(check, names)
    _reward_gates(check, names)
    _range(check)
    _eval_gates(check, names)


def _graders(check: Checking) -> list[str]:
    table = check.loaded.tree.get("graders")
    return list(table) if isinstance(table, dict) else []


def _no_graders(check: Checking) -> None:
    if check.config is not None and isinstance(check.config.agent, Reference):
        return  # code of the user's own may give the reward
    if check.is_set(("dataset",)) or any(key in check.loaded.tree for key in ("reward", "eval", "dataset")):
        section = next(key for key in ("reward", "eval", "dataset") if key in check.loaded.tree)
        message = "the file has no grader, so no rollout gets a reward"
        check.warn("no-effect", (section,), message, "add `[graders.NAME]`", key=True)


def _weights(check: Checking, names: list[str]) -> None:
    reward = check.config.reward
    for index, name in enumerate(reward.measured):
        if name not in names:
            check.unknown("unknown-grader", ("reward", "measured", index), "grader", name, names)
    for name in reward.weights:
        path = ("reward", "weights", name)
        if name not in names:
            check.unknown("unknown-grader", path, "grader", name, names, key=True)
        elif name in reward.measured:
            related = [(check.loaded.origins.value_place(("reward", "measured")), "measured here")]
            message = f"`{name}` is only measured, so its weight counts for nothing"
            check.report("unused-weight", path, message, "remove one of the two", key=True, related=related)
    counted = [name for name in names if name not in reward.measured]
    if not counted:
        check.report(
            "unused-weight", ("reward", "measured"), "every grader is only measured, so nothing makes a reward"
        )
    elif all(reward.weights.get(name, 1.0) == 0 for name in counted):
        check.report(
            "unused-weight",
            ("reward", "weights"),
            "all weights are zero, so nothing makes a reward",
            "give one more than 0",
        )
    elif reward.weights and reward.combine in ("min", "product", "all"):
        message = f'`combine = "{reward.combine}"` has no use for weights'
        check.warn("unused-weight", ("reward", "weights"), message, "remove them", key=True)


def _score_range(check: Checking, name: str) -> tuple[float, float]:
    grader = check.config.graders.get(name)
    if grader is None or grader.kind == "python":
        return (float("-inf"), float("inf"))
    return (0.0, 1.0)


def _reward_gates(check: Checking, names: list[str]) -> None:
    for index, gate in enumerate(check.config.reward.gates):
        path = ("reward", "gates", index)
        if (gate.below is None) == (gate.above is None):
            label = "add one" if gate.below is None else "found `below` and `above`"
            check.report("one-of", path, f"`reward.gates[{index}]` takes exactly one of `below`, `above`", label)
        elif gate.grader not in names:
            check.unknown("unknown-grader", (*path, "grader"), "grader", gate.grader, names)
        else:
            _reward_gate(check, index, gate)


def _reward_gate(check: Checking, index: int, gate: RewardGate) -> None:
    low, high = _score_range(check, gate.grader)
    path = ("reward", "gates", index)
    scores = f"scores of `{gate.grader}` are {low:g} to {high:g}"
    if gate.below is not None and gate.below <= low:
        check.report(
            "gate-never", (*path, "below"), f"no score is below {gate.below:g}, so this gate never closes", scores
        )
    elif gate.below is not None and gate.below > high:
        check.report(
            "gate-never",
            (*path, "below"),
            f"every score is below {gate.below:g}, so this gate always closes",
            scores,
        )
    elif gate.above is not None and gate.above >= high:
        check.report(
            "gate-never", (*path, "above"), f"no score is above {gate.above:g}, so this gate never closes", scores
        )
    elif gate.above is not None and gate.above < low:
        check.report(
            "gate-never",
            (*path, "above"),
            f"every score is above {gate.above:g}, so this gate always closes",
            scores,
        )


def _range(check: Checking) -> None:
    bounds = check.config.reward.range
    if bounds is None:
        return
    low, high = bounds
    if low >= high:
        check.report(
            "out-of-range",
            ("reward", "range"),
            f"`reward.range` begins at {low:g} and ends at {high:g}",
            "the lower bound comes first",
        )
        return
    on_limit = check.config.limits.on_limit
    if on_limit.reward is not None and not low <= on_limit.reward <= high:
        check.report(
            "out-of-range",
            ("limits", "on_limit"),
            f"the reward {on_limit.reward:g} is outside `reward.range`",
            f"{low:g} to {high:g}",
        )
    for index, gate in enumerate(check.config.reward.gates):
        if not low <= gate.reward <= high:
            path = ("reward", "gates", index, "reward")
            where = path if check.is_set(path) else path[:-1]
            check.report(
                "out-of-range", where, f"the reward {gate.reward:g} is outside `reward.range`", f"{low:g} to {high:g}"
            )


def _eval_gates(check: Checking, names: list[str]) -> None:
    for index, gate in enumerate(check.config.eval.gates):
        path = ("eval", "gates", index)
        bounds = _metric(check, index, gate.metric, names)
        if gate.min is None and gate.max is None:
            check.report("one-of", path, f"`eval.gates[{index}]` takes `min`, `max` or both", "add one")
        elif gate.min is not None and gate.max is not None and gate.min > gate.max:
            check.report(
                "gate-never", path, f"nothing is at least {gate.min:g} and at most {gate.max:g}", "lower `min`"
            )
        elif bounds is not None and gate.min is not None and gate.min > bounds[1]:
            message = f"`{gate.metric}` is never {gate.min:g} or more, so this gate never holds"
            check.report("gate-never", (*path, "min"), message, f"at most {bounds[1]:g}")
        elif bounds is not None and gate.max is not None and gate.max < bounds[0]:
            message = f"`{gate.metric}` is never {gate.max:g} or less, so this gate never holds"
            check.report("gate-never", (*path, "max"), message, f"at least {bounds[0]:g}")


def _metric(check: Checking, index: int, metric: str, names: list[str]) -> tuple[float, float] | None:
    """The values `metric` can have, or None after reporting that there is no such metric."""
    path = ("eval", "gates", index, "metric")
    at_k = re.fullmatch(r"pass[@^](\d+)", metric)
    if at_k:
        k, attempts = int(at_k[1]), check.config.eval.attempts
        if k < 1:
            check.report("bad-choice", path, f"there is no metric `{metric}`", "the first is `pass@1`")
        elif k > attempts:
            message = f"`{metric}` needs {k} attempts, and `eval.attempts` is {attempts}"
            label = f"set `eval.attempts = {k}`, or more"
            related = [(check.loaded.origins.value_place(("eval", "attempts")), "set here")]
            check.report("gate-never", path, message, label, related=related)
        return (0.0, 1.0)
    if metric.startswith("grader:"):
        if metric[7:] not in names:
            check.unknown("unknown-grader", path, "grader", metric[7:], names)
            return None
        return _score_range(check, metric[7:])
    if metric in METRICS:
        if metric == "reward":
            return check.config.reward.range or (float("-inf"), float("inf"))
        return (0.0, 1.0) if metric in _SHARES else (0.0, float("inf"))
    check.unknown("bad-choice", path, "metric", metric, [*METRICS, "pass@1", "pass^1", "grader:NAME"])
    return None
