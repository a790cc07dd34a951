"""Reading what a model wrote as arguments, and the faults of a schema."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.tools.arguments import Arguments, BadCall
from runner.tools.schema import schema_faults

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 2},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
        "mode": {"enum": ["fast", "exact"], "default": "fast"},
        "options": {"type": "object", "properties": {"tags": {"type": "array", "default": ["all"]}}},
    },
    "required": ["query"],
    "additionalProperties": False,
}

SHAPE = (
    'Expected: {"query": string, "top_k"?: integer 1 to 20, default 5, "mode"?: "fast" | "exact", default "fast", '
    '"options"?: {"tags"?: array, default ["all"]}}'
)


def refused(raw: str, schema: dict[str, Any] = SEARCH) -> str:
    with pytest.raises(BadCall) as caught:
        Arguments(schema).read(raw)
    return caught.value.sentence


def test_defaults_are_filled_in_deeply_and_freshly() -> None:
    arguments = Arguments(SEARCH)
    before = deepcopy(SEARCH)
    first = arguments.read('{"query": "refund", "options": {}}')
    assert first == {"query": "refund", "top_k": 5, "mode": "fast", "options": {"tags": ["all"]}}
    first["options"]["tags"].append("more")
    assert arguments.read('{"query": "refund", "options": {}}')["options"] == {"tags": ["all"]}
    assert before == SEARCH


def test_defaults_reach_through_references_lists_and_optionals() -> None:
    schema = {
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
            "best": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]},
            "tree": {"$ref": "#"},
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}}},
    }
    read = Arguments(schema).read
    assert read('{"points": [{}, {"x": 2}]}') == {"points": [{"x": 1}, {"x": 2}]}
    assert read('{"best": {}}') == {"best": {"x": 1}}
    assert read('{"best": null, "tree": {"tree": {"best": {}}}}')["tree"] == {"tree": {"best": {"x": 1}}}


def test_nothing_is_an_empty_object_and_double_encoding_is_undone() -> None:
    read = Arguments({"type": "object", "properties": {"a": {"type": "integer"}}}).read
    assert read("") == read(" \n") == read('""') == {}
    assert read(json.dumps('{"a": 1}')) == {"a": 1}
    assert read('{"a": 3.0}') == {"a": 3}
    assert isinstance(read('{"a": 3.0}')["a"], int)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("[1]", "The arguments are a JSON array, not an object."),
        ("null", "The arguments are `null`, not an object."),
        ('"hello"', "The arguments are a JSON string, not an object."),
        (json.dumps(json.dumps("{}")), "The arguments are a JSON string, not an object."),
        ('{"query": NaN}', "The arguments hold `NaN`, which is no JSON number."),
        ('{"query": 1e999}', "The arguments hold `1e999`, which is too large a number."),
        ('{"query": ' + "9" * 5000 + "}", "The arguments hold a number with too many digits."),
        ('{"query": "a", "query": "b"}', "The arguments give `query` twice."),
        ('{"options": {"a": 1, "a": 2}}', "The arguments give `a` twice."),
        ("[" * 100_000, "The arguments are nested too deeply."),
        ('{"query": "refu', "The arguments are not valid JSON: unterminated string"),
        ("{'query': 1}", "The arguments are not valid JSON: expecting property name"),
    ],
)
def test_text_that_is_not_an_object_is_answered_with_the_shape(raw: str, words: str) -> None:
    sentence = refused(raw)
    assert sentence.startswith(words)
    assert sentence.endswith(SHAPE)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("{}", "`query` is missing"),
        ('{"qury": "ab"}', "`qury` is not known (did you mean `query`?); `query` is missing"),
        ('{"query": "ab", "zebra": 1}', "`zebra` is not known"),
        ('{"query": 7}', "`query` must be a string, found 7"),
        ('{"query": "ab", "top_k": "5"}', '`top_k` must be an integer, found the string "5"'),
        ('{"query": "ab", "top_k": 50}', "`top_k` must be at most 20, found 50"),
        ('{"query": "a"}', '`query` must have at least 2 characters, found the string "a"'),
        (
            '{"query": "ab", "mode": "exat"}',
            '`mode` must be one of "fast", "exact", found the string "exat" (did you mean "exact"?)',
        ),
        ('{"query": "ab", "options": {"tags": {}}}', "`options.tags` must be an array, found the object {}"),
    ],
)
def test_a_bad_call_says_what_was_found_and_what_is_allowed(raw: str, problem: str) -> None:
    assert refused(raw) == f"Bad arguments: {problem}. {SHAPE}"


def test_at_most_five_problems_and_short_values() -> None:
    names = [f"a{n}" for n in range(9)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    sentence = refused(json.dumps(dict.fromkeys(names, "x" * 10_000)), schema)
    assert sentence.count("must be an integer") == 5
    assert "; and 4 more." in sentence
    assert len(sentence) < 1500


def test_the_alternative_that_was_meant_is_explained() -> None:
    circle = {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]}
    square = {"properties": {"kind": {"const": "square"}}, "required": ["kind"]}
    schema = {"type": "object", "properties": {"s": {"oneOf": [circle, square]}}}
    assert "`s.r` must be a number, found the string" in refused('{"s": {"kind": "circle", "r": "x"}}', schema)
    assert "`s.r` is missing" in refused('{"s": {"kind": "circle"}}', schema)
    assert '`s` must be {"kind": "circle", "r": number} or {"kind": "square"}, found' in refused(
        '{"s": {"kind": "cube"}}', schema
    )


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"propertyNames": {"pattern": "^a"}}, 'the name "b" must match the regular expression "^a"'),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, "the arguments: 'b' does not match"),
        ({"dependentRequired": {"b": ["c"]}}, "the arguments: 'c' is a dependency of 'b'"),
    ],
)
def test_rarer_keywords_are_said_too(schema: dict[str, Any], words: str) -> None:
    assert refused('{"b": 1}', schema).startswith(f"Bad arguments: {words}")


def test_alternatives_are_named() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    assert "`a` must be integer or null, found the string" in refused('{"a": "x"}', schema)
    listed = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    assert "`a[1]` must be a string, found 2" in refused('{"a": ["x", 2]}', {"properties": {"a": listed}})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.text()
    | JSON.map(json.dumps)
    | st.dictionaries(st.sampled_from(["query", "top_k", "mode", "x"]), JSON).map(json.dumps)
)
def test_any_text_is_either_arguments_that_fit_or_one_bad_call(raw: str) -> None:
    arguments = Arguments(SEARCH)
    try:
        read = arguments.read(raw)
    except BadCall as error:
        assert error.sentence.endswith(SHAPE)
        assert len(error.sentence) < 3000
    else:
        assert {"query", "top_k", "mode"} <= set(read) <= {"query", "top_k", "mode", "options"}
        assert arguments.read(json.dumps(read)) == read


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_what_has_no_schema_comes_through_untouched(value: dict[str, Any]) -> None:
    assert Arguments({"type": "object"}).read(json.dumps(value)) == value
    assert Arguments({"type": "object"}).read(json.dumps(json.dumps(value))) == value


@pytest.mark.parametrize(
    ("schema", "path", "words", "near"),
    [
        ({"type": "object", "properties": {"a": {"type": "strng"}}}, ("properties", "a", "type"),
         "`strng` is not a JSON type", "string"),
        ({"type": "object", "required": "a"}, ("required",), "'a' is not of type 'array'", ""),
        ({"type": "string"}, ("type",), "the arguments of a tool are an object", ""),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, ("properties", "a", "$ref"), "`#/$defs/b` leads nowhere", ""),
        ({"properties": {"a": {"$ref": "https://x.example/y"}}}, ("properties", "a", "$ref"), "leads nowhere", ""),
        ({"properties": {"a": {"pattern": "("}}}, ("properties", "a", "pattern"), "is not a regular expression", ""),
        ({"properties": {"a": {"type": "integer", "default": None}}}, ("properties", "a", "default"),
         "does not fit its own schema", ""),
    ],
)  # fmt: skip
def test_schema_faults_have_a_place(schema: dict[str, Any], path: tuple[str, ...], words: str, near: str) -> None:
    (fault,) = schema_faults(schema)
    assert (fault.path, fault.near) == (path, near)
    assert words in fault.message


def test_sound_schemas_have_no_fault() -> None:
    tree = {"$id": "https://x.example/t", "type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}}
    assert schema_faults(SEARCH) == schema_faults(tree) == schema_faults({}) == []
