"""Each of the 107 known traps of the wire that concerns a server has a test that carries its number.

A test carries numbers in its name (`test_trap_12_…`, `test_traps_42_43_…`; in the tests of the engine and of hostile
clients also without that word, `test_41_to_43_…`, and at the end, `…_45_46`), or, in the conformance suite, in its id
(`trap_16`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from runner.simulate.conformance import CASES

TESTS = Path(__file__).parents[1]
TRAPS = range(1, 108)
OF_CALLERS: Mapping[int, str] = {
    10: "which of two callbacks counts is the caller's to decide; that a server never sends two is trap 1",
    84: "a caller must know its rollout before it posts the start; `simulate` does",
    106: "a caller tells the callbacks of two generations apart at one address; `simulate` does",
}
"""Traps that no server can fall into, and why."""

_NAMED = re.compile(r"test_traps?_(\d+(?:_(?:\d+|to|and))*)(?=_|$)")
_BARE = re.compile(r"(?:^test|_)_?((?:\d+_)(?:(?:\d+|to|and)_)*(?=\D)|(?:\d+_)*\d+$)")


def numbers(name: str, *, bare: bool) -> set[int]:
    """The traps that a test's name carries; with `bare`, also where it does not call them traps."""
    found = _NAMED.match(name) or (_BARE.search(name) if bare else None)
    words = found[1].strip("_").split("_") if found else []
    carried: set[int] = set()
    for place, word in enumerate(words):
        if word == "to":
            carried |= set(range(int(words[place - 1]), int(words[place + 1])))
        elif word != "and":
            carried.add(int(word))
    return carried


def named() -> Iterator[tuple[Path, str]]:
    """Every test function of the suite."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield path, node.name


@pytest.fixture(scope="module")
def carried() -> dict[int, list[str]]:
    """Trap -> the tests that carry its number."""
    found: dict[int, list[str]] = {}
    for path, name in named():
        bare = path.name.startswith("test_engine_") or path.parent.name == "hostile"
        for number in numbers(name, bare=bare):
            found.setdefault(number, []).append(f"{path.name}::{name}")
    for case in CASES:
        for number in case.traps:
            found.setdefault(number, []).append(f"test_conformance.py::{case.name}")
    return found


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if trap not in OF_CALLERS])
def test_every_trap_of_a_server_has_a_test(carried: dict[int, list[str]], trap: int) -> None:
    assert carried.get(trap), f"no test carries the number of trap {trap}"


def test_no_test_carries_a_number_that_is_no_trap(carried: dict[int, list[str]]) -> None:
    assert not {number: names for number, names in carried.items() if number not in TRAPS}


@pytest.mark.parametrize(
    ("name", "bare", "found"),
    [
        ("test_trap_12_no_id", False, {12}),
        ("test_traps_1_2_4_and_5_what_passes", False, {1, 2, 4, 5}),
        ("test_trap_46_to_48_keys", False, {46, 47, 48}),
        ("test_54_to_60_and_100_keys", True, {54, 55, 56, 57, 58, 59, 60, 100}),
        ("test_a_repeated_start_44", True, {44}),
        ("test_makes_two_one_45_46_47_48", True, {45, 46, 47, 48}),
        ("test_sums_44", False, set()),
        ("test_95_percent", False, set()),
        ("test_6_redirects", True, {6}),
        ("test_http2_is_spoken", True, set()),
    ],
)
def test_how_a_name_carries_numbers(name: str, bare: bool, found: set[int]) -> None:
    assert numbers(name, bare=bare) == found
