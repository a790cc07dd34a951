"""The quick yes for plain schemas never says yes where jsonschema says no."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner.tools.plain import plain_check

PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])},
    optional={"description": st.just("a"), "minimum": st.just(3), "enum": st.just(["a"]), "default": st.just(1)},
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), PARTS, max_size=3)},
    optional={
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "additionalProperties": st.sampled_from([True, False, {"type": "string"}]),
        "minProperties": st.just(1),
    },
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=2), st.lists(st.none())
)


@settings(max_examples=300, deadline=None)
@given(schema=SCHEMAS, arguments=st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4))
def test_a_quick_yes_is_a_yes(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    check = plain_check(schema)
    if check is not None and check(arguments):
        assert Draft202012Validator(schema).is_valid(arguments)


def test_what_is_plain() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "description": "B."}},
        "required": ["a"],
        "additionalProperties": False,
    }
    check = plain_check(schema)
    assert check is not None
    assert check({"a": 1})
    assert check({"a": 1, "b": "x"})
    for wrong in ({}, {"a": True}, {"a": 1.0}, {"a": 1, "c": 1}, {"a": 1, "b": None}):
        assert not check(wrong)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "allOf": []},
        {"type": "array"},
    ],
)
def test_what_is_not(schema: dict[str, Any]) -> None:
    assert plain_check(schema) is None
