"""`open_house`: one worker, put together from the plan and `[serve]`, open for exactly as long as the block."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.build.plan import Plan
from runner.config.serve import ServeSection
from runner.models.absent import AbsentModel
from runner.models.chat import ChatModels
from runner.models.connections import Connections
from runner.models.model import Model
from runner.models.retry import Retries
from runner.serve.admission import Policy
from runner.serve.archive.archive import Archive
from runner.serve.archive.archiving import Archiving
from runner.serve.chores import again, chores_of, keep_up, summarise
from runner.serve.delivery.deliveries import CallbackPolicy, Deliveries
from runner.serve.dialects.auto import make_dialects
from runner.serve.engine import Drained, Engine
from runner.serve.http.access import Access
from runner.serve.http.app import App
from runner.serve.http.body import BodyLimits
from runner.serve.http.routes import Chooser, Face, Plays, routes
from runner.serve.played import Played
from runner.serve.playing import Player
from runner.serve.summary import Summary
from runner.serve.urls import UrlPolicy
from runner.serve.vitals import Exposition, Health, Loaded
from runner.serve.watching import Watching
from runner.store.outbox import Outbox

if TYPE_CHECKING:
    from runner.serve.workers.crew import Crew
    from runner.telemetry.event_log import EventLog

DELIVER_AT_END = 5.0
"""Seconds that callbacks get when the server ends; what is not delivered then goes out after the next start."""
_NO_POLICY = "the controller names the model of each rollout that is served"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opening:
    """What the command line adds to the file. `events` is where event logs go, `key` what controllers present."""

    key: str | None = None
    events: Path | EventLog | None = None
    secrets: tuple[str, ...] = ()
    version: str = ""


@dataclass(slots=True)
class House:
    """What one worker serves. `recovered` rollouts and `owed` callbacks were left by an earlier process."""

    app: App
    engine: Engine
    deliveries: Deliveries
    outbox: Outbox
    watching: Watching
    recovered: int = 0
    owed: int = 0
    summarise: Callable[[], Awaitable[None]] | None = None

    @property
    def drained(self) -> Drained:
        """What the drain cut short; final once the house is closed."""
        return self.engine.drained

    async def drain(self, seconds: float) -> int:
        """Accept nothing more, let what plays end within `seconds`, then deliver. How many could not be finished.

        `drained` tells more of these.
        """
        await self.engine.drain(seconds)
        left = await self.deliveries.settle(DELIVER_AT_END)
        if left:
            log.warning("%d callbacks are not delivered yet; they go out after the next start", left)
        if self.summarise is not None:
            await self.summarise()
        return max(self.drained.cut, self.drained.left)


@asynccontextmanager
async def open_house(plan: Plan, opening: Opening, crew: Crew | None = None) -> AsyncIterator[House]:
    """Everything one worker needs, running: the only one, or one of a crew, which is closed with it.

    Raises `StoreError` (the state file) and `ConfigFailure` (a resource).
    """
    section, worker = plan.config.serve, 0 if crew is None else crew.worker
    async with AsyncExitStack() as stack:
        outbox = Outbox.open(section.state.path, worker=worker)
        stack.push_async_callback(outbox.aclose)
        if crew is None:
            await outbox.adopt(1)
        else:
            stack.push_async_callback(crew.aclose)
        connections = Connections(max=section.connections.max, idle=section.connections.idle)
        stack.push_async_callback(connections.aclose)
        live = await stack.enter_async_context(plan.open(model=AbsentModel(_NO_POLICY)))
        plan = live.plan  # with the tools that only a connected server could name
        archiving = _archiving(plan, opening)
        if archiving is not None:
            stack.push_async_callback(archiving.aclose)
        watching = Watching(plan, opening.events, opening.version, archiving)
        stack.push_async_callback(watching.aclose)
        outbox.on_commit(watching.committed)
        for notice in live.notices:
            log.warning("%s", notice)
        urls = UrlPolicy(section.allow_callbacks)
        deliveries = Deliveries(outbox, connections, _callbacks(section), heard=watching.posted, forbidden=urls.barred)
        stack.push_async_callback(deliveries.aclose)
        player = Player(
            live,
            outbox,
            _Models(_models(plan, section, connections), watching),
            watching.listen,
            deliveries.owe,
            report_cancelled=section.report_cancelled,
            artifacts=None if archiving is None else archiving.artifacts,
        )
        engine = Engine(
            live,
            outbox,
            player,
            _policy(section, worker),
            urls.check_start,
            watching.ended,
            watching.traced if watching.traces else None,
            None if crew is None else crew.slots,
        )
        stack.push_async_callback(engine.aclose)
        dialects = make_dialects(section, secrets=opening.secrets)
        health = Health(plan.name, engine, deliveries)
        shown = _exposition(section, watching, engine if crew is None else crew, outbox, deliveries)
        if crew is None:
            app = _app(plan, opening, engine, Told(dialects.starts, health, shown), watching)
        else:
            crew.join(engine, outbox, dialects.named, section.dedupe != "run")
            told = Told(dialects.starts, crew.health(health), crew.metrics(shown))
            app = _app(plan, opening, crew, told, watching)
        house = House(app, engine, deliveries, outbox, watching)
        house.owed = await deliveries.recover()
        recovered = await engine.recover(dialects.named)
        house.recovered = sum(recovered.values())
        watching.recovered(recovered)
        for chore in chores_of(section, engine, outbox, watching):
            keep_up(stack, chore)
        summary = Summary(engine, deliveries, watching.tally)
        if crew is not None:
            crew.summarised(summary)
        if section.log.summary:
            house.summarise = partial(summarise, summary, None)  # at its end each worker says its own
            if worker == 0:
                keep_up(stack, partial(again, partial(summarise, summary, crew), section.log.summary))
        if crew is not None:
            await crew.open()
            keep_up(stack, crew.keep)
        yield house


def _archiving(plan: Plan, opening: Opening) -> Archiving | None:
    root = plan.config.serve.archive
    return None if root is None else Archiving(Archive(root.path, plan.name, opening.version), plan.offered)


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
    most = section.max_concurrent, section.max_queue
    return Policy(*most, section.dedupe, section.on_restart, worker, section.max_metadata)


class _Models:
    """Models whose calls carry their rollout's trace."""

    def __init__(self, models: ChatModels, watching: Watching) -> None:
        self._models = models
        self._watching = watching

    def model_for(self, played: Played) -> Model:
        carried, chat = self._watching.headers_for(played.label), played.start.chat
        chat = replace(chat, headers={**chat.headers, **carried}) if carried else chat
        return self._models.model_for(chat)


@dataclass(frozen=True, slots=True)
class Told:
    """What the app tells: of one worker, or of all."""

    starts: Mapping[str, Chooser]
    health: Callable[[], Awaitable[Mapping[str, Any]]]
    metrics: Callable[[str], Awaitable[tuple[bytes, str]]] | None


def _exposition(
    section: ServeSection, watching: Watching, loaded: Loaded, outbox: Outbox, deliveries: Deliveries
) -> Exposition | None:
    metrics = watching.metrics
    exposed = metrics is not None and section.metrics.expose
    return Exposition(metrics, loaded, outbox, deliveries) if metrics is not None and exposed else None


def _app(plan: Plan, opening: Opening, plays: Plays, told: Told, watching: Watching) -> App:
    section = plan.config.serve
    face = Face(
        starts=told.starts,
        limits=BodyLimits(section.max_body, section.request_timeout),
        health=told.health,
        metrics=told.metrics,
        started=watching.started,
        has_key=opening.key is not None,
        instance_id=os.environ.get("_OSMOSIS_ROLLOUT_INSTANCE_ID", ""),
        title=plan.name,
        version=opening.version,
    )
    return App(routes(plays, face), Access(opening.key), watching.http)
