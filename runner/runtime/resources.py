"""Resources of `[resources]`: opened for a run or for one rollout, closed by us whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from runner.build.live import Live, ResourcePart
from runner.build.opening import Opened
from runner.records.event import Listener, Logged
from runner.records.failure import ToolError
from runner.runtime.boundary import failure_of, user_frame


@asynccontextmanager
async def open_resources(
    live: Live, tell: Listener, rollout_id: str, seconds: float | None = None
) -> AsyncIterator[Mapping[str, Any]]:
    """The run's resources and this rollout's own, by name.

    Raises `ToolError` (kind "resource_failed") when one cannot be opened, or not all of them within `seconds`. One that
    cannot be closed is told as the event "resource_close_failed": what the rollout did before stands.
    """
    opened = Opened(live.resources)
    try:
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                for part in live.plan.rollout_resources:
                    await _open(part, opened)
        except TimeoutError as error:
            raise _late(opened, live, seconds) from error
        if deadline.expired():
            raise _late(opened, live, seconds)
        yield opened.values
    finally:
        for name, problem in await opened.close():
            failure = failure_of(problem, "tool", "resource_failed")
            tell(Logged(rollout_id, monotonic(), "resource_close_failed", {"resource": name, **failure.to_json()}))


async def _open(part: ResourcePart, opened: Opened) -> None:
    try:
        await opened.open(part)
    except (Exception, SystemExit) as error:
        said = failure_of(error).message
        text = f"resource {part.name!r} could not be opened: {said}"
        raise ToolError(text, kind="resource_failed", where=user_frame(error)) from error


def _late(opened: Opened, live: Live, seconds: float | None) -> ToolError:
    waiting = [part.name for part in live.plan.rollout_resources if part.name not in opened.values]
    name = waiting[0] if waiting else live.plan.rollout_resources[-1].name
    return ToolError(f"resource {name!r} was not open within `[limits] time` of {seconds:g} s", kind="resource_failed")
