"""JUnit XML, as Jenkins, GitLab and GitHub's actions read it: a suite a tested part, a case a test.

Only elements and attributes of the common schema (xunit's junit-10) are written. A case has no place of its own there,
so the file stands at its suite, and `file:line:column` before the message of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from runner.records.quick import quick

_UNSPEAKABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


@quick
class Case:
    """One test. `failure` is why it did not pass, or empty; `place` is `file:line:column`, or empty."""

    name: str
    seconds: float
    failure: str = ""
    place: str = ""


@quick
class Suite:
    """The tests of one part of the file."""

    name: str
    cases: Sequence[Case]

    @property
    def file(self) -> str:
        """The file that holds them, empty if they have no place."""
        return next((case.place.rsplit(":", 2)[0] for case in self.cases if case.place), "")


def junit_xml(name: str, suites: Sequence[Suite]) -> str:
    """The document, with its declaration and a last line end. It is ASCII: no reader can get its encoding wrong."""
    cases = [case for suite in suites for case in suite.cases]
    body = [line for suite in suites for line in _suite(suite)]
    text = "\n".join([f"<testsuites {_attributes({'name': name, **_counts(cases)})}>", *body, "</testsuites>", ""])
    declared = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return declared + text.encode("ascii", "xmlcharrefreplace").decode()


def _suite(suite: Suite) -> Iterable[str]:
    known = {"name": suite.name, **_counts(suite.cases), "skipped": "0"}
    yield f"  <testsuite {_attributes({**known, 'file': suite.file} if suite.file else known)}>"
    for case in suite.cases:
        yield from _case(suite, case)
    yield "  </testsuite>"


def _case(suite: Suite, case: Case) -> Iterable[str]:
    said = _attributes({"name": case.name, "classname": suite.name, "time": _seconds(case.seconds)})
    if not case.failure:
        yield f"    <testcase {said}/>"
        return
    text = f"{case.place}: {case.failure}" if case.place else case.failure
    yield f"    <testcase {said}>"
    why = _attributes({"message": case.failure, "type": "AssertionError"})
    yield f"      <failure {why}>{escape(_clean(text))}</failure>"
    yield "    </testcase>"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failed = sum(bool(case.failure) for case in cases)
    seconds = sum(case.seconds for case in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "time": _seconds(seconds)}


def _attributes(values: Mapping[str, str]) -> str:
    # Line ends in an attribute are read as spaces unless they are spelled out.
    spelled = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
    return " ".join(f"{name}={quoteattr(_clean(value), spelled)}" for name, value in values.items())


def _seconds(seconds: float) -> str:
    return f"{max(0.0, seconds):.3f}"


def _clean(text: str) -> str:
    return _UNSPEAKABLE.sub("\ufffd", text)
