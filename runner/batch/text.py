"""The summary as a person reads it in a terminal, eighty columns wide or as narrow as the terminal is.

Drawn from `summary.json` alone, so `show RUN` prints what `eval` printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.batch.figures import (
    PAGE,
    Plain,
    clip,
    duration,
    many,
    money,
    number,
    outcome_bar,
    outcome_words,
    percent,
    short,
    strip,
    wrapped,
)
from runner.diag.style import Style
from runner.records.rollout import STATUSES

_INDENT = "  "
_NAME = 20
_STRIP, _NARROWEST = 21, 8
_MOST_LINES = 12


def summary_text(summary: Mapping[str, Any], style: Style | None = None, *, run: str = "") -> str:
    """The whole summary. `run` is the run folder as the user would type it, for the commands at the end."""
    style = style or Plain()
    blocks = [
        _head(summary, style),
        _numbers(summary, style),
        _graders(summary, style),
        *_groups(summary, style),
        _endings(summary, style),
        _failures(summary, style, run),
        _verdicts(summary, style),
        _spending(summary, style),
        _further(summary, style, run),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(summary: Mapping[str, Any], style: Style) -> list[str]:
    size = f"{many(summary['rows'], 'row')} × {many(summary['attempts'], 'attempt')}"
    title, plain_title = f"{style.bold(summary['name'])}  {style.dim(size)}", f"{summary['name']}  {size}"
    verdict, paint = ("✓ complete", style.ok) if summary["complete"] else ("✗ incomplete", style.bad)
    gap = max(2, style.width - len(_INDENT) * 2 - len(plain_title) - len(verdict))
    counts: dict[str, int] = {name: summary["outcomes"][name] for name in STATUSES}
    counts["missing"] = summary["rollouts"]["missing"]
    lines = [
        f"{_INDENT}{title}{' ' * gap}{paint(verdict)}",
        "",
        _INDENT + outcome_bar(counts, style.width - len(_INDENT) * 2, style),
        _INDENT + outcome_words(counts, style),
    ]
    if summary["stopped"]:
        lines += ["", *_wrapped(f"stopped: {summary['stopped']}", style.warn, style)]
    return lines


def _numbers(summary: Mapping[str, Any], style: Style) -> list[str]:
    if not summary["reward"]["n"]:
        return [_INDENT + style.warn("No rollout was scored, so there is no reward to report.")]
    lines = [_heading("", "", "95 % interval", _scale(style), "rollouts", style)]
    lines.append(_line("reward", summary["reward"], style, strong=True))
    lines += [_share(f"pass@{k}", value, style) for k, value in summary["pass_at"].items()]
    lines += [_share(f"pass^{k}", value, style) for k, value in summary["pass_all"].items() if k != "1"]
    notes = [summary["counts"] + "."]
    if (bounds := summary.get("bounds")) and bounds["best"] - bounds["worst"] > 5e-4:
        worst, best = number(bounds["worst"]), number(bounds["best"])
        notes.append(f"Had all the others been scored, the reward would lie between {worst} and {best}.")
    variance = summary["variance"]
    if variance["zero"]:
        share = percent(variance["share"])
        notes.append(f"{many(variance['zero'], 'row')} ({share}) got the same reward in every attempt.")
    for note in notes:
        lines += _wrapped(note[:1].upper() + note[1:], style.dim, style)
    return lines


def _graders(summary: Mapping[str, Any], style: Style) -> list[str]:
    if not summary["graders"]:
        return []
    lines = [_INDENT + style.bold("Graders")]
    for name, facts in summary["graders"].items():
        note = "measured" if facts["measured"] else ""
        if facts["failed"]:
            note = f"{facts['failed']:,} failed"
        lines.append(_line(name, facts, style, note=note))
    return lines


def _groups(summary: Mapping[str, Any], style: Style) -> list[list[str]]:
    return [_group(column, values, style) for column, values in summary["groups"].items()]


def _group(column: str, values: Mapping[str, Any], style: Style) -> list[str]:
    lines = [_heading(f"Reward by {column}", "", "", "", "rows", style)]
    shown = sorted(values.items(), key=lambda item: _worst_first(item[1]))[:_MOST_LINES]
    for name, facts in shown:
        lines.append(_line(name, facts["reward"], style, count=facts["rows"]))
    if len(values) > len(shown):
        lines.append(_INDENT * 2 + style.dim(f"and {len(values) - len(shown)} more in summary.json"))
    return lines


def _worst_first(facts: Mapping[str, Any]) -> tuple[bool, float]:
    mean = facts["reward"]["mean"]
    return (mean is None, mean if mean is not None else 0.0)


def _endings(summary: Mapping[str, Any], style: Style) -> list[str]:
    reasons = summary["stop_reasons"]
    if len(reasons) < 2:
        return []
    lines = [_heading("How they ended", "reward", "", "", "rollouts", style)]
    for name, count in list(reasons.items())[:_MOST_LINES]:
        reward = summary["reward_by_stop_reason"].get(name, {"mean": None, "low": None, "high": None, "n": 0})
        lines.append(_line(name, reward, style, count=count))
    return lines


def _failures(summary: Mapping[str, Any], style: Style, run: str) -> list[str]:
    if not summary["failures"]:
        return []
    lines = [_INDENT + style.bold("What went wrong")]
    for failure in summary["failures"][:5]:
        first = failure["first"]
        paint = style.bad if failure["outcome"] == "failed" else style.warn
        head = f"{failure['count']:>6,} {failure['outcome']:<9}"
        where = f"{failure['boundary']}/{failure['kind']}"
        lines.append(f"{_INDENT}{paint(head)}  {clip(where, style.width - 24)}")
        lines += [" " * 20 + line for line in wrapped(failure["message"], style.width - 22, most=3)]
        place = f"{first['row_id']}/{first['attempt']}"
        lines.append(" " * 20 + style.dim(f"osmosis-run show {run} {place}" if run else f"first in {place}"))
    if len(summary["failures"]) > 5:
        lines.append(" " * 20 + style.dim(f"and {len(summary['failures']) - 5} more kinds in summary.json"))
    return lines


def _verdicts(summary: Mapping[str, Any], style: Style) -> list[str]:
    """Gates, and the difference from the baseline."""
    lines = []
    for gate in summary.get("gates", ()):
        sign = style.ok("✓") if gate["passed"] else style.bad("✗")
        first, *more = wrapped(gate["text"], style.width - 8, most=4)
        lines += [f"{_INDENT * 2}{sign} {first}", *(f"{_INDENT * 3}{line}" for line in more)]
    if lines:
        lines.insert(0, _INDENT + style.bold("Gates"))
    if baseline := summary.get("baseline"):
        lines.append(f"{_INDENT}{style.bold('Against ' + str(baseline['run']))}  {baseline['text']}")
    return lines


def _spending(summary: Mapping[str, Any], style: Style) -> list[str]:
    usage, wall = summary["usage"], summary["wall_seconds"]
    tokens = f"{short(usage['input_tokens'])} in + {short(usage['output_tokens'])} out tokens"
    parts = [tokens, money(summary["cost"]) if usage["total_tokens"] or summary["cost"] else "", duration(wall)]
    if wall > 0 and summary["rollouts"]["recorded"]:
        parts.append(f"{summary['rollouts']['recorded'] / wall:,.1f} rollouts/s")
    lines = [*_wrapped("  ·  ".join(part for part in parts if part), str, style)]
    if spread := summary["rollout_seconds"]:
        text = f"a rollout took {duration(spread['p50'])} (median), {duration(spread['p95'])} (95th percentile)"
        lines += _wrapped(f"{text}, {summary['calls']['mean']:.1f} model calls", style.dim, style)
    return lines


def _further(summary: Mapping[str, Any], style: Style, run: str) -> list[str]:
    if not run:
        return []
    first = f"osmosis-run show {run} {0}"
    words = [(first, "one transcript"), (f"osmosis-run export {run} --format trl-sft", "training rows")]
    if summary["outcomes"]["failed"] or summary["outcomes"]["ungraded"]:
        words.append(("osmosis-run eval … --retry-failed", "play those again"))
    width = min(52, max(len(command) for command, _ in words))
    return [f"{_INDENT}{style.name(command.ljust(width))}  {style.dim(text)}" for command, text in words]


# --- lines


def _heading(name: str, value: str, interval: str, line: str, count: str, style: Style) -> str:
    text = f"{_INDENT}{name:<{_NAME + 2}}{value:>7}  {interval:<16}{line:<{_strip_width(style)}}  {count:>8}".rstrip()
    return style.bold(text) if name else style.dim(text)


def _line(
    name: str, estimate: Mapping[str, Any], style: Style, *, note: str = "", count: int | None = None,
    strong: bool = False,
) -> str:  # fmt: skip
    last = note or f"{estimate['n'] if count is None else count:,}"
    return _row(name, number(estimate["mean"]), _interval(estimate), estimate, style, last, strong)


def _share(name: str, estimate: Mapping[str, Any], style: Style) -> str:
    low, high = estimate["low"], estimate["high"]
    interval = "" if low is None else f"[{low * 100:5.1f}, {high * 100:5.1f}]"
    return _row(name, percent(estimate["value"]), interval, estimate, style, f"{estimate['n']:,}", False)


def _row(
    name: str, value: str, interval: str, estimate: Mapping[str, Any], style: Style, last: str, strong: bool
) -> str:
    padded = f"{clip(name, _NAME):<{_NAME}}"
    shown = style.bold(f"{value:>7}") if strong else f"{value:>7}"
    room = _strip_width(style)
    line = "  " + strip(estimate, room - 2, style) if room else ""
    return f"{_INDENT * 2}{style.bold(padded) if strong else padded}{shown}  {interval:<16}{line}  {last:>8}".rstrip()


def _strip_width(style: Style) -> int:
    """The columns of the drawn interval and the gap before it; none where the terminal has too few."""
    room = _STRIP - max(0, PAGE - style.width)
    return room if room > _NARROWEST else 0


def _scale(style: Style) -> str:
    room = _strip_width(style)
    return "  0" + " " * (room - 4) + "1" if room else ""


def _interval(estimate: Mapping[str, Any]) -> str:
    low, high = estimate["low"], estimate["high"]
    return "" if low is None else f"[{number(low)}, {number(high)}]"


def _wrapped(text: str, paint: Any, style: Style) -> Sequence[str]:
    from textwrap import wrap

    return [_INDENT + paint(line) for line in wrap(text, style.width - len(_INDENT) * 2)]
