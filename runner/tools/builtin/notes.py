"""`think` and `finish`: tools that do nothing but be called."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runner.records.completion import ToolSpec
from runner.tools.tool import ToolResult


class Think:
    """Room for a thought between calls; it is answered with a word."""

    def spec(self, name: str) -> ToolSpec:
        text = "A place to think: writes the thought down, looks nothing up and changes nothing."
        thought = {"thought": {"type": "string", "description": "The thought."}}
        schema = {"type": "object", "properties": thought, "required": ["thought"], "additionalProperties": False}
        return ToolSpec(name, text, schema)

    async def __call__(self, **arguments: Any) -> ToolResult:
        return ToolResult("Noted.")


class Finish:
    """The end of the work, with its answer; `stop_when = ["tool:NAME"]` makes it so."""

    def spec(self, name: str) -> ToolSpec:
        text = "Ends the work. Call it once, when there is an answer or when it is clear that there will be none."
        properties: Mapping[str, Any] = {
            "answer": {"type": "string", "description": "The final answer."},
            "reasoning": {"type": "string", "description": "In short, how it was found."},
            "status": {"enum": ["success", "partial", "failed"], "description": "How it went. Default: success."},
        }
        schema = {"type": "object", "properties": properties, "required": ["answer"], "additionalProperties": False}
        return ToolSpec(name, text, schema)

    async def __call__(self, **arguments: Any) -> ToolResult:
        status = arguments.get("status") or "success"
        said = {"answer": arguments["answer"], "status": status, "completed": True}
        if arguments.get("reasoning"):
            said["reasoning"] = arguments["reasoning"]
        return ToolResult(json.dumps(said, ensure_ascii=False))
