"""The nouns around a backend of the second and third generation: what it is asked, and what it says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from runner.records.rollout_sample import RolloutSample
from runner.workflows.loop.result import RolloutStatus


class RolloutErrorCategory(StrEnum):
    """What kind of thing went wrong, as callbacks say it."""

    TIMEOUT = "timeout"
    VALIDATION_ERROR = "validation_error"
    HTTP_ERROR = "http_error"
    AGENT_ERROR = "agent_error"


class GraderStatus(StrEnum):
    """How grading ended."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"


class MultiTurnMode(StrEnum):
    """How several turns become samples, as a controller's chat endpoint takes it. This server sends none."""

    MULTI_SAMPLE = "multi_sample"
    SINGLE_SAMPLE = "single_sample"


class ControllerAuth(BaseModel):
    """A controller's key. It is in no repr."""

    model_config = ConfigDict(defer_build=True)

    api_key: str | None = Field(default=None, repr=False)

    def as_bearer_headers(self) -> dict[str, str]:
        """The headers that present the key; none without one."""
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


class ExecutionRequest(BaseModel):
    """A rollout for a backend to play. `prompt` are the messages that it starts from; timeouts are in seconds.

    Where completions come from is the ambient `RolloutContext`'s, or else `chat_completions_url` and `api_key`.
    """

    model_config = ConfigDict(populate_by_name=True, defer_build=True)

    id: str = Field(alias="rollout_id")
    prompt: list[dict[str, Any]] = Field(alias="initial_messages")
    label: str | None = None
    metadata: dict[str, Any] | None = None
    agent_timeout_sec: float | None = None
    grader_timeout_sec: float | None = None
    chat_completions_url: str = ""
    api_key: str | None = Field(default=None, repr=False)
    extra_fields: dict[str, Any] | None = None

    @property
    def rollout_id(self) -> str:
        """Another name of `id`."""
        return self.id


class ExecutionResult(BaseModel):
    """What came of it: after the workflow, and with the reward after the grader. `samples` holds it by its id."""

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True)

    status: RolloutStatus
    samples: dict[str, Any] = Field(default_factory=dict)
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None

    @property
    def sample(self) -> RolloutSample | None:
        """The one sample; None where there is none."""
        return next(iter(self.samples.values()), None)


Told: TypeAlias = Callable[[ExecutionResult], Awaitable[Any]]


class ExecutionBackend(ABC):
    """Who plays rollouts. `create_rollout_server` serves a `LocalBackend`."""

    @abstractmethod
    async def execute(
        self, request: ExecutionRequest, on_workflow_complete: Told, on_grader_complete: Told | None = None
    ) -> ExecutionResult:
        """Play one rollout, say how its agent ended, then how it was graded. The last thing that was said."""

    def health(self) -> Mapping[str, Any]:
        """What `/health` tells of it."""
        return {"status": "ok"}

    def has_capacity(self) -> bool:
        """Whether another rollout may come."""
        return True

    def rollout_status(self, rollout_id: str) -> Any:
        """How a rollout stands; None where nobody knows."""
        return None

    def cancel_rollouts(
        self, ids: Sequence[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        """Cancel rollouts: what became of each."""
        return {}

    def capture_final_result(self) -> bool:
        """Whether somebody has to remember the final result."""
        return False
