"""`[tools.NAME]`: what the model may call. The table's name is the tool's name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.config.quantity import Seconds
from runner.config.reference import Reference
from runner.config.section import OPERATION, Array, Section, wrong_choice

MATCHERS = ("equals", "contains", "matches", "error")


class Expect(Section):
    """What a tool test expects: a plain value is compared whole, a table holds exactly one of these keys."""

    equals: Any = None
    """The whole result, compared as JSON."""
    contains: str | None = None
    """A text the result contains."""
    matches: str | None = None
    """A regular expression found in the result."""
    error: str | None = None
    """The call is answered with an error whose text contains this."""


def _expect(value: Any) -> Any:
    if isinstance(value, Expect):
        return value
    if not isinstance(value, dict):
        return Expect(equals=value)
    known = [key for key in value if key in MATCHERS]
    if len(known) == len(value) != 1:
        raise PydanticCustomError("exactly_one", "one key", {"keys": MATCHERS, "found": known})
    return value


class ToolTest(Section):
    """A golden case of a tool, run by `osmosis-run test`."""

    args: dict[str, Any] = Field(default_factory=dict)
    """The arguments, as the model would give them."""
    expect: Annotated[Expect, BeforeValidator(_expect), WithJsonSchema({})]
    """The result: a value, or `{ contains | equals | matches | error = … }`."""
    row: dict[str, Any] = Field(default_factory=dict)
    """The dataset row the call is made for. Default: empty."""


class ToolRetry(Section):
    """When a tool that raised is called again."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 1
    """Further tries after the first."""
    on: Array[str] = ()
    """Names of the exceptions worth another try (`TimeoutError`, `httpx.ConnectError`). Default: any."""


def _parameters(value: Any) -> Any:
    if value == "signature" or isinstance(value, dict):
        return value
    raise wrong_choice('a JSON Schema table or `"signature"`')


_PARAMETERS_SCHEMA = WithJsonSchema({"anyOf": [{"const": "signature"}, {"type": "object"}]})


class ApproveRule(Section):
    """Whether calls that `when` holds for may be made. The first rule that holds decides."""

    when: str | None = None
    """A Jinja expression over `args`, `tool` and `row`. Default: every call. One that cannot be decided on a call
    denies it."""
    action: Literal["allow", "deny", "ask"]
    """`allow` it, `deny` it with an answer to the model, or `ask` whoever is at the terminal (`debug`, `eval --ask`);
    where nobody is, the call is denied."""
    reason: str | None = None
    """Why, for the model and for whoever is asked."""


class ToolSection(Section):
    """What every tool has."""

    description: str | None = None
    """What the model is told the tool does. Default: the first paragraph of the callable's docstring, or the built-in
    tool's own words."""
    concurrency: Annotated[Annotated[int, Field(ge=1)] | None, OPERATION] = None
    """Calls of this tool at once, over all rollouts. Default: no limit."""
    timeout: Annotated[Seconds | None, OPERATION] = None
    """How long one call may take. Default: `limits.tool_time`."""
    max_output: Annotated[int, Field(ge=1)] = 16000
    """The longest result, in characters; the middle of a longer one is cut and the cut is said. Default 16000, about
    4000 tokens."""
    approve: Array[ApproveRule] = ()
    """Rules on which calls may be made, by their arguments. Default: all."""
    tests: Annotated[Array[ToolTest], OPERATION] = ()
    """Golden cases, run by `osmosis-run test`."""


class CallTool(ToolSection):
    """A tool: a callable of yours, checked against its schema before anything runs, or a built-in one."""

    call: Reference
    """The callable, sync or async: `"package.module:name"` or `"./file.py:name"`."""
    parameters: Annotated[dict[str, Any] | Literal["signature"], PlainValidator(_parameters), _PARAMETERS_SCHEMA] = (
        "signature"
    )
    """The arguments as JSON Schema 2020-12, or `"signature"`: derived from type hints and docstring, which is the
    default because the callable already says it."""
    retry: Annotated[ToolRetry | None, OPERATION] = None
    """When to call again after an exception. Default: never, since a call may have had an effect."""
    inject: dict[str, str] = Field(default_factory=dict)
    """Arguments the model never sees, by name: `"resource:NAME"`, `"row"`, `"row.COLUMN"`, `"rollout_id"`,
    `"attempt"`."""
