"""`quick` makes what `dataclass` makes, to whoever only looks."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.records.quick import quick


def made(decorator: Callable[[type], Any]) -> Any:
    """The same class by either decorator."""

    @decorator
    class Made:
        a: int
        b: str = "x"
        c: tuple[Any, ...] = field(default=(), repr=False)
        d: dict[str, int] = field(default_factory=dict, compare=False)

    return Made


QUICK, USUAL = made(quick), made(dataclass(slots=True, unsafe_hash=True))
some = st.tuples(st.integers(0, 2), st.sampled_from("xy"), st.sampled_from([(), (1,)]), st.just({"k": 1}) | st.just({}))


@given(some, some)
def test_it_is_equal_hashed_and_shown_as_a_dataclass_is(one: Any, other: Any) -> None:
    assert (QUICK(*one) == QUICK(*other)) is (USUAL(*one) == USUAL(*other))
    assert hash(QUICK(*one)) == hash(USUAL(*one))
    assert repr(QUICK(*one)) == repr(USUAL(*one))
    assert replace(QUICK(*one), a=7) == QUICK(7, *one[1:])
    assert tuple(each.name for each in fields(QUICK)) == QUICK.__slots__ == QUICK.__match_args__


def test_it_equals_nothing_of_another_class() -> None:
    assert QUICK(1) != USUAL(1)
    assert QUICK(1) != 1


@quick
class One:
    value: int


@quick
class More(One):
    more: str = ""


@quick
class Nothing:
    pass


@quick
class Own:
    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


def test_one_field_more_of_a_subclass_and_none() -> None:
    assert len({One(1), One(1), One(2), More(1), More(1, "x"), Nothing(), Nothing()}) == 5
    assert (repr(More(1, "x")), repr(Nothing())) == ("More(value=1, more='x')", "Nothing()")


def test_what_a_class_says_itself_stands() -> None:
    assert Own(1) == Own(2)
    assert repr(Own(1)) == "own"
    assert hash(Own(1)) == 7


@pytest.mark.parametrize("value", [One(1), More(1, "x"), Nothing()])
def test_it_can_be_copied_and_pickled(value: Any) -> None:
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
