"""The formats, and the pass over a run that writes one of them.

Rows come in the order of the dataset and its attempts, and hold no time and no path, so exporting again gives the
same bytes. Every rollout that is left out is counted under its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from json import dumps
from typing import Any

from runner.batch.export.row import Dropped, Format, Tools
from runner.batch.figures import many

FORMATS = {
    "openai-sft": "runner.batch.export.openai_sft",
    "trl-sft": "runner.batch.export.trl_sft",
    "jsonl": "runner.batch.export.jsonl",
}
"""Name -> the module whose `row(record, tools)` makes a row."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which scored rollouts become rows: those with at least `min_reward`, and only the best attempt of each row."""

    min_reward: float | None = None
    best_per_row: bool = False


@dataclass(slots=True)
class Count:
    """How many rows were written, and what was left out: reason -> how many."""

    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """`412 rows; left out: 60 below the least reward, 8 failed`."""
        rows = many(self.written, "row")
        left = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.most_common())
        return f"{rows}; left out: {left}" if left else rows


def export(
    records: Iterable[Mapping[str, Any]], format_name: str, tools: Tools, selection: Selection, count: Count
) -> Iterator[str]:
    """Lines of JSON, without their line ends, from current records in order of row and attempt.

    `count` is filled while the lines are taken. Raises KeyError for a format that there is not.
    """
    make: Format = import_module(FORMATS[format_name]).row
    for record in _selected(records, selection, count):
        try:
            row = make(record, tools)
        except Dropped as reason:
            count.dropped[str(reason)] += 1
            continue
        count.written += 1
        yield dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace").decode()


def _selected(records: Iterable[Mapping[str, Any]], selection: Selection, count: Count) -> Iterator[Mapping[str, Any]]:
    best: Mapping[str, Any] | None = None
    for record in records:
        if record["outcome"] != "scored":
            count.dropped[str(record["outcome"])] += 1
        elif selection.min_reward is not None and record["reward"] < selection.min_reward:
            count.dropped["below the least reward"] += 1
        elif not selection.best_per_row:
            yield record
        elif best is not None and best["row_id"] == record["row_id"]:
            # The earliest of equals stays, so the choice never depends on which attempt ended first.
            count.dropped["not the best of their row"] += 1
            best = record if record["reward"] > best["reward"] else best
        else:
            if best is not None:
                yield best
            best = record
    if best is not None:
        yield best
