"""The first generation's exceptions.

OsmosisRolloutError
├── OsmosisTransportError     no connection to who answers
├── OsmosisTimeoutError       no answer in time
├── OsmosisServerError        a 5xx, with its status_code
├── OsmosisValidationError    a request that was refused, with its status_code
├── AgentLoopNotFoundError    no agent loop is registered under this name
└── ToolExecutionError        a tool call that went wrong, with its tool_call_id and tool_name
    └── ToolArgumentError         its arguments are no JSON object

AgentLoopValidationError, ServeError, CLIError, PublicIPDetectionError stand alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.workflows.loop.validation import ValidationError


class OsmosisRolloutError(Exception):
    """What went wrong in a rollout."""


class OsmosisTransportError(OsmosisRolloutError):
    """Who answers could not be reached."""


class OsmosisTimeoutError(OsmosisRolloutError):
    """Who answers did not do so in time."""


class OsmosisServerError(OsmosisRolloutError):
    """A 5xx. `status_code` is the HTTP status."""

    def __init__(self, message: str, status_code: int = 500) -> None:
        super().__init__(message)
        self.status_code = status_code


class OsmosisValidationError(OsmosisRolloutError):
    """The request was refused. `status_code` is the HTTP status."""

    def __init__(self, message: str, status_code: int = 422) -> None:
        super().__init__(message)
        self.status_code = status_code


class AgentLoopNotFoundError(OsmosisRolloutError):
    """No agent loop is called `name`; `available` are the names there are."""

    def __init__(self, name: str, available: Sequence[str] = ()) -> None:
        there = ", ".join(available) or "none"
        super().__init__(f"Agent loop '{name}' not found. Available: {there}")
        self.name = name
        self.available = list(available)


class ToolExecutionError(OsmosisRolloutError):
    """A tool call that went wrong."""

    def __init__(self, message: str, tool_call_id: str | None = None, tool_name: str | None = None) -> None:
        super().__init__(message)
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name


class ToolArgumentError(ToolExecutionError):
    """The arguments of a tool call are no JSON object."""


class AgentLoopValidationError(Exception):
    """An agent loop that cannot run. `errors` says all that is wrong with it."""

    def __init__(self, errors: Sequence[ValidationError]) -> None:
        super().__init__("; ".join(f"{error.code}: {error.message}" for error in errors) or "invalid agent loop")
        self.errors = list(errors)


class ServeError(Exception):
    """The agent loop cannot be served."""


class CLIError(Exception):
    """What a command was told cannot be done."""


class PublicIPDetectionError(Exception):
    """The public address of this machine could not be found out."""
