"""Pods whose owner is dead: found by their labels when a run begins, and removed.

The owner's key alone tells it only on the owner's machine. Elsewhere a pod is dead when nobody has renewed the time in
its annotation; clocks may differ by minutes, so it is valid for longer than that. Without either, the lifetime in the
pod's own spec ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api, ApiError
from runner.sandboxes.kubernetes.pods import ALIVE_UNTIL, MANAGED, OWNER
from runner.sandboxes.owner import is_dead, owner_key

BEAT_SECONDS = 60.0
VALID = timedelta(minutes=10)


def alive_until() -> str:
    """The time until which a pod is its owner's without being renewed."""
    return (datetime.now(UTC) + VALID).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_left_behind(pod: Mapping[str, Any], now: datetime) -> bool:
    """Whether the owner of a pod is surely dead, or its time is over."""
    metadata = pod["metadata"]
    owner = str((metadata.get("labels") or {}).get(OWNER) or "")
    if owner == owner_key():
        return False
    # Another machine's key has another boot; only of our own can be told whether the process lives.
    if owner.partition("-")[0] == owner_key().partition("-")[0] and is_dead(owner):
        return True
    try:
        until = datetime.fromisoformat((metadata.get("annotations") or {})[ALIVE_UNTIL])
    except (KeyError, ValueError):
        return False
    return until < now


async def reap(api: Api) -> int:
    """Remove what dead runs have left in the namespace. Returns how many pods.

    Raises `ApiError`, `SandboxError`.
    """
    listed = await api.call("GET", api.pods(), query=[("labelSelector", f"{MANAGED}=osmosis-run,{OWNER}")])
    dead = [pod for pod in listed.get("items") or () if is_left_behind(pod, datetime.now(UTC))]
    for pod in dead:
        await api.delete_pod(pod["metadata"]["name"], pod["metadata"].get("uid"))
    return len(dead)


async def keep_alive(api: Api, names: Callable[[], Sequence[str]], seconds: float = BEAT_SECONDS) -> None:
    """Renew the time of all that `names` gives, until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        patch = {"metadata": {"annotations": {ALIVE_UNTIL: alive_until()}}}
        for name in names():
            with suppress(ApiError, SandboxError):  # it may have gone; and there are more beats than one in its time
                await api.call("PATCH", api.pods(name), patch, kind="merge-patch+json")
