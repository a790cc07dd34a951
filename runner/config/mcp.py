"""`[mcp.NAME]`: a server whose tools the agent may call, as `NAME/tool`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from runner.config.model import Header
from runner.config.quantity import Seconds
from runner.config.section import OPERATION, Array, Section
from runner.config.tools import ApproveRule, ToolTest


class McpTest(ToolTest):
    """A golden case of one of the server's tools, run by `osmosis-run test` against the server itself."""

    tool: str
    """Which of its tools, by the server's own name for it."""


class McpSection(Section):
    """A server of the Model Context Protocol: a program that is started, or an address. Exactly one of the two."""

    command: Annotated[Array[str], Field(min_length=1)] | None = None
    """The program and its arguments. It runs in the file's folder, on this machine, as you: only what you trust."""
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = None
    """Or the address of a server that speaks streamable HTTP."""
    env: dict[str, Header] = Field(default_factory=dict)
    """With `command`: variables it gets, as strings or `{ env = "NAME" }`. Of ours it gets PATH, HOME and the like."""
    headers: dict[str, Header] = Field(default_factory=dict)
    """With `url`: headers of every request, as strings or `{ env = "NAME" }`."""
    scope: Literal["run", "rollout"] = "run"
    """`run`: one connection for all rollouts; `rollout`: one for each, for servers that keep state. Default: `run`."""
    tools: Array[str] | None = None
    """Which of its tools are offered, as names or globs (`read_*`). Default: all."""
    approve: Array[ApproveRule] = ()
    """Rules on which calls of its tools may be made, by `tool` and `args`. Default: all."""
    start_time: Annotated[Seconds, OPERATION] = 30.0
    """How long connecting may take, and starting the program. Default 30 s: some fetch themselves first."""
    timeout: Annotated[Seconds | None, OPERATION] = None
    """How long one call may take. Default: `limits.tool_time`."""
    max_output: Annotated[int, Field(ge=1)] = 16000
    """The longest result, in characters; the middle of a longer one is cut and the cut is said."""
    tests: Annotated[Array[McpTest], OPERATION] = ()
    """Golden cases, run by `osmosis-run test`."""

    @model_validator(mode="before")
    @classmethod
    def _one_way(cls, value: Any) -> Any:
        if isinstance(value, dict):
            found = [key for key in ("command", "url") if key in value]
            if len(found) != 1:
                raise PydanticCustomError("exactly_one", "one key", {"keys": ("command", "url"), "found": found})
        return value
