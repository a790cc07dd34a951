"""A schema that is called valid without the library is valid by the library too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner.config.checks.plain_schema import surely_valid

WORDS = ("type", "properties", "required", "additionalProperties", "items", "enum", "minimum", "minLength", "default",
         "title", "format", "uniqueItems", "examples", "$ref", "anyOf", "nonsense")  # fmt: skip
LEAVES = st.sampled_from(["string", "object", "strng", 1, -1, 1.5, True, None, [], ["a"], ["a", "a"], [1], {}])
SCHEMAS = st.recursive(LEAVES, lambda inner: st.dictionaries(st.sampled_from(WORDS), inner, max_size=3), max_leaves=8)


@settings(max_examples=400)
@given(SCHEMAS)
def test_surely_means_surely(schema: Any) -> None:
    if surely_valid(schema):
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "sure"),
    [
        ({"type": "object", "properties": {"q": {"type": "string", "minLength": 2}}, "required": ["q"]}, True),
        ({"type": "array", "items": {"enum": [1, "a"]}, "uniqueItems": True}, True),
        ({"type": "strng"}, False),
        ({"minLength": -1}, False),
        ({"required": ["a", "a"]}, False),
        ({"$ref": "#/$defs/a"}, False),
    ],
)
def test_what_is_sure(schema: Any, sure: bool) -> None:
    assert surely_valid(schema) is sure
