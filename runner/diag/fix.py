"""`apply_fixes`: the mechanical repairs of a report, done to the texts they belong to."""

from __future__ import annotations

from runner.diag.diagnostic import Fix, Report, Source


def apply_fixes(report: Report) -> dict[str, str]:
    """Source name to repaired text, for every file that has a fix.

    Fixes that touch one another are not both made: the first in the file wins, a second run makes the next. The same
    fix proposed twice is made once. Words of the command line and the environment are not ours to change.
    """
    by_source: dict[Source, list[Fix]] = {}
    for finding in report:
        if finding.fix is not None and finding.fix.place.source.origin == "file":
            by_source.setdefault(finding.fix.place.source, []).append(finding.fix)
    texts: dict[str, str] = {}
    for source, fixes in by_source.items():
        if source.name not in texts:  # of two readings of one file the first counts, offsets of the other may differ
            texts[source.name] = _repaired(source.text, fixes)
    return texts


def _repaired(text: str, fixes: list[Fix]) -> str:
    pieces: list[str] = []
    done = 0
    last: Fix | None = None
    for fix in sorted(fixes, key=lambda one: (one.place.start, one.place.end)):
        start, end = fix.place.start, fix.place.end
        if start < done or (last is not None and (start, end) == (last.place.start, last.place.end)):
            continue
        pieces += (text[done:start], fix.text)
        done, last = end, fix
    return "".join((*pieces, text[done:]))
