"""The third seed's own form of a tool: a class with a schema, and a life of its own in each trajectory.

Any object with `execute(**arguments)` and any function is a tool as well; this form adds rewards, and state that is
made when a trajectory first calls it and released at its end.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from runner.workflows.loop.tool_schemas import OpenAIFunctionToolSchema


@dataclass
class ToolResult:
    """What a tool gives. `error` is a sentence that the model can act on; `reward_score` goes to the step's reward."""

    success: bool
    result: Any = None
    error: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    reward_score: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Every field."""
        return asdict(self)


@dataclass
class ToolCallInfo:
    """One call, as `ToolRegistry.execute_tool_call` takes it."""

    tool_name: str
    instance_id: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    call_id: str | None = None


def create_openai_tool_schema(
    name: str, description: str, parameters: Mapping[str, Any], required: Sequence[str] = ()
) -> OpenAIFunctionToolSchema:
    """The schema of a tool; `parameters` holds the JSON Schema of each argument by its name.

    Raises ValueError for a name that is required and not there.
    """
    from runner.workflows.loop.tool_schemas import OpenAIFunctionToolSchema

    unknown = [each for each in required if each not in parameters]
    if unknown:
        raise ValueError(f"`{unknown[0]}` is required, and the tool {name!r} has no such parameter")
    schema = {"type": "object", "properties": dict(parameters), "required": list(required)}
    function = {"name": name, "description": description, "parameters": schema}
    return OpenAIFunctionToolSchema.model_validate({"type": "function", "function": function})


class BaseAgenticTool(ABC):
    """A tool with a schema. `execute_tool` does the work; what it raises is an error that the model is told.

    The schema is `tool_schema`, or what `get_openai_tool_schema` gives: an `OpenAIFunctionToolSchema` or a dictionary.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, tool_schema: Any = None) -> None:
        self.config = dict(config or {})
        self.tool_schema = tool_schema
        self.instances: dict[str, dict[str, Any]] = {}

    @property
    def name(self) -> str:
        """What the model calls it."""
        from runner.workflows.loop.tool_schemas import spec_of

        return spec_of(self.get_openai_tool_schema()).name

    def get_openai_tool_schema(self) -> Any:
        """The schema. Raises NotImplementedError for a tool that was given none and makes none."""
        if self.tool_schema is None:
            raise NotImplementedError(f"{type(self).__name__} has no schema: give it `tool_schema`")
        return self.tool_schema

    def get_description(self) -> str:
        """The tool in words: its schema as JSON, unless you say it better."""
        from runner.workflows.loop.tool_schemas import plain_tool

        return json.dumps(plain_tool(self.get_openai_tool_schema()), indent=2, ensure_ascii=False)

    async def create_instance(self, instance_id: str | None = None, **more: Any) -> str:
        """Begin the tool's life in a trajectory; the id it goes by."""
        instance_id = instance_id or uuid4().hex
        self.instances[instance_id] = {}
        await self._initialize_instance(instance_id, **more)
        return instance_id

    async def release_instance(self, instance_id: str, **more: Any) -> None:
        """End it."""
        if instance_id in self.instances:
            try:
                await self._cleanup_instance(instance_id, **more)
            finally:
                self.instances.pop(instance_id, None)

    async def _initialize_instance(self, instance_id: str, **more: Any) -> None:  # noqa: B027 (may be left out)
        """What to make when its life begins: `self.instances[instance_id]` is its own dictionary."""

    async def _cleanup_instance(self, instance_id: str, **more: Any) -> None:  # noqa: B027
        """What to let go when it ends."""

    @abstractmethod
    async def execute_tool(self, instance_id: str, parameters: dict[str, Any], **more: Any) -> ToolResult:
        """Do it."""

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **more: Any
    ) -> tuple[str, float, dict[str, Any]]:
        """The same as trainers call it: text, reward, metrics."""
        given = await self.execute_tool(instance_id, parameters, **more)
        return said(given), given.reward_score, given.metrics

    async def calculate_reward(self, instance_id: str, **more: Any) -> float:
        """The reward of a whole life, added to the last result of the tool when the trajectory ends."""
        return 0.0

    def validate_parameters(self, parameters: Mapping[str, Any]) -> bool:
        """Whether the arguments fit the schema."""
        from runner.tools.arguments import Arguments, BadCall
        from runner.workflows.loop.tool_schemas import spec_of

        try:
            Arguments(spec_of(self.get_openai_tool_schema()).parameters).read(json.dumps(dict(parameters)))
        except (BadCall, TypeError):
            return False
        return True

    def get_tool_info(self) -> dict[str, Any]:
        """Its name, class, schema and lives."""
        from runner.workflows.loop.tool_schemas import plain_tool

        return {
            "name": self.name,
            "class": f"{type(self).__module__}.{type(self).__qualname__}",
            "schema": plain_tool(self.get_openai_tool_schema()),
            "active_instances": len(self.instances),
        }

    def get_execution_info(self) -> dict[str, Any]:
        """Where it works: in this process, unless you say otherwise."""
        return {"execution_location": "local", "config": dict(self.config)}


class SimpleAgenticTool(BaseAgenticTool):
    """One with a name, a description and parameters, which needs `simple_execute` and nothing else."""

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        required: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(config, create_openai_tool_schema(name, description, parameters, required or ()))

    async def execute_tool(self, instance_id: str, parameters: dict[str, Any], **more: Any) -> ToolResult:
        given = await self.simple_execute(instance_id, parameters, **more)
        return given if isinstance(given, ToolResult) else ToolResult(True, given)

    @abstractmethod
    async def simple_execute(self, instance_id: str, parameters: dict[str, Any], **more: Any) -> Any:
        """Do it: a `ToolResult`, or the result itself."""


def said(given: ToolResult) -> str:
    """What the model is told of a result: a failure is told with what there was of a result."""
    from runner.tools.output import say

    told = say(given.result)
    if given.success:
        return told
    error = given.error or "the tool failed and did not say why"
    return f"{error}\n{told}" if told else error
