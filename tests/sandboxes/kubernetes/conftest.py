"""Pods of the stand-in, where its containers can be had; elsewhere everything here is skipped, with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from runner.sandboxes.kubernetes.kubeconfig import Access
from runner.sandboxes.kubernetes.maker import KubernetesMaker
from runner.sandboxes.kubernetes.pod import PodSandbox
from runner.sandboxes.kubernetes.pods import PodOptions
from tests.sandboxes.conftest import needs_bubblewrap
from tests.sandboxes.kubernetes.api_server.cluster import Cluster
from tests.sandboxes.kubernetes.api_server.server import serving

OPTIONS = PodOptions("busybox", section="work", start_time=10.0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "sandboxes/kubernetes/" in item.path.as_posix():
            item.add_marker(needs_bubblewrap)


@dataclass
class Place:
    """A stand-in and a maker of pods on it."""

    cluster: Cluster
    url: str
    maker: KubernetesMaker
    pauses: list[float]
    """The seconds that were waited before a call was tried again, or would have been."""

    async def box(self) -> PodSandbox:
        return await self.maker.make("Row 3/attempt 1")


@asynccontextmanager
async def placed(options: PodOptions = OPTIONS, *, v4: bool = False, **changed: Any) -> AsyncIterator[Place]:
    async with serving() as (cluster, url):
        cluster.faults.v4_only = v4
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            await asyncio.sleep(0.01)

        maker = KubernetesMaker(replace(options, **changed), access=Access(url, namespace="team"), pause=pause)
        try:
            yield Place(cluster, url, maker, pauses)
        finally:
            await maker.aclose()
        assert not [name for _, name in cluster.pods if name.startswith("osmosis-run")]


def play(work: Callable[[Place], Awaitable[None]], **changed: Any) -> None:
    """Do `work` on a stand-in of its own."""

    async def main() -> None:
        async with placed(**changed) as place:
            await work(place)

    asyncio.run(main())


@pytest.fixture(params=["v5", "v4"])
def v4(request: pytest.FixtureRequest) -> bool:
    """Each protocol: whether the server speaks only the older one."""
    return bool(request.param == "v4")
