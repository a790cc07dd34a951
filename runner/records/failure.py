"""Why a rollout went wrong, and whose move it is.

    RolloutError
    ├── ModelError            the model endpoint (boundary "model")
    │   ├── ModelUnavailable      no answer: connection, 5xx, time-out after all retries
    │   ├── ModelRefused          a 4xx that no retry can mend: bad key, unknown model, bad request
    │   ├── ModelGarbled          an answer that is none: not JSON, no choice, wrong types
    │   ├── ContextOverflow       the prompt does not fit; a limit of the policy, not a fault
    │   └── ReplayMiss            a recording has no such request
    ├── ToolError             a tool's own fault that ends the rollout (boundary "tool")
    ├── SandboxError          (boundary "sandbox")
    ├── GraderError           a grader could not speak (boundary "grader")
    │   ├── GraderTimeout
    │   ├── JudgeUnavailable      the rubric's model
    │   └── NoLabel               the row has no reference answer
    ├── WorkflowError         the agent's code (boundary "workflow")
    ├── ConfigFailure         found only at run time (boundary "config")
    ├── ControllerError       the side that asked for the rollout (boundary "controller")
    └── LimitReached          a limit of [limits]; becomes a stop reason, never a failure by itself

User code raises plain Python errors; `runtime.boundary` attributes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

Boundary: TypeAlias = Literal["model", "tool", "sandbox", "grader", "workflow", "config", "controller"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One recorded failure. `kind` is a stable word (`model_unavailable`, `tool_crashed`); `message` is for people.

    `where` names the frame of user code, or the endpoint; `detail` is a traceback for the log, or empty.
    """

    boundary: Boundary
    kind: str
    message: str
    where: str = ""
    detail: str = ""

    def signature(self) -> str:
        """The failure with its numbers folded, so that equal causes count as one."""
        import re

        folded = re.sub(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?", "#", self.message)
        return f"{self.boundary}/{self.kind}: {folded[:200]}"

    def to_json(self) -> dict[str, Any]:
        return {
            "boundary": self.boundary,
            "kind": self.kind,
            "message": self.message,
            **({"where": self.where} if self.where else {}),
            **({"detail": self.detail} if self.detail else {}),
        }


class RolloutError(Exception):
    """An error that knows its boundary and kind."""

    boundary: ClassVar[Boundary] = "workflow"
    kind: str = "error"

    def __init__(self, message: str, *, kind: str | None = None, where: str = "") -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind
        self.where = where


class ModelError(RolloutError):
    boundary: ClassVar[Boundary] = "model"
    kind = "model_error"

    def __init__(
        self,
        message: str,
        *,
        kind: str | None = None,
        where: str = "",
        status: int | None = None,
        retries: int = 0,
    ) -> None:
        super().__init__(message, kind=kind, where=where)
        self.status = status
        self.retries = retries


class ModelUnavailable(ModelError):
    kind = "model_unavailable"


class ModelRefused(ModelError):
    kind = "model_refused"


class ModelGarbled(ModelError):
    kind = "model_garbled"


class ContextOverflow(ModelError):
    kind = "context_overflow"


class ReplayMiss(ModelError):
    kind = "replay_miss"


class ToolError(RolloutError):
    boundary: ClassVar[Boundary] = "tool"
    kind = "tool_crashed"


class SandboxError(RolloutError):
    boundary: ClassVar[Boundary] = "sandbox"
    kind = "sandbox_lost"


class GraderError(RolloutError):
    boundary: ClassVar[Boundary] = "grader"
    kind = "grader_error"


class GraderTimeout(GraderError):
    kind = "grader_timeout"


class JudgeUnavailable(GraderError):
    kind = "judge_unavailable"


class NoLabel(GraderError):
    kind = "no_label"


class WorkflowError(RolloutError):
    boundary: ClassVar[Boundary] = "workflow"
    kind = "agent_error"


class ConfigFailure(RolloutError):
    boundary: ClassVar[Boundary] = "config"
    kind = "config"


class ControllerError(RolloutError):
    boundary: ClassVar[Boundary] = "controller"
    kind = "controller_error"


class LimitReached(RolloutError):
    """A limit of `[limits]` fired. `kind` is the stop reason."""

    kind = "limit"
