"""`[workflow]`: the agent, what it is told, and when it is done."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.config.parser import Parser
from runner.config.reference import ENTRYPOINT_PATTERN, REFERENCE_PATTERN, Reference, Text
from runner.config.section import GRADE, OPERATION, Array, Section

AgentName: TypeAlias = Literal["chat", "tools", "react", "coding", "strands"]
AGENTS: tuple[AgentName, ...] = ("chat", "tools", "react", "coding", "strands")
TOOL_AGENTS: tuple[AgentName, ...] = ("tools", "react", "coding")
"""The agents that call tools in a loop of ours."""

_NAMED_PATTERN = REFERENCE_PATTERN.removesuffix(r"(?:\.[A-Za-z_]\w*)*$").removesuffix(r"\w*") + r"[\w.-]*$"
"""A module and the name that an agent in it is registered by, which need be no name of Python's."""


def _agent(value: Any) -> Any:
    if value in AGENTS or isinstance(value, Reference):
        return value
    if isinstance(value, str) and ":" not in value:
        entrypoint = Reference.entrypoint(value)
        if entrypoint is not None:
            return entrypoint
        return _installed(value)
    if isinstance(value, str) and re.fullmatch(_NAMED_PATTERN[1:-1], value):
        return Reference(value)
    return Reference.parse(value)


def _installed(value: str) -> Reference:
    """The agent of an installed package."""
    from runner.config.installed import installed_agents

    known = installed_agents()
    if value not in known:
        kinds = (*AGENTS, *known)
        raise PydanticCustomError("unknown_kind", "an agent", {"noun": "agent", "word": value, "kinds": kinds})
    return Reference(known[value])


_AGENT_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"enum": list(AGENTS)},
            {"type": "string", "pattern": _NAMED_PATTERN},
            {"type": "string", "pattern": ENTRYPOINT_PATTERN},
        ]
    }
)
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
    """Who drives the model: `chat` (one answer), `tools` (calls tools until it answers), `react` (the same in text:
    thoughts and actions), `coding` (works on a repository in a sandbox and leaves a patch), `strands` (an agent of
    Strands), code of your own by reference, the name under which a module registers one (`"./agents.py:NAME"`), or
    that of an installed package's; `"./main.py"` or `"package.module"` alone finds the one `AgentWorkflow` there, and
    its `Grader` where the file has none. Default: `tools` if a tool is declared, else `chat`."""
    parser: Parser = None
    """The text format of tool calls, for models or trainings without native ones: `"react-text"`, `"react-json"`,
    `"hermes"`, `"xml-function"`, a function of yours by reference, or `{ regex = "…" }`. Default: native tool calls;
    for `react`, `react-text`."""
    reasoning: Literal["drop", "resend"] = "drop"
    """Whether the model gets its reasoning back in later turns, as `reasoning_content`. What stands in the content,
    such as `<think>` tags, is content either way. Default: no, as most endpoints want it."""
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
    """What ends an agent with tools: `no_tool_call`, an answer without a tool call, and `tool:NAME`, a call of that
    tool. Default: an answer, because every model can give one, and any tool that is `builtin = "finish"`."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Settings for your own agent class, validated by its `AgentWorkflowConfig`. For `strands`: `conversation_manager`,
    a reference to what makes one, and `hooks`, references to classes of hooks or callbacks. For `coding`: `sandbox`,
    `folder`, `test_command`, `test_after_changes`, `max_files_to_explore`, `max_implementation_attempts`,
    `max_patch_bytes`."""
