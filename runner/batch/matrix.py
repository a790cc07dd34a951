"""The cells of a matrix, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from runner.batch.figures import Plain, columns, money, number, percent, strip
from runner.batch.options import RunResult
from runner.diag.style import Style


def matrix_table(results: Sequence[RunResult], style: Style | None = None) -> str:
    """One line a cell: reward with its interval, pass@1, failures, cost."""
    style = style or Plain()
    rows = [["cell", "reward", "95 % interval", "pass@1", "scored", "failed", "cost", ""]]
    for result in results:
        summary = result.summary
        reward, passed = summary["reward"], summary["pass_at"].get("1", {"value": None})
        interval = "" if reward["low"] is None else f"[{number(reward['low'])}, {number(reward['high'])}]"
        outcomes = summary["outcomes"]
        rows.append([
            result.cell,
            number(reward["mean"]),
            interval,
            percent(passed["value"]),
            f"{outcomes['scored']:,}",
            f"{outcomes['failed']:,}",
            "–" if summary["cost"] is None else money(summary["cost"]),
            "" if summary["complete"] else "incomplete",
        ])  # fmt: skip
    lines = columns(rows, right=(1, 3, 4, 5, 6))
    drawn = [f"  {style.bold(lines[0])}"]
    for line, result in zip(lines[1:], results, strict=True):
        drawn.append(f"  {line}  {strip(result.summary['reward'], 19, style)}".rstrip())
    return "\n".join(drawn)
