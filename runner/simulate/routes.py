"""Where callbacks arrive: which dialect and channel a path stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from runner.simulate.callbacks import is_agent_loop
from runner.simulate.history import COMPLETION, GRADER
from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE, SINGLE_SAMPLE


def rollout_in(path: str) -> str | None:
    """The rollout in `/v1/rollouts/{id}/…`, decoded."""
    parts = path.partition("?")[0].split("/")
    return unquote(parts[3]) if len(parts) >= 5 and parts[1:3] == ["v1", "rollouts"] else None


def channel_in(path: str, payload: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The dialect and the channel of a callback."""
    if path == "/v1/rollout/completed":
        return (AGENT_LOOP if is_agent_loop(payload or {}) else MULTI_SAMPLE), COMPLETION
    if path == "/v1/grader/completed":
        return MULTI_SAMPLE, GRADER
    if rollout_in(path) is not None and path.endswith(("/completion", "/grader")):
        return SINGLE_SAMPLE, COMPLETION if path.endswith("/completion") else GRADER
    return None
