"""`Section`: what every table of the file is, and the tag that says what a key affects.

Strict means strict: no coercion, no unknown key, no NaN. A key's tag is its own, or else that of the table around it.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from runner.records.quick import quick

Affects: TypeAlias = Literal["result", "grade", "operation"]


@quick
class Tag:
    """What changing a key costs: "result" plays rollouts again, "grade" grades them again, "operation" neither."""

    affects: Affects


RESULT = Tag("result")
GRADE = Tag("grade")
OPERATION = Tag("operation")

T = TypeVar("T")
Array = Annotated[tuple[T, ...], Field(strict=False)]
"""A TOML array, kept as a tuple. Lax on the outside only: a list becomes a tuple, its items stay strict."""


class Section(BaseModel):
    """A table of the file. The docstring under each attribute is its documentation, read by `document`.

    A table that is another's default is made with `model_construct()`: its values are defaults already, and making it
    the usual way would build a validator per table at import.
    """

    # Docstrings are read from the source when someone asks: pydantic's own way costs a parse per class at import.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True, protected_namespaces=()
    )


def wrong_choice(wanted: str) -> PydanticCustomError:
    """The refusal of a value that may be of several kinds; `wanted` names them: "a table or a string"."""
    return PydanticCustomError("choice_type", "wrong type", {"wanted": wanted})
