"""`open_plan`: a plan begins to run. What is opened is closed in the reverse order, whatever happens."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.build.live import Live, ResourcePart, Role
from runner.build.mcp import open_servers
from runner.build.opening import Opened
from runner.build.sandboxes import SandboxPart
from runner.build.strands import StrandsMaker
from runner.models.model import Model, Opens
from runner.records.failure import ConfigFailure, SandboxError
from runner.tools.fault import faulted

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.models.recording import Recording
    from runner.sandboxes.pool import SandboxPool


@asynccontextmanager
async def open_plan(plan: Plan, record: Path | None, model: Model, *, servers: bool) -> AsyncIterator[Live]:
    """See `Plan.open`, whose words these are; `model` is the policy."""
    if isinstance(plan.make_workflow, StrandsMaker):
        plan.make_workflow.open()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plan.workers.aclose)
        recording = _recording(record, stack)
        policy = await _opened(model, recording, stack)
        roles = {
            name: Role(await _opened(part.make(), recording, stack), part.sampling) for name, part in plan.roles.items()
        }
        opened = Opened()
        stack.push_async_callback(_close, opened)
        for resource in plan.run_resources:
            await _open(resource, opened)
        pools, notices = await _open_pools(plan.sandboxes, stack)
        whole = plan.with_tools(await open_servers(plan.servers, stack)) if plan.servers and servers else plan
        yield Live(whole, policy, roles, opened.values, pools, notices)


def _recording(path: Path | None, stack: AsyncExitStack) -> Recording | None:
    """One recording for the policy and all roles: each call says who asked."""
    if path is None:
        return None
    from runner.models.recording import Recording

    recording = Recording(path)
    stack.callback(recording.close)
    return recording


async def _opened(model: Model, recording: Recording | None, stack: AsyncExitStack) -> Model:
    stack.push_async_callback(model.aclose)
    if isinstance(model, Opens):
        await model.open()
    if recording is None:
        return model
    from runner.models.recording import RecordingModel

    return RecordingModel(model, recording)


async def _open_pools(
    parts: Sequence[SandboxPart], stack: AsyncExitStack
) -> tuple[Mapping[str, SandboxPool], Sequence[str]]:
    """A pool for each section, and what the machine cannot give of what they ask."""
    pools: dict[str, SandboxPool] = {}
    notices: list[str] = []
    for part in parts:
        pool = pools[part.name] = part.pool()
        stack.push_async_callback(pool.aclose)
        try:
            notices += [f"sandbox `{part.name}`: {said}" for said in await pool.open()]
        except SandboxError as error:
            raise SandboxError(f"sandbox {part.name!r}: {error}", kind=error.kind) from error
    return pools, notices


async def _open(part: ResourcePart, opened: Opened) -> None:
    try:
        await opened.open(part)
    except (Exception, SystemExit) as error:
        failed = faulted(error)
        text = f"resource {part.name!r} could not be opened: {failed.content}"
        raise ConfigFailure(text, kind="resource_failed", where=failed.where) from error


async def _close(opened: Opened) -> None:
    for name, error in await opened.close():
        logging.getLogger(__name__).warning(
            "resource %r could not be closed: %s: %s", name, type(error).__name__, error
        )
