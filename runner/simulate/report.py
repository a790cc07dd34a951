"""The report as a person reads it in a terminal. Drawn from the JSON facts alone, eighty columns wide at most."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from runner.diag.style import Style

_INDENT = "  "
_NAME = 14


def report_text(facts: Mapping[str, Any], style: Style) -> str:
    """The whole report of a load."""
    blocks = [
        _head(facts, style),
        _speed(facts, style),
        _outcomes(facts, style),
        _failures(facts, style),
        _faults(facts, style),
        violations_text(facts["violations"], style),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(facts: Mapping[str, Any], style: Style) -> list[str]:
    rollouts = facts["rollouts"]
    size = f"{rollouts['posted']:,} rollouts  ·  {seconds_text(facts['seconds'])}"
    verdict, paint = _verdict(facts, style)
    gap = " " * max(2, style.width - 4 - len(f"{facts['name']}  {size}") - len(verdict))
    lines = [f"{_INDENT}{style.bold(facts['name'])}  {style.dim(size)}{gap}{paint(verdict)}"]
    lines.append(f"{_INDENT}{style.dim(facts['server'] + '  ·  ' + ', '.join(facts['dialects']))}")
    notes = list(facts["notes"])
    if owed := facts["rollouts"]["unacknowledged"]:
        notes.append(f"callbacks of {_many(owed, 'rollout')} were refused and did not come again in time")
    return lines + [_INDENT + style.warn(part) for note in notes for part in _wrapped(note, style.width - 4)]


def _verdict(facts: Mapping[str, Any], style: Style) -> tuple[str, Any]:
    broken = sum(each["count"] for each in facts["violations"] if not each["incomplete"])
    missing = facts["rollouts"]["missing"]
    if facts["interrupted"]:
        return "✗ interrupted", style.bad
    if missing:
        return f"✗ {missing:,} without a verdict", style.bad
    if broken:
        return f"✗ {_many(broken, 'violation')}", style.bad
    return "✓ no violation", style.ok


def _speed(facts: Mapping[str, Any], style: Style) -> list[str]:
    lines = [_row("", ("p50", "p90", "p99", "max"), style.dim)]
    names = {"accept": "start answered", "first_chat": "first chat", "verdict": "verdict"}
    for key, name in names.items():
        spans = facts["latency"][key]
        lines.append(_row(name, [seconds_text(spans[share]) for share in ("p50", "p90", "p99", "max")]))
    lines.append("")
    chats, callbacks = facts["requests"].get("chat", 0), facts["requests"].get("callback", 0)
    rate = f"{facts['rollouts_per_second']:,.1f}"
    lines.append(f"{_INDENT}{style.bold(rate)} rollouts/s  ·  {chats:,} chat calls  ·  {callbacks:,} callbacks")
    return lines


def _row(name: str, cells: Any, paint: Any = str) -> str:
    painted: str = paint(f"{_INDENT}{name:<{_NAME}}" + "".join(f"{cell:>12}" for cell in cells))
    return painted


def _outcomes(facts: Mapping[str, Any], style: Style) -> list[str]:
    words = sorted(facts["outcomes"], key=lambda word: word != "scored")
    lines = [_row("", [*words], style.dim)]
    for dialect, numbers in facts["by_dialect"].items():
        lines.append(_row(dialect, [f"{numbers['outcomes'].get(word, 0):,}" for word in words]))
    if len(facts["by_dialect"]) > 1:
        lines.append(_row("together", [f"{facts['outcomes'][word]:,}" for word in words], style.bold))
    reward = facts["reward"]
    if reward["mean"] is not None:
        lines += ["", f"{_INDENT}mean reward {style.bold(format(reward['mean'], '.3f'))} over {reward['n']:,} scored"]
    return lines


def _failures(facts: Mapping[str, Any], style: Style) -> list[str]:
    lines = [_INDENT + style.bold("Failures")] if facts["failures"] else []
    if facts["trouble"] and facts["rollouts"]["accepted"] < facts["rollouts"]["posted"]:
        lines += [_INDENT + part for part in _wrapped(f"the last start without an answer: {facts['trouble']}", 72)]
    for each in facts["failures"]:
        lines += _counted(each["count"], each["message"], style)
    return lines


def _counted(count: int, text: str, style: Style) -> list[str]:
    first, *rest = _wrapped(text, style.width - 12) or [""]
    return [f"{_INDENT}{count:>6,}  {first}", *(f"{_INDENT}{'':>6}  {line}" for line in rest)]


def _faults(facts: Mapping[str, Any], style: Style) -> list[str]:
    done = {**facts["faults"], **facts["load"]}
    if not done:
        return []
    words = [f"{name} {count:,}" for name, count in sorted(done.items(), key=lambda item: -item[1])]
    lines = _wrapped("  ".join(word.replace(" ", "\u00a0") for word in words), style.width - 4)
    return [_INDENT + style.bold("Asked for"), *(_INDENT + line.replace("\u00a0", " ") for line in lines)]


def violations_text(violations: Any, style: Style) -> list[str]:
    """Every rule that was broken, with its evidence."""
    lines: list[str] = []
    for each in violations:
        trap = f"trap {each['trap']}" if each["trap"] is not None else ""
        title = f"{each['rule']} × {each['count']:,}"
        gap = " " * max(2, style.width - 4 - len(title) - len(trap))
        lines += [*([""] if lines else []), f"{_INDENT}{style.bad(title)}{gap}{style.dim(trap)}"]
        lines.append(f"{_INDENT * 2}a server must {each['says']}")
        for one in each["evidence"][:3]:
            whose = f"{one['rollout_id']}  " if one["rollout_id"] else ""
            for line in _wrapped(f"{whose}{one['evidence']}", style.width - 6):
                lines.append(f"{_INDENT * 2}{style.dim(line)}")
    return lines


def seconds_text(seconds: float | None) -> str:
    """`0.8 ms`, `850 ms`, `12.3 s`, `4 m 05 s`; `–` for none."""
    if seconds is None:
        return "–"
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02d} s"


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(20, width), break_on_hyphens=False)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
