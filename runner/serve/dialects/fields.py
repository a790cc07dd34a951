"""The fields of a start, read and coerced as the SDK's servers do; what is wrong is their 422, without any secret.

Shapes are pydantic models, so the rules and the words are the ones that callers of those servers know. A `detail`
never repeats keys, URLs or whole bodies, and always encodes: NaN is refused here, not met again while answering.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field, ValidationError

from runner.serve.dialects.encode import Mender, is_strict, scrubbed
from runner.serve.start import Refused

_SHOWN = frozenset({"rollout_id", "label", "max_turns", "max_tokens_total", "agent_timeout_sec", "grader_timeout_sec"})
"""Fields whose wrong value may be repeated: none of them holds a secret."""
_LONGEST_SHOWN = 200
_MANY = 1000

M = TypeVar("M", bound=BaseModel)


def _bearer(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise ValueError("the key holds a character that no HTTP header can carry")
    return key


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


Key = Annotated[str, AfterValidator(_bearer)]
"""A bearer key. `""` is one that is not sent."""
GivenKey = Annotated[str, Field(min_length=1), AfterValidator(_bearer)]
"""A bearer key for which `""` is wrong."""
OptionalUrl = Annotated[str | None, BeforeValidator(_none_if_empty)]
"""A URL, for which `""` says the same as null."""
Messages = Annotated[list[dict[str, Any]], FailFast()]
"""Any objects. The first that is none ends the reading: an answer need not list a million of them."""
Seconds = Annotated[float, Field(allow_inf_nan=False)]


class Fields(BaseModel):
    """What the starts of all dialects share: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


def read(model: type[M], body: Any) -> M:
    """The fields of a body. Raises `Refused` (422)."""
    if not isinstance(body, Mapping):
        raise refused(
            (), "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"
        )
    try:
        return model.model_validate(body if isinstance(body, dict) else dict(body))
    except ValidationError as error:
        raise Refused(422, [_told(each) for each in error.errors(include_url=False, include_context=False)]) from None


def refused(where: tuple[str | int, ...], kind: str, message: str) -> Refused:
    """A 422 about one place of the body."""
    return Refused(422, [{"type": kind, "loc": ["body", *where], "msg": message}])


def cleaned(value: Any, name: str, notes: list[str]) -> Any:
    """`value` as it is, or, where JSON cannot hold it, with what is unfit replaced, and a note of that.

    Half a surrogate pair and NaN are legal in what callers send, and could be sent to nobody.
    """
    many = isinstance(value, list) and len(value) > _MANY
    # A long list is looked at item by item, so that the threads of others are let in between: see `http/body.py`.
    if not value or (all(map(is_strict, value)) if many else is_strict(value)):
        return value
    mender = Mender()
    mended = mender.mend(value, name)
    notes.append(f"not JSON, replaced: {', '.join(mender.lost)}" if mender.lost else f"`{name}` was mended")
    return mended


def json_size(value: Any) -> int:
    """Bytes of a value as JSON with non-ASCII escaped, the measure of the first generation. Raises `Refused` (422)."""
    try:
        return len(json.dumps(value))
    except RecursionError:
        raise refused((), "json_invalid", "the body is nested too deeply") from None


def _told(error: Mapping[str, Any]) -> dict[str, Any]:
    where = [each if isinstance(each, int) else scrubbed(each)[:_LONGEST_SHOWN] for each in error["loc"]]
    told = {"type": error["type"], "loc": ["body", *where], "msg": scrubbed(error["msg"])}
    if error["type"] != "missing" and len(where) == 1 and where[0] in _SHOWN and _showable(error["input"]):
        told["input"] = error["input"]
    return told


def _showable(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_SHOWN and value.isprintable()
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int):
        return value.bit_length() <= 64
    return isinstance(value, float) and is_strict(value)
