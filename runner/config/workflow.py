"""`[workflow]`: the agent, what it is told, and when it is done."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.config.reference import REFERENCE_PATTERN, Reference, Text
from runner.config.section import GRADE, OPERATION, Array, Section

AgentName: TypeAlias = Literal["chat", "tools", "strands"]
AGENTS: tuple[AgentName, ...] = ("chat", "tools", "strands")


def _agent(value: Any) -> Any:
    if value in AGENTS or isinstance(value, Reference):
        return value
    if isinstance(value, str) and ":" not in value:
        raise PydanticCustomError("unknown_kind", "an agent", {"noun": "agent", "word": value, "kinds": AGENTS})
    return Reference.parse(value)


_AGENT_SCHEMA = WithJsonSchema({"anyOf": [{"enum": list(AGENTS)}, {"type": "string", "pattern": REFERENCE_PATTERN}]})
Agent = Annotated[AgentName | Reference, PlainValidator(_agent), _AGENT_SCHEMA]


class WorkflowSection(Section):
    """The agent, what it is told, and when it is done."""

    name: Annotated[str | None, OPERATION] = None
    """What runs of this file are called. Default: the name of the file's folder."""
    version: Annotated[str | None, OPERATION] = None
    """A version for people; it is written into each run and never compared."""
    description: Annotated[str | None, OPERATION] = None
    """One sentence on what the agent is asked to do."""
    agent: Agent | None = None
    """Who drives the model: `chat` (one answer), `tools` (calls tools until it answers), `strands` (the same by an
    agent of Strands), or code of your own by reference. Default: `tools` if a tool is declared, else `chat`."""
    system: Text | None = None
    """The system prompt, a Jinja template over `row`, or `{ file = "…" }`. Default: `row.system_prompt` where the row
    has one, else none."""
    user: Text | None = None
    """The user message, a Jinja template over `row`, or `{ file = "…" }`. Default: `row.user_prompt`; a row with
    `messages` needs neither."""
    label: Annotated[Text, GRADE] = Text("{{ row.ground_truth }}")
    """The reference answer graders compare with, a Jinja template over `row`. A row without it has no label."""
    tools: Array[str] | None = None
    """Which of the declared tools the agent may call, as names or globs (`files/read_*`). Default: all."""
    stop_when: Array[str] = ("no_tool_call",)
    """What ends the `tools` agent: `no_tool_call`, an answer without a tool call, and `tool:NAME`, a call of that
    tool. Default: an answer, because every model can give one."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Settings for your own agent class, validated by its `AgentWorkflowConfig`. For `strands`: `conversation_manager`,
    a reference to what makes one, and `hooks`, references to classes of hooks or callbacks."""
