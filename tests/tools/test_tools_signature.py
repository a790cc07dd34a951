"""Deriving a schema from a signature, and checking one against the other."""

from __future__ import annotations

import datetime
import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from runner.tools.signature import SignatureError, converters, derive, misfits

if TYPE_CHECKING:
    from nowhere import Database


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Order(BaseModel):
    id: str
    amount: Annotated[int, Field(ge=1)] = 1


class Options(TypedDict, total=False):
    exact: bool


class Query(TypedDict):
    text: str
    options: NotRequired[Options]


def search(query: str, top_k: int = 5, tags: list[str] | None = None) -> str:
    """Search the help
    centre.

    More words.

    Args:
        query: What to look for,
            in words.
        top_k (int, optional): How many.
        tags: Only these.

    Returns:
        query: not a parameter
    """
    return query


def test_derive_says_name_description_types_defaults_and_docs() -> None:
    spec = derive(search)
    assert (spec.name, spec.description) == ("search", "Search the help centre.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words."},
            "top_k": {"type": "integer", "description": "How many.", "default": 5},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "description": "Only these.",
                "default": None,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_numpy_and_rest_docstrings() -> None:
    def numpy(a: int, b: int) -> None:
        """Sum.

        Parameters
        ----------
        a : int
            The first,
            of two.
        b
            The second.

        Returns
        -------
        a
            no
        """

    def rest(a: int, b: int) -> None:
        """Sum.

        :param a: The first,
            of two.
        :param int b: The second.
        :returns: no
        """

    for function in (numpy, rest):
        spec = derive(function)
        assert spec.description == "Sum."
        said = {name: part["description"] for name, part in spec.parameters["properties"].items()}
        assert said == {"a": "The first, of two.", "b": "The second."}


def test_every_kind_of_hint_has_a_schema_that_validates() -> None:
    def rich(
        a: Optional[int],  # noqa: UP045
        b: int | str,
        c: Literal["x", "y"],
        d: dict[str, int],
        e: tuple[int, str],
        f: set[str],
        g: Options,
        h: Point,
        i: Order,
        j: Colour,
        k: Annotated[int, Field(ge=1, le=9, description="a digit")],
        l: Annotated[str, "some text"],  # noqa: E741
        m: datetime.datetime,
        n: Any = None,
        o=3,  # type: ignore[no-untyped-def]
        p: str = None,  # type: ignore[assignment]  # noqa: RUF013
    ) -> None: ...

    schema = dict(derive(rich).parameters)
    Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    assert properties["b"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["c"]["enum"] == ["x", "y"]
    assert properties["e"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["f"]["uniqueItems"] is True
    assert properties["k"] == {"type": "integer", "minimum": 1, "maximum": 9, "description": "a digit"}
    assert properties["l"] == {"type": "string", "description": "some text"}
    assert properties["m"] == {"type": "string", "format": "date-time"}
    assert properties["o"] == {"default": 3}
    assert properties["p"] == {"type": "string"}
    assert set(schema["$defs"]) == {"Options", "Point", "Order", "Colour"}
    assert "title" not in str(schema)
    assert set(schema["required"]) == set("abcdefghijklm")


def test_typed_dicts_keep_what_they_require() -> None:
    def find(query: Query, more: list[Options] | None = None) -> None: ...

    definitions = derive(find).parameters["$defs"]
    assert definitions["Query"]["required"] == ["text"]
    assert definitions["Query"]["properties"]["options"] == {"$ref": "#/$defs/Options"}
    assert "required" not in definitions["Options"]
    assert converters(find) == {}


def test_a_property_called_title_stays() -> None:
    def book(title: str, options: dict[str, str]) -> None: ...

    assert set(derive(book).parameters["properties"]) == {"title", "options"}


def test_injected_parameters_are_left_out_even_when_their_hint_means_nothing() -> None:
    def lookup(order: str, db: Database) -> str:  # type: ignore[valid-type]
        return order

    assert set(derive(lookup, injected=["db"]).parameters["properties"]) == {"order"}
    with pytest.raises(SignatureError, match="the hint of `db` cannot be resolved") as caught:
        derive(lookup)
    assert caught.value.parameter == "db"


class Shop:
    """A shop."""

    def buy(self, item: str) -> str:
        """Buy an item."""
        return item

    def __call__(self, item: str, count: int = 1) -> str:
        """Buy many."""
        return item * count


def test_methods_partials_callables_and_decorated_functions() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    assert derive(Shop().buy).parameters["required"] == ["item"]
    assert derive(Shop()).description == "Buy many."
    assert derive(Shop()).name == "Shop"
    assert derive(logged(search)).parameters == derive(search).parameters
    bound = derive(functools.partial(search, top_k=3))
    assert (bound.name, set(bound.parameters["properties"])) == ("search", {"query", "tags"})


@pytest.mark.parametrize(
    ("function", "parameter", "words"),
    [
        (lambda *rest: None, "rest", r"`\*rest` has no schema"),
        (lambda **rest: None, "rest", r"`\*\*rest` has no schema"),
        (lambda a, /: None, "a", "positional-only"),
    ],
)
def test_parameters_that_no_model_can_give(function: Callable[..., Any], parameter: str, words: str) -> None:
    with pytest.raises(SignatureError, match=words) as caught:
        derive(function)
    assert caught.value.parameter == parameter


def test_hints_without_a_json_form_are_named() -> None:
    class Handle: ...

    def bad(handle: Handle) -> None: ...

    def worse(then: Callable[[int], int]) -> None: ...

    bad.__annotations__["handle"] = Handle
    for function, name in ((bad, "handle"), (worse, "then")):
        with pytest.raises(SignatureError, match=f"the hint of `{name}`.*has no JSON form") as caught:
            derive(function)
        assert caught.value.parameter == name


def test_converters_make_what_the_hints_ask_for() -> None:
    def rich(a: Point, b: Colour, c: datetime.date, d: set[int], e: tuple[int, ...], f: int, g: list[dict[str, Any]],
             h: Options, i: Sequence[str]) -> None: ...  # fmt: skip

    made = converters(rich)
    assert set(made) == {"a", "b", "c", "d", "e"}
    assert made["a"]({"x": 1}) == Point(1)
    assert made["b"]("red") is Colour.RED
    assert made["c"]("2024-02-29") == datetime.date(2024, 2, 29)
    assert made["d"]([1, 1]) == {1}


def kinds(function: Callable[..., Any], properties: dict[str, Any], injected: Sequence[str] = (), **more: Any) -> Any:
    schema = {"type": "object", "properties": properties, **more}
    return [(each.kind, each.parameter, each.path_in_schema, each.near) for each in misfits(function, schema, injected)]


def test_misfits_in_both_directions() -> None:
    good = {"query": {"type": "string"}, "top_k": {"type": "integer"}}
    assert kinds(search, good, required=["query"]) == []
    assert kinds(search, good) == [("signature-required", "query", ("properties", "query"), "")]
    assert kinds(search, {"query": {"type": "string", "default": "x"}}) == []
    assert kinds(search, {"qury": {"type": "string"}}, required=["qury"]) == [
        ("signature-extra", "qury", ("properties", "qury"), "query"),
        ("signature-missing", "query", ("properties",), ""),
    ]
    assert kinds(search, {**good, "tags": {"type": "string"}}, required=["query"]) == [
        ("signature-type", "tags", ("properties", "tags", "type"), "")
    ]
    assert kinds(search, good, ["db"], required=["query"]) == [("signature-inject", "db", (), "")]
    assert kinds(search, good, ["top_k"], required=["query"]) == [
        ("signature-inject", "top_k", ("properties", "top_k"), "")
    ]
    assert kinds(lambda a, /: None, {"a": {}})[0][0] == "signature-positional"
    assert kinds(lambda **rest: None, good) == []


@pytest.mark.parametrize(
    ("hint", "schema", "clash"),
    [
        (int, {"type": "string"}, True),
        (int, {"type": "number"}, False),
        (float, {"type": "integer"}, False),
        (int, {"type": ["integer", "null"]}, False),
        (int, {"type": ["string", "null"]}, True),
        (str, {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, True),
        (str, {"anyOf": [{"type": "integer"}, {}]}, False),
        (str, {"$ref": "#/$defs/n"}, True),
        (int, {"$ref": "#/$defs/n"}, False),
        (int, {"$ref": "https://elsewhere.example/x"}, False),
        (int, {"enum": ["a", "b"]}, True),
        (str, {"enum": ["a", 1]}, False),
        (int, {"const": "a"}, True),
        (Literal["a", "b"], {"enum": ["c"]}, True),
        (Literal["a", "b"], {"enum": ["b", "c"]}, False),
        (list[int], {"type": "object"}, True),
        (Point, {"type": "object"}, False),
        (datetime.date, {"type": "string"}, False),
        (Any, {"type": "string"}, False),
        (Shop, {"type": "string"}, False),
        (bool, {"type": "integer"}, True),
        (dict, {"type": "object"}, False),
        (int, True, False),
    ],
)
def test_only_sure_clashes_of_type_are_reported(hint: Any, schema: Any, clash: bool) -> None:
    def tool(x):  # type: ignore[no-untyped-def]
        return x

    tool.__annotations__["x"] = hint
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": {"n": {"type": "integer"}}}
    found = [each.kind for each in misfits(tool, whole)]
    assert found == (["signature-type"] if clash else [])
