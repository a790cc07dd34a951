"""`json_schema`: the answer is JSON and fits a JSON Schema (2020-12), compiled once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.graders.answer import TIMEOUT, answer_of, short
from runner.graders.extract import Extraction, json_in
from runner.graders.grader import Grader, GraderContext, GraderMisfit, Score
from runner.graders.patterns import LONG
from runner.graders.worker import Workers
from runner.records.failure import GraderError

_SHOWN = 3
_DEAR = frozenset({"pattern", "patternProperties", "uniqueItems"})
"""Keywords whose cost may grow faster than the answer does."""


class JsonSchemaGrader(Grader):
    """1 when the answer, code fences taken off, is JSON that fits `schema`, else 0 with the first errors as reason.

    Raises `GraderMisfit` for a schema that is none, or that refers to another document: nothing is fetched. A schema
    with patterns, and a long answer, are checked in `workers`, where they cannot hold up the event loop.
    """

    range = (0.0, 1.0)
    needs_label = False

    def __init__(
        self,
        schema: Mapping[str, Any] | bool,
        *,
        extraction: Extraction | None = None,
        workers: Workers | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__()
        self._schema = schema
        self._validator = _compiled(schema)
        self._dear = _mentions(schema, _DEAR)
        self._extraction = extraction
        self._workers = workers or Workers()
        self._timeout = timeout

    async def grade(self, ctx: GraderContext) -> Score:
        answer = await answer_of(ctx, self._extraction, self._workers, self._timeout)
        if isinstance(answer, Score):
            return answer
        try:
            instance = json_in(answer)
        except ValueError as error:
            return Score(0.0, f"not JSON ({str(error)[:120]}): {short(answer)}")
        errors = await self._errors(instance, self._dear or len(answer) > LONG)
        if not errors:
            return Score(1.0, "fits the schema")
        shown = "; ".join(f"{path}: {message[:160]}" for path, message in errors[:_SHOWN])
        return Score(0.0, shown + (f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""))

    async def _errors(self, instance: Any, dear: bool) -> list[list[str]]:
        if dear:
            request = {"schema": self._schema, "instance": instance}
            reply = await self._workers.ask("json_schema", request, self._timeout)
            return list(reply["errors"])
        try:
            found = sorted(self._validator.iter_errors(instance), key=_place)
        except RecursionError as error:
            raise GraderError(
                "checking this answer never ends: the schema refers to itself, or it goes too deep"
            ) from error
        return [[error.json_path, error.message] for error in found]


def _place(error: Any) -> list[str]:
    return [str(step) for step in error.absolute_path]


def _compiled(schema: Mapping[str, Any] | bool) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise GraderMisfit(f"not a valid JSON Schema at {error.json_path}: {error.message}") from error
    resolver = Registry().with_resource("", _resource(schema)).resolver()
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable as error:
            raise GraderMisfit(f"the schema refers to {reference!r}, which is not in it") from error
    return Draft202012Validator(schema, registry=Registry())


def _resource(schema: Any) -> Any:
    from referencing.jsonschema import DRAFT202012

    return DRAFT202012.create_resource(schema)


def _references(schema: Any) -> set[str]:
    if isinstance(schema, Mapping):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(_references(value) for value in schema.values()))
    found: set[str] = set()
    return found.union(*(_references(value) for value in schema)) if isinstance(schema, list) else found


def _mentions(schema: Any, words: frozenset[str]) -> bool:
    if isinstance(schema, Mapping):
        return not words.isdisjoint(schema) or any(_mentions(value, words) for value in schema.values())
    return isinstance(schema, list) and any(_mentions(value, words) for value in schema)
