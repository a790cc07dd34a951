"""What the server tells whoever looks: the body of `/health`, and the exposition of `/metrics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from runner.serve.delivery.deliveries import Deliveries
from runner.serve.engine import Engine, Load
from runner.store.outbox import Outbox
from runner.telemetry.metrics import Metrics


class Health:
    """The body of `/health`: what each generation of controllers looks for, with true numbers."""

    def __init__(self, name: str, engine: Engine, deliveries: Deliveries) -> None:
        self._name = name
        self._engine = engine
        self._deliveries = deliveries

    async def __call__(self) -> Mapping[str, Any]:
        engine = self._engine
        load, backlog = engine.load(), self._deliveries.backlog()
        fine = "draining" if engine.draining else "ok"
        return {
            "status": "failing" if engine.lost else fine,
            **({"problem": engine.trouble} if engine.trouble else {}),
            "agent_loop": self._name,
            "active_rollouts": load.running + load.queued + load.settling,
            "completed_rollouts": load.ended,
            "concurrency": {"max_concurrent": load.max_concurrent, "queued": load.queued, "running": load.running},
            "callbacks": {"pending": backlog.pending, "abandoned": backlog.abandoned, "away": list(backlog.away)},
        }


class Loaded(Protocol):
    """Whose load is exposed: an engine's, or of several workers the share of one."""

    def load(self) -> Load: ...


class Exposition:
    """`/metrics`: what is known only when asked is told to the metrics first. Raises `StoreError`."""

    def __init__(self, metrics: Metrics, engine: Loaded, outbox: Outbox, deliveries: Deliveries) -> None:
        self._metrics = metrics
        self._engine = engine
        self._outbox = outbox
        self._deliveries = deliveries

    async def __call__(self, accept: str) -> tuple[bytes, str]:
        load = self._engine.load()
        self._metrics.load(
            queued=load.queued,
            running=load.running - load.grading,
            grading=load.grading,
            max_concurrent=load.max_concurrent,
            max_queue=load.max_queue,
        )
        self._metrics.outbox(await self._outbox.counts(), self._deliveries.backlog().oldest)
        return self._metrics.text(accept)
