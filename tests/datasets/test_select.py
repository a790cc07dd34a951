"""Selections and the shuffle."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.datasets.select import SelectionProblem, parse_rows, shuffle


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), st.booleans()), min_size=1, max_size=8))
def test_a_selection_holds_what_its_text_says(parts: list[tuple[int, int, bool]]) -> None:
    text, expected = [], set()
    for start, more, spaced in parts:
        space = " " if spaced else ""
        text.append(f"{space}{start}{space}-{space}{start + more}" if more else f"{start}{space}")
        expected |= set(range(start, start + more + 1))
    selection = parse_rows(",".join(text))
    assert list(selection) == sorted(expected)
    assert len(selection) == len(expected)
    assert selection.last == max(expected)
    assert all((index in selection) == (index in expected) for index in range(-1, 80))
    assert parse_rows(str(selection)) == selection


@pytest.mark.parametrize(
    ("text", "message", "pointed"),
    [
        ("3,x,7", "`x` is no row or range of rows; write `3` or `10-20`, separated by commas", "x"),
        ("3,, 7", "a row is missing here; write `3` or `10-20`, separated by commas", ","),
        ("", "a row is missing here; write `3` or `10-20`, separated by commas", ""),
        ("1, 20-10 ", "`20-10` runs backwards; write `10-20`", "20-10"),
        ("-3", "`-3` is no row or range of rows; write `3` or `10-20`, separated by commas", "-3"),
        ("3-", "`3-` is no row or range of rows; write `3` or `10-20`, separated by commas", "3-"),
        ("1 2", "`1 2` is no row or range of rows; write `3` or `10-20`, separated by commas", "1 2"),
        ("0-" + "9" * 30, f"`0-{'9' * 30}` is far too large", "0-" + "9" * 30),
        ("٣", "`٣` is no row or range of rows; write `3` or `10-20`, separated by commas", "٣"),
    ],
)
def test_problems_have_a_place(text: str, message: str, pointed: str) -> None:
    with pytest.raises(SelectionProblem) as caught:
        parse_rows(text)
    problem = caught.value
    assert problem.message == message
    assert text[problem.offset : problem.offset + problem.length] == pointed


@given(st.integers(0, 200), st.integers(-(2**70), 2**70), st.integers(0, 250))
def test_a_shuffle_is_a_permutation_and_a_limit_its_beginning(count: int, seed: int, limit: int) -> None:
    whole = shuffle(array("q", range(count)), seed)
    assert sorted(whole) == list(range(count))
    assert shuffle(array("q", range(count)), seed, limit) == whole[:limit]


def test_the_shuffle_is_fixed_forever() -> None:
    assert list(shuffle(array("q", range(10)), 7)) == [5, 3, 0, 8, 4, 2, 9, 6, 1, 7]


def test_every_order_is_about_as_likely() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        order = tuple(shuffle(array("q", range(3)), seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(850 < count < 1150 for count in counts.values())
