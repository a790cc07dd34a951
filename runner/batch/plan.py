"""What an eval will do before it does it: re-use, grade again, or run, for each row and attempt, and why.

Only facts that matter decide: a changed result fact or row plays again, a changed grade fact grades again, an
operational key changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from runner.batch.figures import many
from runner.batch.history import History, Past, Version
from runner.batch.reasons import changes, reason, told
from runner.batch.tally import group_name, group_values
from runner.config.digest import digest
from runner.datasets.dataset import Row

Facts: TypeAlias = Mapping[str, Mapping[str, Any]]
Groups: TypeAlias = tuple[str, ...]
Choice: TypeAlias = Literal["new", "reuse", "regrade", "rerun"]


@dataclass(frozen=True, slots=True)
class Digests:
    """The digests of one configuration, and of a record made with it."""

    config: str
    grading: str

    @classmethod
    def of(cls, facts: Facts) -> Digests:
        return cls(digest(facts.get("result", {})), digest(facts.get("grade", {})))

    @property
    def version(self) -> Version:
        return Version(self.config, self.grading)

    def record(self, row_digest: str) -> dict[str, str]:
        """`digests` of a journal line: `result` and `grade` cover the configuration and the row; `config` and
        `grading` the configuration alone and `row` the row alone, so that a plan can say which of them changed."""
        return {
            "result": _together(self.config, row_digest),
            "grade": _together(self.grading, row_digest),
            "config": self.config,
            "grading": self.grading,
            "row": row_digest,
        }


@lru_cache(maxsize=1024)
def _together(facts: str, row: str) -> str:
    """One digest of both. The attempts of a row ask for the same one."""
    return digest({"config": facts, "row": row})


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do for one row and attempt; `cause` groups decisions of one reason."""

    choice: Choice
    cause: str = ""
    past: Past | None = None


class Chooser:
    """Decides for one configuration against one history.

    Failed rollouts stay as they are, recorded and counted, unless `retry_failed`: then failed ones are played again and
    ungraded ones graded again. Cancelled ones are owed, always.
    """

    def __init__(self, history: History, digests: Digests, *, retry_failed: bool = False) -> None:
        self._history = history
        self._now = history.version(digests.version)
        self._digests = digests
        self._retry_failed = retry_failed

    def decide(self, row: Row, attempt: int) -> Decision:
        """What to do for this row and attempt."""
        past = self._history.find(row.id, attempt)
        if past is None:
            return Decision("new")
        if past.status == "cancelled":
            return Decision("new", "cancelled", past)
        was = self._history.versions[past.version]
        if was.result != self._digests.config:
            return Decision("rerun", f"config {was.result}", past)
        if past.content != hash(row.digest):
            return Decision("rerun", f"row {row.id}", past)
        return self._same_result(past, was)

    def leaves_out(self, wanted: Collection[int], attempts: int) -> bool:
        """True if a row was recorded with this configuration that is not `wanted`, by its `row_key`."""
        recorded = self._history.contents(self._digests.config, attempts)
        return any(row_key(row_id, content) not in wanted for row_id, content in recorded)

    def _same_result(self, past: Past, was: Version) -> Decision:
        if past.status == "failed":
            return Decision("rerun", "failed", past) if self._retry_failed else Decision("reuse", "", past)
        if was.grade != self._digests.grading:
            return Decision("regrade", f"grading {was.grade}", past)
        if past.status == "ungraded" and self._retry_failed:
            return Decision("regrade", "ungraded", past)
        return Decision("reuse", "", past)


@dataclass(slots=True)
class RunPlan:
    """The counts of a plan, and its reasons in words."""

    rows: int
    attempts: int
    counts: Counter[Choice]
    causes: Counter[tuple[Choice, str]]
    reasons: list[str] = field(default_factory=list)
    wanted: dict[int, Groups] = field(default_factory=dict)
    """`row_key` of every row and its groups: the summary counts these rows and no others."""
    leaves_out: bool = False
    """True if rows were recorded with this very configuration that are not wanted now."""
    spent_cost: float = 0.0
    """USD that earlier commands have spent."""
    spent_tokens: int = 0

    @property
    def total(self) -> int:
        return self.rows * self.attempts

    @property
    def to_run(self) -> int:
        return self.counts["new"] + self.counts["rerun"]

    def text(self) -> str:
        """One line of counts, then a sentence a reason."""
        size = f"{many(self.rows, 'row')} x {many(self.attempts, 'attempt')}"
        parts = [f"{self.to_run:,} to run"]
        if self.counts["regrade"]:
            parts.insert(0, f"{self.counts['regrade']:,} re-graded")
        if self.counts["reuse"]:
            parts.insert(0, f"{self.counts['reuse']:,} re-used")
        return " ".join([f"{size}: {', '.join(parts)}.", *self.reasons])

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "attempts": self.attempts,
            "total": self.total,
            "reuse": self.counts["reuse"],
            "regrade": self.counts["regrade"],
            "rerun": self.counts["rerun"],
            "new": self.counts["new"],
            "reasons": self.reasons,
        }


@dataclass(frozen=True, slots=True)
class Explainer:
    """What reasons are made of: the facts of now, those of the run's earlier versions, and the place of each key."""

    facts: Facts
    earlier: Sequence[Facts]
    place: Callable[[str], str]


def make_plan(
    rows: Iterable[Row], attempts: int, chooser: Chooser, explainer: Explainer, group_by: Sequence[str] = ()
) -> RunPlan:
    """Count what each row and attempt needs, streaming."""
    counts: Counter[Choice] = Counter()
    causes: Counter[tuple[Choice, str]] = Counter()
    wanted: dict[int, Groups] = {}
    shared: dict[Groups, Groups] = {}
    total = 0
    for row in rows:
        total += 1
        for attempt in range(attempts):
            decision = chooser.decide(row, attempt)
            counts[decision.choice] += 1
            if decision.cause:
                causes[decision.choice, decision.cause] += 1
        groups = tuple(group_name(value) for value in group_values(row.data, group_by).values())
        wanted[row_key(row.id, hash(row.digest))] = shared.setdefault(groups, groups)
    plan = RunPlan(total, attempts, counts, causes, wanted=wanted, leaves_out=chooser.leaves_out(wanted, attempts))
    plan.reasons = list(_reasons(causes, explainer))
    return plan


def row_key(row_id: str, content: int) -> int:
    """What a row is known by within this process; `content` is the hash of its digest."""
    return hash((row_id, content))


def _reasons(causes: Counter[tuple[Choice, str]], explainer: Explainer) -> Iterator[str]:
    facts, place = explainer.facts, explainer.place
    by_result = {digest(old.get("result", {})): old for old in explainer.earlier}
    by_grade = {digest(old.get("grade", {})): old for old in explainer.earlier}
    rows = sorted({cause[4:] for _, cause in causes if cause.startswith("row ")})
    told: set[str] = set()
    for (choice, cause), count in causes.items():
        kind, _, key = cause.partition(" ")
        if kind == "config":
            yield from _once(told, f"Re-run because {_why(by_result.get(key), facts, 'result', place)}.")
        elif kind == "grading":
            yield from _once(told, f"Re-graded because {_why(by_grade.get(key), facts, 'grade', place)}.")
        elif choice == "rerun" and kind == "failed":
            yield f"{count:,} failed before and will be played again."
        elif kind == "ungraded":
            yield f"{count:,} could not be graded before and will be graded again."
        elif kind == "cancelled":
            yield f"{count:,} had been cancelled."
    if rows:
        yield f"Re-run because the content of {_row_names(rows)} changed."


def _once(told: set[str], text: str) -> Iterator[str]:
    if text not in told:
        told.add(text)
        yield text


def _why(before: Facts | None, facts: Facts, part: str, place: Callable[[str], str]) -> str:
    if before is None:
        return "they were made by a configuration that the manifest does not remember"
    was, now = before.get(part, {}), facts.get(part, {})
    # A key that only another version of ours knows may be all that differs.
    return reason(told(was, now) or changes(was, now), place)


def _row_names(rows: Sequence[str]) -> str:
    if len(rows) == 1:
        return f"row {rows[0]}"
    if len(rows) <= 3:
        return f"rows {', '.join(rows[:-1])} and {rows[-1]}"
    return f"{len(rows):,} rows ({', '.join(rows[:3])}, …)"
