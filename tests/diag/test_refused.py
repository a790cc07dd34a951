"""Refusals of a typed config are told in plain words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from runner.diag.refused import refused


def positive(value: int) -> int:
    raise ValueError("Only even numbers will do")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, "deep", "must be a whole number, found a string"),
        (int, 1.5, "must be a whole number, found `1.5`"),
        (str, 3, "must be a string, found `3`"),
        (bool, [1], "must be `true` or `false`, found an array"),
        (list[int], "x", "must be an array, found a string"),
        (dict[str, int], True, "must be a table, found `true`"),
        (Annotated[int, Field(ge=1)], 0, "must be at least 1, found `0`"),
        (Literal["short", "long"], "large", "must be 'short' or 'long', found a string"),
    ],
)
def test_words(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    assert [refused(error) for error in caught.value.errors()] == [words]


def test_the_users_own_words_are_kept() -> None:
    from pydantic import AfterValidator

    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Annotated[int, AfterValidator(positive)]).validate_python(3)
    assert refused(caught.value.errors()[0]) == "is refused: only even numbers will do"
