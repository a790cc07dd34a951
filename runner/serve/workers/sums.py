"""What several workers say together: shares of a limit that add up to it, and one body of `/health`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def share(whole: int, worker: int, workers: int) -> int:
    """The part of `whole` that counts for one of `workers`; the parts add up to it."""
    return whole // workers + (worker < whole % workers)


def summed(bodies: list[Mapping[str, Any]], workers: int) -> dict[str, Any]:
    """The body of `/health` for all workers. `workers` says how many answered."""
    first, loads, owed = bodies[0], [body["concurrency"] for body in bodies], [body["callbacks"] for body in bodies]
    words = {body["status"] for body in bodies}
    problem = next((body["problem"] for body in bodies if "problem" in body), None)
    return {
        **first,
        "status": next((word for word in ("failing", "draining") if word in words), first["status"]),
        **({"problem": problem} if problem else {}),
        "active_rollouts": _sum(bodies, "active_rollouts"),
        "completed_rollouts": _sum(bodies, "completed_rollouts"),
        "concurrency": {**loads[0], "queued": _sum(loads, "queued"), "running": _sum(loads, "running")},
        "callbacks": {
            **owed[0],
            "pending": _sum(owed, "pending"),
            "abandoned": _sum(owed, "abandoned"),
            "away": sorted({each for body in owed for each in body["away"]}),
        },
        "workers": {"of": workers, "answering": len(bodies)},
    }


def _sum(bodies: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(body[key] for body in bodies)
