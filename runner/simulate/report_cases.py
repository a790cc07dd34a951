"""Conformance and parity as a person reads them: a line a case, differences in full."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from runner.diag.style import Style
from runner.simulate.conformance import CaseOutcome
from runner.simulate.parity import Compared

_SIGNS = {"ok": "✓", "failed": "✗", "skipped": "–"}


def case_line(outcome: CaseOutcome, style: Style) -> str:
    """One case: sign, dialect, name, traps; the reason below if there is one."""
    paint = {"ok": style.ok, "failed": style.bad, "skipped": style.warn}[outcome.result]
    traps = ", ".join(map(str, outcome.case.traps))
    line = f"  {paint(_SIGNS[outcome.result])} {outcome.dialect:<14}{outcome.case.name:<40}{style.dim(traps)}".rstrip()
    if not outcome.reason:
        return line
    told = [f"a server must {outcome.case.says}"] if outcome.result == "failed" else []
    reasons = [part for text in (*told, outcome.reason) for part in wrap(text, max(20, style.width - 6))]
    return "\n".join([line, *(f"      {style.dim(part)}" for part in reasons)])


def cases_text(outcomes: Sequence[CaseOutcome], style: Style) -> str:
    """How many went how."""
    counts = {result: sum(outcome.result == result for outcome in outcomes) for result in _SIGNS}
    words = [f"{counts['ok']} ok", f"{counts['failed']} failed", f"{counts['skipped']} skipped"]
    paint = style.bad if counts["failed"] else style.ok
    return f"  {paint('  ·  '.join(words))}  {style.dim(f'of {len(outcomes)} cases')}"


def parity_text(found: Sequence[Compared], style: Style) -> str:
    """Every row in every dialect, with what differs."""
    lines = []
    for each in found:
        sign = style.bad("✗") if each.differences else style.ok("✓")
        lines.append(f"  {sign} row {each.row_id:<20} {each.dialect:<14} {style.dim(each.summary)}")
        for difference in each.differences:
            lines += [f"      {part}" for part in wrap(difference, max(20, style.width - 6))]
    differing = sum(bool(each.differences) for each in found)
    verdict = style.bad(f"{differing} differ") if differing else style.ok("all the same")
    return "\n".join([*lines, "", f"  {len(found)} compared  ·  {verdict}"])
