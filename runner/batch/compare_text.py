"""A comparison as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from runner.batch.compare import Comparison
from runner.batch.figures import Plain, clip, many, number
from runner.batch.paired import Difference
from runner.batch.reasons import Change
from runner.diag.style import Style

_MOST = 12


def compare_text(found: Comparison, style: Style | None = None) -> str:
    """The whole comparison in eighty columns."""
    style = style or Plain()
    blocks = [
        list(_head(found, style)),
        list(_differences(found, style)),
        list(_flips(found, style)),
        list(_missing(found, style)),
        list(_changed(found.changed, style)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(found: Comparison, style: Style) -> Iterator[str]:
    yield f"  {style.bold('A')}  {found.a}"
    yield f"  {style.bold('B')}  {found.b}"
    paired = f"paired over {many(found.rows, 'row')} that both have scored; differences are B minus A"
    yield f"  {style.dim(paired)}"
    for warning in found.warnings:
        yield f"  {style.warn('compared by force: ' + warning)}"


def _differences(found: Comparison, style: Style) -> Iterator[str]:
    if not found.rows:
        yield "  " + style.warn("No row is scored in both runs, so nothing can be said.")
        return
    yield style.bold(f"  {'':<20}{'A':>8}{'B':>9}{'B - A':>10}  {'95 % interval':<18}{'p':>7}")
    yield _line("reward", found.means["reward"], found.reward, style)
    yield _line("pass@1", found.means["pass@1"], found.pass_at_1, style)
    for name, difference in found.graders.items():
        yield _line(name, found.means[f"grader.{name}"], difference, style)
    how = f"p by {found.reward.method}" if found.reward.p != 1.0 else f"p: {found.reward.method}"
    yield style.dim(f"  intervals are clustered by row; {how}")


def _line(name: str, means: tuple[float | None, float | None], difference: Difference, style: Style) -> str:
    estimate = difference.estimate
    if estimate.value is None:
        return f"  {clip(name, 20):<20}{'no row in both':>27}"
    interval = "" if estimate.low is None else f"[{estimate.low:+.3f}, {estimate.high:+.3f}]"
    value, sure = f"{estimate.value:>+10.3f}", estimate.low is not None and estimate.high is not None
    if sure and estimate.low is not None and estimate.low > 0:
        value = style.ok(value)
    elif sure and estimate.high is not None and estimate.high < 0:
        value = style.bad(value)
    p = "–" if difference.p is None else _chance(difference.p)
    return f"  {clip(name, 20):<20}{number(means[0]):>8}{number(means[1]):>9}{value}  {interval:<18}{p:>7}"


def _chance(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _flips(found: Comparison, style: Style) -> Iterator[str]:
    if not found.won and not found.lost:
        return
    p = _chance(found.flip_p)
    yield f"  {style.bold('Rows that flipped')}  {style.dim(f'(exact McNemar test, p = {p})')}"
    yield from _ids(f"{len(found.won):>6,}  fail → pass", found.won, style.ok)
    yield from _ids(f"{len(found.lost):>6,}  pass → fail", found.lost, style.bad)


def _missing(found: Comparison, style: Style) -> Iterator[str]:
    if not found.only_a and not found.only_b:
        return
    yield f"  {style.bold('Scored on one side only')}  {style.dim('(listed, never imputed)')}"
    yield from _ids(f"{len(found.only_a):>6,}  only in A", found.only_a, style.warn)
    yield from _ids(f"{len(found.only_b):>6,}  only in B", found.only_b, style.warn)


def _ids(title: str, ids: Sequence[str], paint: object) -> Iterator[str]:
    if not ids:
        return
    names = ", ".join(clip(name, 40) for name in ids[:_MOST]) + (f" and {len(ids) - _MOST:,} more" if len(ids) > _MOST
                                                                  else "")  # fmt: skip
    lines = wrap(names, 52) or [""]
    assert callable(paint)
    yield f"  {paint(f'{title:<22}')}  {lines[0]}"
    for line in lines[1:]:
        yield " " * 26 + line


def _changed(changed: Sequence[Change], style: Style) -> Iterator[str]:
    if not changed:
        yield "  " + style.dim("The two configurations do not differ in anything that matters.")
        return
    yield "  " + style.bold("What changed")
    for change in changed[:_MOST]:
        yield f"    {clip(change.key, 34):<34}  {_said(change)}"
    if len(changed) > _MOST:
        yield style.dim(f"    and {len(changed) - _MOST} more (--json lists them)")


def _said(change: Change) -> str:
    if change.how != "changed" and isinstance(change.before or change.after, dict):
        return change.how
    return f"{_short(change.before)} → {_short(change.after)}"


def _short(value: object) -> str:
    from json import dumps

    return "–" if value is None else clip(value if isinstance(value, str) else dumps(value, ensure_ascii=False), 18)
