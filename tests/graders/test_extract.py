"""Where an answer stands, and that looking for it never takes long."""

from __future__ import annotations

import asyncio
import time

import pytest

from runner.graders.extract import After, Boxed, Extraction, JsonPath, LastLine, Number, Regex, Tag, extract
from runner.graders.grader import GraderMisfit
from runner.graders.patterns import Pattern
from runner.graders.worker import Workers
from runner.records.failure import GraderTimeout

CASES: list[tuple[Extraction, str, str | None]] = [
    (Regex(r"####\s*(.+)"), "#### 1\n#### 2", "2"),
    (Regex(r"####\s*(.+)", take="first"), "#### 1\n#### 2", "1"),
    (Regex(r"\d+"), "a 12 b 34", "34"),
    (Regex(r"(\d+)-(\d+)", group=2), "12-34", "34"),
    (Regex(r"(?P<year>\d{4})", group="year"), "in 1999", "1999"),
    (Regex(r"a(b)?", group=1), "a", None),
    (Regex(r"ANSWER (.)", ignore_case=True), "answer x", "x"),
    (Regex(r"x"), "abc", None),
    (After("####"), "so #### 42", "42"),
    (After("####"), "#### 1 #### 2\nmore", "2"),
    (After("####", take="first"), "#### 1\n#### 2", "1"),
    (After("Answer:"), "Answer:\n\n  42\nthanks", "42"),
    (After("####"), "none here", None),
    (After("####"), "####", None),
    (Tag("answer"), "<answer>1</answer> <answer> 2 </answer>", "2"),
    (Tag("answer", take="first"), "<answer>1</answer> <answer>2</answer>", "1"),
    (Tag("answer"), "<Answer kind='x'>a\nb</ANSWER>", "a\nb"),
    (Tag("answer"), "<answer>1</answer> <answer>2", "1"),
    (Tag("answer"), "<answers>1</answers>", None),
    (Boxed(), "\\boxed{1} \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
    (Boxed(take="first"), "\\boxed{1} \\boxed{2}", "1"),
    (Boxed(), "\\boxed{a} and \\boxed{b", "a"),
    (Boxed(), "\\fbox{\\boxed{7}}", "7"),
    (Boxed(), "\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
    (Boxed(), "$\\boxed 5$", "5"),
    (Boxed(), "\\boxed{}", None),
    (JsonPath("a.b.0"), '{"a": {"b": [1, 2]}}', "1"),
    (JsonPath("a"), 'Here:\n```json\n{"a": "x"}\n```\nDone.', "x"),
    (JsonPath("a"), 'I think {"a": true} is it', "true"),
    (JsonPath("a.c"), '{"a": {"b": 1}}', None),
    (JsonPath("a"), "not json", None),
    (JsonPath("a"), "[" * 100_000, None),
    (LastLine(), "a\nb\n\n", "b"),
    (LastLine(), "  \n ", None),
    (Number(), "from 3 to 4.", "4"),
    (Number(take="first"), "from 3 to 4.", "3"),
]


@pytest.mark.parametrize(("extraction", "text", "answer"), CASES)
def test_extract(extraction: Extraction, text: str, answer: str | None) -> None:
    assert asyncio.run(extract(extraction, text, Workers(), 5.0)) == answer


@pytest.mark.parametrize("extraction", [case[0] for case in CASES], ids=lambda each: type(each).__name__)
def test_every_extraction_has_a_name_for_reasons(extraction: Extraction) -> None:
    assert len(str(extraction)) > 3
    assert "object at" not in str(extraction)


def test_misfits() -> None:
    with pytest.raises(GraderMisfit, match="does not compile"):
        Regex("(")
    with pytest.raises(GraderMisfit, match="has 1 groups, found group = 2"):
        Regex("(a)", group=2)
    with pytest.raises(GraderMisfit, match="no group 'yaer'; known: year"):
        Regex("(?P<year>a)", group="yaer")
    with pytest.raises(GraderMisfit, match="empty"):
        After("")


LONG = {
    "words": "word " * 2_000_000,
    "braces": "{" * 10_000_000,
    "boxes": "\\boxed{" * 1_400_000,
    "tags": "<answer>" * 1_250_000,
    "marks": "####" * 2_500_000,
    "lines": "\n" * 10_000_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=list(LONG))
def test_ten_megabytes_leave_the_loop_alone(text: str) -> None:
    async def look() -> float:
        workers, worst = Workers(size=1), 0.0
        try:
            for extraction in (Boxed(), Tag("answer"), After("####"), LastLine(), Number(), Regex(r"####\s*(\d+)$")):
                task = asyncio.ensure_future(extract(extraction, text, workers, 30.0))
                while not task.done():
                    started = time.monotonic()
                    await asyncio.sleep(0.001)
                    worst = max(worst, time.monotonic() - started)
                await task
        finally:
            await workers.aclose()
        return worst

    assert asyncio.run(look()) < 1.5


def test_a_pattern_that_loses_itself_is_stopped() -> None:
    async def look() -> None:
        workers = Workers(size=1)
        try:
            await extract(Regex("(a+)+$"), "a" * 60 + "b", workers, 0.5)
        finally:
            await workers.aclose()

    with pytest.raises(GraderTimeout, match=r"longer than 0\.5 s"):
        asyncio.run(look())


DEAR = ["(a+)+$", "(x|xx)*y", "(a{1,3})*b", r"(\w+)\s\1", "a?" * 30 + "a" * 30, r"(.*)(.*)(.*)z"]
CHEAP = [r"####\s*(.+)", r"\d+", "^abc$", "(?:ab)*", "[a-z]{2,5}", r"answer is (\d+)"]


@pytest.mark.parametrize("pattern", DEAR)
def test_dear_patterns_are_known_before_they_run(pattern: str) -> None:
    assert Pattern(pattern).is_dear("a" * 2_000)


@pytest.mark.parametrize("pattern", CHEAP)
def test_usual_patterns_run_at_once(pattern: str) -> None:
    assert not Pattern(pattern).is_dear("a" * 2_000)
    assert Pattern(pattern).is_dear("a" * 20_001)
