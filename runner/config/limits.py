"""`[limits]`: what one rollout may use. The limit that fires is the rollout's stop reason."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from runner.config.quantity import Seconds, Usd
from runner.config.section import GRADE, OPERATION, Section, wrong_choice


class OnLimit(Section):
    """What becomes of a rollout whose policy ran into a limit: `"score"`, `"ungraded"` or `{ reward = 0.0 }`."""

    action: Literal["score", "ungraded", "reward"] = "score"
    """`score` grades what there is, `ungraded` gives no reward, `reward` gives that number."""
    reward: float | None = None
    """The reward given, when `action` is `reward`."""


def _on_limit(value: Any) -> Any:
    if isinstance(value, OnLimit):
        return value
    if value in ("score", "ungraded"):
        return OnLimit(action=value)
    if isinstance(value, dict) and set(value) == {"reward"}:
        reward = value["reward"]
        if isinstance(reward, int | float) and not isinstance(reward, bool) and abs(reward) < float("inf"):
            return OnLimit(action="reward", reward=float(reward))
    raise wrong_choice('`"score"`, `"ungraded"` or `{ reward = 0.0 }`')


class LimitsSection(Section):
    """What one rollout may use. Limits the policy itself runs into still count as answers, see `on_limit`."""

    turns: Annotated[int, Field(ge=1)] = 12
    """Model calls of the policy. Default 12: enough for most tool work, and a loop is noticed before it is dear."""
    tool_calls: Annotated[int, Field(ge=0)] | None = None
    """Tool calls in all. Default: only `turns` limits them."""
    total_tokens: Annotated[int, Field(ge=1)] | None = None
    """Prompt and completion tokens of all turns together. Default: no limit but the model's context."""
    time: Annotated[Seconds, OPERATION] = 300.0
    """Wall clock from start to last answer; in `serve` queueing counts. A rollout over it failed: it had no fair
    chance."""
    tool_time: Annotated[Seconds, OPERATION] = 30.0
    """One tool call, where the tool names no `timeout` of its own."""
    grader_time: Annotated[Seconds, OPERATION] = 60.0
    """One grader, where it names no `timeout` of its own."""
    cost: Usd | None = None
    """What the policy's calls may cost. Default: no limit. Needs a price."""
    on_limit: Annotated[OnLimit, GRADE, BeforeValidator(_on_limit)] = OnLimit.model_construct()
    """A rollout whose policy ran into a limit: `"score"` grades what there is, `"ungraded"` gives no reward,
    `{ reward = 0.0 }` gives that one. Default: `"score"`, since running out is the policy's own doing."""
    malformed_calls: Annotated[int, Field(ge=1)] = 8
    """How many bad tool calls (unknown name, wrong arguments) end the rollout. Default 8: models correct themselves."""
    parallel_tools: Annotated[int, Field(ge=1)] = 8
    """How many calls of one turn run at once. Default 8."""
