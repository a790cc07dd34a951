"""The bodies of the second and third generation's routes and callbacks, as pydantic models for code that speaks them.

The server itself reads and writes them by hand; each of these takes what a controller of either generation sends.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from runner.sdk.execution import GraderStatus, RolloutErrorCategory
from runner.workflows.loop.result import RolloutStatus


class _Body(BaseModel):
    model_config = ConfigDict(defer_build=True)


class RolloutInitRequest(_Body):
    """The body of `POST /rollout`."""

    rollout_id: str | None = None
    initial_messages: list[dict[str, Any]]
    label: str | None = None
    metadata: dict[str, Any] | None = None
    chat_completions_url: str
    controller_api_key: str | None = Field(default=None, repr=False)
    llm_api_key: str | None = Field(default=None, repr=False)
    completion_callback_url: str
    grader_callback_url: str | None = None
    agent_timeout_sec: float | None = None
    grader_timeout_sec: float | None = None
    extra_fields: dict[str, Any] | None = None


class RolloutInitResponse(_Body):
    """What a start is answered with: nothing."""


class RolloutCompleteRequest(_Body):
    """The callback that the agent has ended."""

    rollout_id: str | None = None
    status: RolloutStatus
    extra_fields: dict[str, Any] | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None


class GraderInitRequest(_Body):
    """What a grader is asked: a sample, or samples by their ids."""

    rollout_id: str | None = None
    label: str | None = None
    metadata: dict[str, Any] | None = None
    sample: dict[str, Any] | None = None
    samples: dict[str, dict[str, Any]] = Field(default_factory=dict)
    completion_callback_url: str | None = None
    grader_timeout_sec: float | None = None


class GraderInitResponse(_Body):
    """What that is answered with: nothing."""


class GraderCompleteRequest(_Body):
    """The callback that a rollout is graded, in either generation's shape."""

    rollout_id: str | None = None
    status: GraderStatus
    sample: dict[str, Any] | None = None
    samples: dict[str, dict[str, Any]] = Field(default_factory=dict)
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None
