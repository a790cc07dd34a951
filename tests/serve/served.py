"""A server over a real socket for tests: our app and hypercorn, and an engine that only remembers what it was asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from runner.serve.admission import Answer
from runner.serve.engine import Selector
from runner.serve.http.access import Access
from runner.serve.http.app import App
from runner.serve.http.body import BodyLimits
from runner.serve.http.routes import Face, routes
from runner.serve.http.server import Serving, listen, run_worker, url_of
from runner.serve.start import Refused
from runner.store.errors import StoreError


class Named:
    """A dialect by name alone."""

    def __init__(self, name: str) -> None:
        self.name = name


class FakeEngine:
    """Accepts every start with 202, after `pause` seconds; `boom`, `deep` and `full` in the id do what they say."""

    def __init__(self, pause: float = 0.0) -> None:
        self.started: list[Mapping[str, Any]] = []
        self.selectors: list[Selector] = []
        self.draining = False
        self.pause = pause

    async def start(self, dialect: Any, body: Mapping[str, Any], raw: bytes, headers: Any = ()) -> Answer:
        if body.get("rollout_id") == "boom":
            raise RuntimeError("a bug")
        if body.get("rollout_id") == "deep":
            raise RecursionError
        if body.get("rollout_id") == "full":
            raise Refused(429, "rollout queue is full; retry later", {"retry-after": "7"})
        if body.get("rollout_id") == "nan":
            raise Refused(422, [{"input": float("nan"), "msg": "\ud83d"}])
        if self.pause:
            await asyncio.sleep(self.pause)
        self.started.append(body)
        return Answer(202, b"{}")

    async def status(self, rollout_id: str) -> dict[str, Any]:
        if rollout_id == "unreadable":
            raise StoreError("rollouts.db: is damaged", "move it away")
        return {"rollout_id": rollout_id, "status": "unknown", "reward": None, "err_message": None}

    async def cancel(self, selector: Selector) -> dict[str, str]:
        self.selectors.append(selector)
        return dict.fromkeys(selector.ids or (), "not_found")


class FakeHouse:
    """`drain` takes as long as `drains` says, and leaves `left` unfinished."""

    def __init__(self, app: App, engine: FakeEngine, drains: float = 0.0, left: int = 0) -> None:
        self.app = app
        self.engine = engine
        self.drains = drains
        self.left = left

    async def drain(self, seconds: float) -> int:
        self.engine.draining = True
        await asyncio.sleep(min(seconds, self.drains))
        return self.left


async def health() -> Mapping[str, Any]:
    return {"status": "ok", "concurrency": {"max_concurrent": 4, "queued": 0, "running": 0}}


async def metrics(accept: str) -> tuple[bytes, str]:
    return b"up 1\n", "text/plain"


def make_app(engine: FakeEngine, key: str | None = None, limits: BodyLimits | None = None, **face: Any) -> App:
    limits = limits or BodyLimits(most=100_000, seconds=0.5)
    named = {path: (lambda body: Named("any")) for path in ("/rollout", "/v1/rollout/init")}
    made = Face(named, limits, health, metrics=metrics, has_key=key is not None, **face)
    return App(routes(engine, made), Access(key))


@asynccontextmanager
async def serving(app: App, **hypercorn: Any) -> AsyncIterator[int]:
    """Our app behind hypercorn on a free port, without the signals of a whole process."""
    from runner.serve.http.server import hypercorn_config
    from runner.serve.http.worker import serve

    sockets = listen("127.0.0.1", 0)
    over = asyncio.Event()
    config = hypercorn_config({"keep_alive_timeout": 2.0, **hypercorn}, sockets)
    served = asyncio.ensure_future(serve(app, config, over.wait))
    try:
        yield sockets[0].getsockname()[1]
    finally:
        for each in sockets:
            each.close()
        over.set()
        await served


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """`python served.py [drain] [drains] [left]`: a whole worker process; says its URL."""
    drain, drains, left = (float(word) for word in [*sys.argv[1:], *["5", "0", "0"][len(sys.argv) - 1 :]])
    sockets = listen("127.0.0.1", 0)
    engine = FakeEngine()

    @asynccontextmanager
    async def open_house(worker: int) -> AsyncIterator[FakeHouse]:
        yield FakeHouse(make_app(engine), engine, drains, int(left))

    async def work() -> int:
        settings = Serving(drain=drain, ready=lambda: say(url_of(sockets[0], {})))
        return await run_worker(open_house, sockets, settings)

    sys.exit(3 if asyncio.run(work()) else 0)


if __name__ == "__main__":
    main()
