"""Resources of `[resources]`: opened for a run or for one rollout, closed by us whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from runner.build.live import Live, open_resource
from runner.records.event import Listener, Logged
from runner.records.failure import ToolError
from runner.runtime.boundary import Attributed, failure_of


@asynccontextmanager
async def open_resources(live: Live, tell: Listener, rollout_id: str) -> AsyncIterator[Mapping[str, Any]]:
    """The run's resources and this rollout's own, by name.

    Raises `ToolError` (kind "resource_failed") when one cannot be opened. One that cannot be closed is told as an
    event: what the rollout did before stands.
    """
    own = live.plan.rollout_resources
    if not own:
        yield live.resources
        return
    stack = AsyncExitStack()
    try:
        opened = dict(live.resources)
        for part in own:
            try:
                opened[part.name] = await open_resource(part, stack)
            except Exception as error:
                raise ToolError(
                    f"resource {part.name!r} could not be opened: {type(error).__name__}: {error}",
                    kind="resource_failed",
                ) from error
        yield opened
    finally:
        await _close(stack, tell, rollout_id)


async def _close(stack: AsyncExitStack, tell: Listener, rollout_id: str) -> None:
    try:
        await stack.aclose()
    except Exception as error:
        failure = error.failure if isinstance(error, Attributed) else failure_of(error, "tool", "resource_failed")
        tell(Logged(rollout_id, 0.0, "resource_close_failed", failure.to_json()))
