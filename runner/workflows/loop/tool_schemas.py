"""OpenAI's function tools as the first generation wrote them down.

Keys that these classes do not name are kept: a nested schema reaches the model as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from runner.records.completion import ToolSpec
from runner.workflows.loop.noun import Noun


class _Open(Noun):
    model_config = ConfigDict(extra="allow")


class OpenAIFunctionPropertySchema(_Open):
    """One argument of a function."""

    type: str
    description: str | None = None
    enum: list[str] | None = None


class OpenAIFunctionParametersSchema(_Open):
    """All arguments of a function."""

    type: str = "object"
    properties: dict[str, OpenAIFunctionPropertySchema]
    required: list[str]


class OpenAIFunctionSchema(_Open):
    """A function that the model may call."""

    name: str
    description: str
    parameters: OpenAIFunctionParametersSchema = Field(
        default_factory=lambda: OpenAIFunctionParametersSchema(properties={}, required=[])
    )
    strict: bool = False


class OpenAIFunctionToolSchema(_Open):
    """An entry of the list of tools."""

    type: str
    function: OpenAIFunctionSchema


class OpenAIFunctionParsedSchema(Noun):
    """A call as the model wrote it: `arguments` is text."""

    name: str
    arguments: str


class OpenAIFunctionCallSchema(Noun):
    """A call whose arguments have been read."""

    name: str
    arguments: dict[str, Any]

    @staticmethod
    def from_openai_function_parsed_schema(
        parsed: OpenAIFunctionParsedSchema,
    ) -> tuple[OpenAIFunctionCallSchema, bool]:
        """The call, and whether its arguments are no JSON object: then it has none."""
        try:
            arguments = json.loads(parsed.arguments)
        except ValueError:
            arguments = None
        fine = isinstance(arguments, dict)
        return OpenAIFunctionCallSchema(name=parsed.name, arguments=arguments if fine else {}), not fine


class OpenAIFunctionToolCall(Noun):
    """A call with its id."""

    id: str
    type: str = "function"
    function: OpenAIFunctionCallSchema


class ToolResponse(Noun):
    """What a tool gave: text, images, videos."""

    text: str | None = None
    image: list[Any] | None = None
    video: list[Any] | None = None

    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self.text and not self.image and not self.video

    def is_text_only(self) -> bool:
        """Whether it holds text and nothing else."""
        return bool(self.text) and not self.image and not self.video


def plain_tool(tool: Any) -> dict[str, Any]:
    """A tool as the plain object that goes over the wire, keys without a value left out.

    Raises TypeError for what is neither an object nor one of these schemas.
    """
    dump = getattr(tool, "model_dump", None)
    if callable(dump):
        dumped: dict[str, Any] = dump(exclude_none=True)
        return dumped
    if isinstance(tool, Mapping):
        return dict(tool)
    raise TypeError(f"a tool is an object or an OpenAIFunctionToolSchema, found {type(tool).__name__}")


def spec_of(tool: Any) -> ToolSpec:
    """The tool as the model is offered it. Raises TypeError or ValueError for what is no function with a name."""
    function = plain_tool(tool).get("function")
    if not isinstance(function, Mapping):
        raise ValueError("a tool needs `function`, an object with `name`, `description` and `parameters`")
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not name:
        raise ValueError("the `function` of a tool needs a `name`")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ValueError(f"the `parameters` of the tool {name!r} must be an object")
    schema = {"type": "object", "properties": {}, "required": []} if parameters is None else dict(parameters)
    return ToolSpec(name, str(function.get("description") or ""), schema)
