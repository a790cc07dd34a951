"""What a training cluster asks for, and what it is answered."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from runner.workflows.loop.noun import Noun
from runner.workflows.loop.result import RolloutMetrics
from runner.workflows.loop.tool_schemas import OpenAIFunctionToolSchema

LOCAL_SERVER = "http://local-rollout.local"
"""The `server_url` of a rollout that the runner itself plays: nobody is asked under it."""
MAX_TURNS = 10
MAX_TOKENS_TOTAL = 8192

_most_metadata = 2**20


def set_max_metadata_size_bytes(size: int) -> None:
    """How much JSON the metadata of a request may be, in bytes. Raises ValueError for a size that is not positive."""
    global _most_metadata
    if size <= 0:
        raise ValueError(f"the metadata size must be positive, found {size}")
    _most_metadata = size


def get_max_metadata_size_bytes() -> int:
    """How much JSON the metadata of a request may be, in bytes."""
    return _most_metadata


class RolloutRequest(Noun):
    """One rollout as an agent loop sees it.

    `file_tools` is no part of the wire: the tools of the workflow's file, as OpenAI objects, for a loop that wants to
    offer them from `get_tools` and run them with `ctx.call_tools`.
    """

    rollout_id: str = Field(min_length=1, max_length=256)
    server_url: str
    messages: list[dict[str, Any]]
    completion_params: dict[str, Any]
    tool_server_url: str | None = None
    max_turns: int = MAX_TURNS
    max_tokens_total: int = MAX_TOKENS_TOTAL
    metadata: dict[str, Any] = Field(default_factory=dict)
    api_key: str | None = Field(default=None, repr=False)
    idempotency_key: str | None = None
    file_tools: list[dict[str, Any]] = Field(default_factory=list, exclude=True, repr=False)

    @field_validator("rollout_id")
    @classmethod
    def _not_blank(cls, rollout_id: str) -> str:
        if not rollout_id.strip():
            raise ValueError("rollout_id must not be only whitespace")
        return rollout_id

    @field_validator("server_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("server_url must be an http or https URL with a host")
        return url

    @field_validator("metadata")
    @classmethod
    def _not_too_big(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        try:
            size = len(json.dumps(metadata))
        except (TypeError, RecursionError) as error:
            raise ValueError(f"metadata must be JSON: {error}") from error
        if size > _most_metadata:
            raise ValueError(f"metadata is {size} bytes of JSON, at most {_most_metadata} are taken")
        return metadata


class InitResponse(Noun):
    """The answer to a start: the tools of this rollout."""

    rollout_id: str
    tools: list[OpenAIFunctionToolSchema] = Field(default_factory=list)


class RolloutResponse(Noun):
    """The completion that a training cluster is told."""

    rollout_id: str
    status: str
    final_messages: list[dict[str, Any]] = Field(default_factory=list)
    finish_reason: str | None = None
    error_message: str | None = None
    reward: float | None = None
    metrics: RolloutMetrics | None = None
    extra_fields: dict[str, Any] = Field(default_factory=dict)
