"""What a run's records add up to, taken in one record at a time.

Memory is a few numbers a row, in arrays: a row is a slot, each metric a column, so fifty thousand rows cost
megabytes and a million rollouts are summed in the time it takes to read them.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.batch.statistics import UNIT, Bounds, ClusterSums, Estimate, cluster_mean, pass_all, pass_at

USAGE = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")


class Column:
    """Count and sum of one metric, by row slot."""

    __slots__ = ("counts", "sums")

    def __init__(self) -> None:
        self.counts = array("I")
        self.sums = array("d")

    def add(self, slot: int, value: float) -> None:
        if slot >= len(self.counts):
            missing = slot + 1 - len(self.counts)
            self.counts.extend([0] * missing)
            self.sums.extend([0.0] * missing)
        self.counts[slot] += 1
        self.sums[slot] += value

    def get(self, slot: int) -> tuple[int, float]:
        return (self.counts[slot], self.sums[slot]) if slot < len(self.counts) else (0, 0.0)

    def rows(self) -> Iterator[tuple[int, float]]:
        return zip(self.counts, self.sums, strict=True)

    def estimate(self, bounds: Bounds | None = None, *, binary: bool = False) -> Estimate:
        return cluster_mean(self.rows(), bounds, binary=binary)


@dataclass(slots=True)
class FailureFacts:
    """Failures with one signature: how often, where first, in whose words."""

    outcome: str
    boundary: str
    kind: str
    message: str
    first: dict[str, Any]
    count: int = 0


@dataclass(slots=True)
class GraderFacts:
    scores: Column = field(default_factory=Column)
    failed: int = 0
    low: float = float("inf")
    high: float = float("-inf")


class Tally:
    """Adds up current records (superseded ones must be left out by the caller).

    `threshold` is the reward from which an attempt passes. Rewards and passes count scored rollouts only; usage and
    cost count everything that was spent.
    """

    def __init__(self, threshold: float = 1.0) -> None:
        self.threshold = threshold
        self.slots: dict[str, int] = {}
        self.contents = array("q")
        """A fingerprint of each row's content, comparable within this process."""
        self.reward = Column()
        self.passed = Column()
        self.lowest = array("d")
        self.highest = array("d")
        self.outcomes: Counter[str] = Counter()
        self.stop_reasons: Counter[str] = Counter()
        self.by_stop: dict[str, Column] = {}
        self.graders: dict[str, GraderFacts] = {}
        self.failures: dict[str, FailureFacts] = {}
        self.groups: dict[str, dict[str, list[int]]] = {}
        self.seconds = array("d")
        self.turns = array("d")
        self.usage = dict.fromkeys(USAGE, 0)
        self.cost = 0.0
        self.costed = 0
        self.active = Activity()

    def add(self, record: Mapping[str, Any], groups: Mapping[str, Any] | None = None) -> None:
        """Count one record of the journal. `groups` are its row's groups, by default those the record was made with."""
        slot = self._slot(record, (record.get("groups") or {}) if groups is None else groups)
        status = str(record["outcome"])
        self.outcomes[status] += 1
        self.stop_reasons[str(record["stop_reason"])] += 1
        if status == "scored":
            self._add_reward(slot, float(record["reward"]), str(record["stop_reason"]))
        self._add_scores(slot, record.get("scores") or {})
        if record.get("failure"):
            self._add_failure(status, record)
        self._add_shape(record)
        self.spend(record)

    def spend(self, record: Mapping[str, Any]) -> None:
        """Count what a line cost, also one that was superseded: the money is gone all the same.

        A line that was graded again repeats what its rollout had spent; only what its judges asked for is new.
        """
        if record.get("regraded"):
            self._add_cost(record["regraded"].get("cost"))
            return
        usage, timing = record.get("usage") or {}, record.get("timing") or {}
        for name in USAGE:
            self.usage[name] += int(usage.get(name) or 0)
        self._add_cost(record.get("cost"))
        self.active.add(float(timing.get("started") or 0.0), float(timing.get("total") or 0.0))

    def _slot(self, record: Mapping[str, Any], groups: Mapping[str, Any]) -> int:
        row_id = str(record["row_id"])
        slot = self.slots.get(row_id)
        if slot is None:
            slot = self.slots[row_id] = len(self.slots)
            self.contents.append(hash((record.get("digests") or {}).get("row", "")))
            for column, value in groups.items():
                self.groups.setdefault(column, {}).setdefault(group_name(value), []).append(slot)
        return slot

    def _add_reward(self, slot: int, reward: float, stop_reason: str) -> None:
        self.reward.add(slot, reward)
        self.passed.add(slot, float(reward >= self.threshold))
        if (column := self.by_stop.get(stop_reason)) is None:
            column = self.by_stop[stop_reason] = Column()
        column.add(slot, reward)
        while len(self.lowest) <= slot:
            self.lowest.append(float("inf"))
            self.highest.append(float("-inf"))
        self.lowest[slot] = min(self.lowest[slot], reward)
        self.highest[slot] = max(self.highest[slot], reward)

    def _add_scores(self, slot: int, scores: Mapping[str, Any]) -> None:
        for name, score in scores.items():
            facts = self.graders.setdefault(name, GraderFacts())
            value = score.get("value")
            if value is None:
                facts.failed += 1
                continue
            facts.scores.add(slot, value)
            facts.low, facts.high = min(facts.low, value), max(facts.high, value)

    def _add_failure(self, status: str, record: Mapping[str, Any]) -> None:
        failure = record["failure"]
        key = f"{status} {signature(failure)}"
        facts = self.failures.get(key)
        if facts is None:
            first = {name: record.get(name) for name in ("row", "row_id", "attempt")}
            message = str(failure.get("message", ""))
            facts = FailureFacts(status, str(failure["boundary"]), str(failure["kind"]), message, first)
            self.failures[key] = facts
        facts.count += 1

    def _add_shape(self, record: Mapping[str, Any]) -> None:
        self.seconds.append(float((record.get("timing") or {}).get("total") or 0.0))
        self.turns.append(len(record.get("calls") or ()))

    def _add_cost(self, cost: float | None) -> None:
        if cost is not None:
            self.cost += cost
            self.costed += 1

    # --- what it adds up to

    @property
    def rollouts(self) -> int:
        return sum(self.outcomes.values())

    @property
    def tokens(self) -> int:
        return self.usage["input_tokens"] + self.usage["output_tokens"]

    def pass_at(self, k: int, slots: list[int] | None = None) -> Estimate:
        """The unbiased pass@k, averaged over the rows with at least `k` scored attempts."""
        return self._choice(pass_at, k, slots)

    def pass_all(self, k: int, slots: list[int] | None = None) -> Estimate:
        """pass^k in the same way."""
        return self._choice(pass_all, k, slots)

    def _choice(self, chance: Any, k: int, slots: list[int] | None) -> Estimate:
        sums = ClusterSums()
        count = 0
        for slot in range(len(self.passed.counts)) if slots is None else slots:
            attempts, passed = self.passed.get(slot)
            if attempts >= k:
                sums.add(1, chance(attempts, int(passed), k))
                count += attempts
        estimate = sums.estimate(UNIT)
        return Estimate(estimate.value, estimate.low, estimate.high, count, estimate.rows, estimate.error)

    def variance(self) -> dict[str, Any]:
        """Of the rows with two or more scored attempts: how many have attempts that all got the same reward."""
        compared = same = 0
        for slot, count in enumerate(self.reward.counts):
            if count >= 2:
                compared += 1
                same += self.lowest[slot] == self.highest[slot]
        return {"rows": compared, "zero": same, "share": same / compared if compared else None}


class Activity:
    """Seconds in which at least one rollout ran, across the run's commands: what a killed one's wall clock was."""

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def add(self, started: float, seconds: float) -> None:
        if started <= 0:
            return
        low, high = started, started + max(0.0, seconds)
        kept: list[tuple[float, float]] = []
        # Records come in order of their end, so an overlap is almost always with the last few spans.
        while self.spans and self.spans[-1][1] >= low:
            span = self.spans.pop()
            if span[0] > high:
                kept.append(span)
            else:
                low, high = min(low, span[0]), max(high, span[1])
        self.spans.append((low, high))
        self.spans.extend(reversed(kept))

    @property
    def seconds(self) -> float:
        return sum(high - low for low, high in self.spans)


def signature(failure: Mapping[str, Any]) -> str:
    """`Failure.signature` of a failure read back from a record."""
    from runner.records.failure import Failure

    return Failure(failure["boundary"], str(failure["kind"]), str(failure.get("message", ""))).signature()


def group_values(data: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """A row's values of some columns; dots reach into nested objects where no column has the whole name."""
    return {column: _value(data, column) for column in columns}


def _value(data: Mapping[str, Any], column: str) -> Any:
    if column in data:
        return data[column]
    value: Any = data
    for part in column.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def group_name(value: Any) -> str:
    """A group's name as shown: text as it is, everything else as JSON."""
    from json import dumps

    return value if isinstance(value, str) else dumps(value, ensure_ascii=False, sort_keys=True)
