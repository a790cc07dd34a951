"""`open_house`: one worker, put together from the plan and `[serve]`, open for exactly as long as the block."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

from runner.build.plan import Plan
from runner.config.serve import ServeSection
from runner.models.absent import AbsentModel
from runner.models.chat import ChatModels
from runner.models.connections import Connections
from runner.models.retry import Retries
from runner.records.event import Listener
from runner.records.rollout import Outcome
from runner.serve.access import Access
from runner.serve.admission import Policy
from runner.serve.app import App
from runner.serve.body import BodyLimits
from runner.serve.delivery import CallbackPolicy, Deliveries, Posted
from runner.serve.dialects.auto import Dialects, make_dialects
from runner.serve.engine import Engine
from runner.serve.played import Played
from runner.serve.playing import Player
from runner.serve.routes import Face, routes
from runner.serve.urls import UrlPolicy
from runner.store.errors import StoreError
from runner.store.outbox import Outbox
from runner.telemetry.event_log import EventLog
from runner.telemetry.listeners import listening
from runner.telemetry.metrics import Metrics

DELIVER_AT_END = 5.0
"""Seconds that callbacks get when the server ends; what is not delivered then goes out after the next start."""
_TICK = 0.5
"""Seconds between two looks at who waits too long."""
_NO_POLICY = "the controller names the model of each rollout that is served"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opening:
    """What the command line adds to the file. `events` is where event logs go, `key` what controllers present."""

    key: str | None = None
    events: Path | None = None
    secrets: tuple[str, ...] = ()
    version: str = ""


@dataclass(slots=True)
class House:
    """What one worker serves. `recovered` rollouts and `owed` callbacks were left by an earlier process."""

    app: App
    engine: Engine
    deliveries: Deliveries
    outbox: Outbox
    metrics: Metrics | None
    recovered: int = 0
    owed: int = 0
    _closed: bool = field(default=False)

    async def drain(self, seconds: float) -> int:
        """Accept nothing more, let what plays end within `seconds`, then deliver. How many could not be finished."""
        cut = await self.engine.drain(seconds)
        left = await self.deliveries.settle(DELIVER_AT_END)
        if left:
            log.warning("%d callbacks are not delivered yet; they go out after the next start", left)
        return cut


@asynccontextmanager
async def open_house(plan: Plan, opening: Opening, worker: int = 0) -> AsyncIterator[House]:
    """Everything one worker needs, running. Raises `StoreError` (the state file) and `ConfigFailure` (a resource)."""
    section = plan.config.serve
    async with AsyncExitStack() as stack:
        outbox = Outbox.open(section.state.path, worker=worker)
        stack.push_async_callback(outbox.aclose)
        connections = Connections(max=section.connections.max, idle=section.connections.idle)
        stack.push_async_callback(connections.aclose)
        live = await stack.enter_async_context(plan.open(model=AbsentModel(_NO_POLICY)))
        metrics = _metrics(plan, section, opening) if section.metrics.enabled else None
        deliveries = Deliveries(outbox, connections, _callbacks(section), heard=_Post(metrics))
        stack.push_async_callback(deliveries.aclose)
        listen = listening(metrics, _event_log(opening, stack))
        player = Player(
            live,
            outbox,
            _models(plan, section, connections),
            listen,
            deliveries.owe,
            report_cancelled=section.report_cancelled,
            keep_outcomes=section.archive is not None,
        )
        engine = Engine(
            live, outbox, player, _policy(section, worker), UrlPolicy(section.allow_callbacks).check_start, _ended
        )
        stack.push_async_callback(engine.aclose)
        dialects = make_dialects(section, secrets=opening.secrets)
        app = _app(plan, section, opening, engine, dialects, outbox, deliveries, metrics)
        house = House(app, engine, deliveries, outbox, metrics)
        house.owed = await deliveries.recover()
        house.recovered = await engine.recover(dialects.named)
        if metrics is not None and house.recovered:
            metrics.recovered(section.on_restart, house.recovered)
        for chore in _chores(section, engine, outbox, metrics):
            _keep_up(stack, chore)
        yield house


def _metrics(plan: Plan, section: ServeSection, opening: Opening) -> Metrics:
    return Metrics(
        section.metrics.prefix,
        agent_loop=plan.name,
        default_labels=section.metrics.default_labels,
        version=opening.version,
        tools=[spec.name for spec in plan.offered],
    )


def _callbacks(section: ServeSection) -> CallbackPolicy:
    callbacks = section.callbacks
    return CallbackPolicy(
        timeout=callbacks.timeout,
        attempts=callbacks.attempts,
        give_up=callbacks.give_up,
        base_wait=callbacks.base_wait,
        max_wait=callbacks.max_wait,
        concurrency=callbacks.concurrency,
    )


def _models(plan: Plan, section: ServeSection, connections: Connections) -> ChatModels:
    chat = section.chat
    own = plan.config.model
    return ChatModels(
        connections=connections,
        timeout=chat.timeout,
        retries=Retries(max(1, chat.retries.attempts), chat.retries.max_wait, chat.base_wait),
        join_text=chat.join_text,
        # A controller is asked for token ids only where the file says so: what it gives unasked is kept.
        return_token_ids=own is not None and own.return_token_ids is True,
        max_answer=chat.max_answer,
    )


def _policy(section: ServeSection, worker: int) -> Policy:
    return Policy(section.max_concurrent, section.max_queue, section.dedupe, section.on_restart, worker)


def _event_log(opening: Opening, stack: AsyncExitStack) -> Listener | None:
    if opening.events is None:
        return None
    events = EventLog(opening.events)
    stack.callback(events.close)
    return events


def _ended(played: Played, outcome: Outcome) -> None:
    failure = outcome.failure
    if failure is None:
        log.info("rollout %s %s (%s) reward %s", played.name, outcome.status, outcome.stop_reason, outcome.reward)
        return
    detail = f"\n{failure.detail}" if failure.detail else ""
    where = f" at {failure.where}" if failure.where else ""
    log.warning(
        "rollout %s %s (%s/%s): %s%s%s",
        played.name,
        outcome.status,
        failure.boundary,
        failure.kind,
        failure.message,
        where,
        detail,
    )


class _Post:
    """Hears what became of each post of a callback."""

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    def __call__(self, posted: Posted) -> None:
        if posted.result == "abandoned":
            log.error("callback %s of rollout %s is given up: %s", posted.channel, posted.rollout_id, posted.problem)
        elif posted.result == "retry":
            log.info("callback %s of rollout %s: %s", posted.channel, posted.rollout_id, posted.problem)
        if self._metrics is not None:
            self._metrics.callback(posted.channel, _result(posted), posted.seconds)


def _result(posted: Posted) -> str:
    if posted.result == "retry":
        return "unreachable" if posted.status is None else "retried"
    return posted.result


def _app(
    plan: Plan,
    section: ServeSection,
    opening: Opening,
    engine: Engine,
    dialects: Dialects,
    outbox: Outbox,
    deliveries: Deliveries,
    metrics: Metrics | None,
) -> App:
    limits = BodyLimits(section.max_body, section.request_timeout)
    exposed = (
        None if metrics is None or not section.metrics.expose else _Exposition(engine, outbox, deliveries, metrics)
    )
    face = Face(
        starts=dialects.starts,
        limits=limits,
        health=_health(plan, engine, deliveries),
        metrics=exposed,
        started=None if metrics is None else metrics.start,
        has_key=opening.key is not None,
        instance_id=os.environ.get("_OSMOSIS_ROLLOUT_INSTANCE_ID", ""),
        title=plan.name,
        version=opening.version,
    )
    return App(routes(engine, face), Access(opening.key), None if metrics is None else metrics.http)


class _Exposition:
    """`/metrics`: what is known only when asked is told to the metrics first."""

    def __init__(self, engine: Engine, outbox: Outbox, deliveries: Deliveries, metrics: Metrics) -> None:
        self._engine = engine
        self._outbox = outbox
        self._deliveries = deliveries
        self._metrics = metrics

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


def _health(plan: Plan, engine: Engine, deliveries: Deliveries) -> Callable[[], Awaitable[Mapping[str, Any]]]:
    """The body of `/health`: what each generation of controllers looks for, with true numbers."""

    async def health() -> Mapping[str, Any]:
        load, backlog = engine.load(), deliveries.backlog()
        return {
            "status": "draining" if engine.draining else "ok",
            "agent_loop": plan.name,
            "active_rollouts": load.running + load.queued,
            "completed_rollouts": load.ended,
            "concurrency": {"max_concurrent": load.max_concurrent, "queued": load.queued, "running": load.running},
            "callbacks": {"pending": backlog.pending, "abandoned": backlog.abandoned, "away": list(backlog.away)},
        }

    return health


def _chores(
    section: ServeSection, engine: Engine, outbox: Outbox, metrics: Metrics | None
) -> list[Callable[[], Awaitable[None]]]:
    async def expire() -> None:
        while True:
            await asyncio.sleep(_TICK)
            engine.expire()

    async def sweep() -> None:
        while True:
            await asyncio.sleep(section.cleanup_interval)
            try:
                await outbox.sweep(time() - section.record_ttl)
            except StoreError as error:
                log.warning("ended rollouts are not forgotten yet: %s", error)

    chores: list[Callable[[], Awaitable[None]]] = [expire, sweep]
    return chores if metrics is None else [*chores, metrics.watch_loop]


def _keep_up(stack: AsyncExitStack, chore: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(chore())
    task.add_done_callback(_mourn)

    async def end() -> None:
        task.cancel()
        await asyncio.wait({task})

    stack.push_async_callback(end)


def _mourn(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a chore of the server has ended: what it looked after is not looked after any more", exc_info=error)
