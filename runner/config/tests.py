"""`[[tests]]`: whole rollouts with a scripted model in place of the policy, run by `osmosis-run test`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from runner.config.graders import EXPECTED_SCHEMA, Expected, ExpectedCall, expected
from runner.config.model import Rule
from runner.config.section import Array, Section, wrong_choice


def _call(value: Any) -> Any:
    if isinstance(value, str):
        return {"tool": value}
    if isinstance(value, dict | ExpectedCall):
        return value
    raise wrong_choice("a tool's name or `{ tool, args }`")


_CALL_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "args": {"type": "object"}},
                "required": ["tool"],
                "additionalProperties": False,
            },
        ]
    }
)
ScriptedCall = Annotated[ExpectedCall, BeforeValidator(_call), _CALL_SCHEMA]


class RolloutExpect(Section):
    """What a test of a whole rollout expects: all of what it says."""

    stop_reason: str | None = None
    """How the rollout ends. A rollout that fails passes only a test that names its failure here."""
    reward: Annotated[Expected | None, BeforeValidator(expected), EXPECTED_SCHEMA] = None
    """The reward: a number, or `{ min, max }`."""
    tool_calls: Array[ScriptedCall] | None = None
    """The calls the model makes, all of them in order, each a tool's name or `{ tool, args }` with arguments that the
    call must have among others. `[]`: none."""
    contains: str | None = None
    """A text that the final answer contains."""
    matches: str | None = None
    """A regular expression found in the final answer."""


def _row(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise wrong_choice("a table, or a row of the dataset by its place from 0")


_ROW_SCHEMA = WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "integer", "minimum": 0}]})


class RolloutTest(Section):
    """A rollout played by `osmosis-run test`: agent, tools, limits, graders are the file's, the model is a script."""

    name: str | None = None
    """What the test is called in reports. Default: its place among the tests, from 1."""
    row: Annotated[dict[str, Any] | int, PlainValidator(_row), _ROW_SCHEMA] = Field(default_factory=dict)
    """The row: a table, or the place of a row in `[dataset]`, from 0."""
    messages: Array[dict[str, Any]] | None = None
    """The prompt in OpenAI form. Default: made of the row, as always."""
    label: str | None = None
    """The reference answer. Default: made of the row, as always."""
    attempt: Annotated[int, Field(ge=0)] = 0
    """Which attempt at the row it is."""
    rules: Annotated[tuple[Rule, ...], Field(strict=False, min_length=1)]
    """What the model answers: the same as `[[model.rules]]`."""
    expect: RolloutExpect
    """What must come of it."""
