"""Two runs of the same rows: what got better, what got worse, and whether that could be chance.

Rows are paired by id. A row that one side has no score for is listed, never imputed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.batch.paired import Difference, flip_test, paired_difference
from runner.batch.reasons import Change, told
from runner.batch.tally import Column, Tally


class NotComparable(Exception):
    """The two runs answer different questions. The message says how they differ."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs: its name as the user typed it, its tally, and what its manifest says.

    `facts` holds the parts "result", "grade" and "operation"; `dataset` is the dataset's fingerprint.
    """

    run: str
    tally: Tally
    facts: Mapping[str, Mapping[str, Any]]
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A. Differences are B minus A, over the rows that both have scored."""

    a: str
    b: str
    rows: int
    reward: Difference
    pass_at_1: Difference
    graders: Mapping[str, Difference]
    means: Mapping[str, tuple[float | None, float | None]]
    won: Sequence[str]
    lost: Sequence[str]
    flip_p: float
    only_a: Sequence[str]
    only_b: Sequence[str]
    changed: Sequence[Change]
    warnings: Sequence[str] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "compare/1",
            "a": self.a,
            "b": self.b,
            "rows": self.rows,
            "reward": self._named("reward", self.reward),
            "pass_at": {"1": self._named("pass@1", self.pass_at_1)},
            "graders": {name: self._named(f"grader.{name}", value) for name, value in self.graders.items()},
            "flips": {"fail_to_pass": list(self.won), "pass_to_fail": list(self.lost), "p": self.flip_p},
            "missing": {"only_a": list(self.only_a), "only_b": list(self.only_b)},
            "changed": [change.to_json() for change in self.changed],
            "warnings": list(self.warnings),
        }

    def _named(self, name: str, value: Difference) -> dict[str, Any]:
        a, b = self.means[name]
        return {"a": a, "b": b, **value.to_json()}


def compare(a: Side, b: Side, *, force: bool = False, seed: int = 0) -> Comparison:
    """Compare run B with run A. Raises `NotComparable` when graders or rows differ, unless `force`."""
    warnings = [*_other_graders(a, b), *_other_rows(a, b)]
    if warnings and not force:
        raise NotComparable("; ".join(warnings))
    pairs = _pairs(a.tally, b.tally)
    won, lost = _flips(a.tally, b.tally, pairs)
    means: dict[str, tuple[float | None, float | None]] = {}

    def differ(name: str, ours: Column, theirs: Column) -> Difference:
        both = list(_means(ours, theirs, pairs))
        means[name] = _mean(first for first, _ in both), _mean(second for _, second in both)
        return paired_difference([second - first for first, second in both], seed=seed)

    shared = sorted(a.tally.graders.keys() & b.tally.graders.keys())
    return Comparison(
        a=a.run,
        b=b.run,
        rows=len(pairs),
        reward=differ("reward", a.tally.reward, b.tally.reward),
        pass_at_1=differ("pass@1", a.tally.passed, b.tally.passed),
        graders={
            name: differ(f"grader.{name}", a.tally.graders[name].scores, b.tally.graders[name].scores)
            for name in shared
        },
        means=means,
        won=won,
        lost=lost,
        flip_p=flip_test(len(won), len(lost)),
        only_a=_unpaired(a.tally, b.tally),
        only_b=_unpaired(b.tally, a.tally),
        changed=[change for part in ("result", "grade") for change in _changes(a, b, part)],
        warnings=warnings,
    )


def _changes(a: Side, b: Side, part: str) -> list[Change]:
    return told(a.facts.get(part, {}), b.facts.get(part, {}))


def _other_graders(a: Side, b: Side) -> list[str]:
    found = []
    if a.tally.threshold != b.tally.threshold:
        found.append(f"the pass thresholds differ ({a.tally.threshold:g} and {b.tally.threshold:g})")
    if changed := _changes(a, b, "grade"):
        names = ", ".join(change.key for change in changed[:5])
        found.append(f"the graders differ ({names}{', …' if len(changed) > 5 else ''})")
    return found


def _other_rows(a: Side, b: Side) -> list[str]:
    if a.dataset == b.dataset:
        return []
    ours, theirs = a.tally, b.tally
    shared = ours.slots.keys() & theirs.slots.keys()
    if not shared:
        return ["the datasets have no row in common"]
    other = sorted(row for row in shared if ours.contents[ours.slots[row]] != theirs.contents[theirs.slots[row]])
    if not other:
        return []
    names = ", ".join(other[:5])
    return [f"the datasets differ: {len(other):,} of {len(shared):,} shared rows have other content ({names}, …)"
            if len(other) > 5 else f"the datasets differ in the content of row {names}"]  # fmt: skip


def _pairs(a: Tally, b: Tally) -> list[tuple[str, int, int]]:
    """The rows that both have scored: id and both slots, in A's order."""
    return [
        (row, slot, b.slots[row])
        for row, slot in a.slots.items()
        if row in b.slots and a.reward.get(slot)[0] and b.reward.get(b.slots[row])[0]
    ]


def _unpaired(a: Tally, b: Tally) -> list[str]:
    """Rows with a score in `a` and none in `b`."""
    return [
        row
        for row, slot in a.slots.items()
        if a.reward.get(slot)[0] and not (row in b.slots and b.reward.get(b.slots[row])[0])
    ]


def _means(ours: Column, theirs: Column, pairs: Sequence[tuple[str, int, int]]) -> Iterator[tuple[float, float]]:
    for _, slot, other in pairs:
        (count, total), (their_count, their_total) = ours.get(slot), theirs.get(other)
        if count and their_count:
            yield total / count, their_total / their_count


def _mean(values: Iterator[float]) -> float | None:
    from statistics import fmean

    found = list(values)
    return fmean(found) if found else None


def _flips(a: Tally, b: Tally, pairs: Sequence[tuple[str, int, int]]) -> tuple[list[str], list[str]]:
    """Rows that went fail to pass, and pass to fail. A row passes when at least half of its scored attempts do."""
    won, lost = [], []
    for row, slot, other in pairs:
        before, after = _passes(a, slot), _passes(b, other)
        if after and not before:
            won.append(row)
        elif before and not after:
            lost.append(row)
    return won, lost


def _passes(tally: Tally, slot: int) -> bool:
    count, passed = tally.passed.get(slot)
    return 2 * passed >= count
