"""`Lookout`: sees what becomes of our pods, all of a section by one watch, and tells whoever follows one.

A watch may end at any moment and forget where it was (410): then everything is listed again, and what is missing from
the list is gone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api, ApiError
from runner.sandboxes.kubernetes.connection import UnreachableError
from runner.sandboxes.kubernetes.pods import Standing, standing

_WATCH_SECONDS = 240
_MAX_PAUSE = 10.0


class Followed:
    """A pod by the name and the `uid` we made: one that has its name and is another is not it."""

    def __init__(self, name: str, uid: str) -> None:
        self.name = name
        self.uid = uid
        self.standing = Standing(waiting="nothing was said of it yet")
        self._changed = asyncio.Event()
        self._was_ready = False

    @property
    def over(self) -> str:
        """Why it is over for good, "" while it is not."""
        return self.standing.over

    def saw(self, pod: Mapping[str, Any] | None) -> None:
        """What the server says of it now; None: it is not there."""
        if self.standing.over:
            return
        if pod is None or pod["metadata"].get("uid") != self.uid:
            self.standing = Standing(over="its pod is gone")
        else:
            self.standing = standing(pod)
            if self._was_ready and not self.standing.ready and not self.standing.over:
                # Nothing probes our pods: one whose container runs stops to be ready when its node does not answer.
                self.standing = Standing(over="its node does not answer any more")
            self._was_ready = self.standing.ready
        self._changed.set()

    def end(self, why: str) -> None:
        """We are done with it."""
        if not self.standing.over:
            self.standing = Standing(over=why)
        self._changed.set()

    async def changed(self) -> None:
        """Wait for the next news."""
        self._changed.clear()
        await self._changed.wait()

    async def ended(self) -> str:
        """Wait until it is over; why."""
        while not self.standing.over:
            await self.changed()
        return self.standing.over


class Lookout:
    """Watches the pods that `selector` names while anything is followed."""

    def __init__(self, api: Api, selector: str) -> None:
        self._api = api
        self._selector = selector
        self._followed: dict[str, Followed] = {}
        self._watching: asyncio.Task[None] | None = None

    async def follow(self, pod: Mapping[str, Any]) -> Followed:
        """Follow a pod that was made just now. Raises `SandboxError`."""
        followed = Followed(pod["metadata"]["name"], pod["metadata"]["uid"])
        self._followed[followed.name] = followed
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        await self.ask(followed)  # the watch may have told of it before it was followed
        return followed

    def forget(self, name: str) -> None:
        self._followed.pop(name, None)

    @property
    def names(self) -> list[str]:
        """The pods that are followed and not over."""
        return [name for name, followed in self._followed.items() if not followed.over]

    async def ask(self, followed: Followed) -> Standing:
        """What it is in this moment, asked for. Raises `SandboxError` when the server cannot be reached."""
        try:
            followed.saw(await self._api.call("GET", self._api.pods(followed.name)))
        except ApiError as error:
            if error.status != 404:
                raise SandboxError(f"its pod cannot be looked at: {error}", kind="sandbox_unavailable") from error
            followed.saw(None)
        return followed.standing

    async def aclose(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None

    async def _watch(self) -> None:
        version, failed = "", 0
        while True:
            try:
                version = version or await self._list()
                version = await self._events(version)
                failed = 0
            except ApiError as error:
                version = ""
                if error.status != 410:
                    failed += 1
            except (UnreachableError, SandboxError):
                failed += 1  # each command that runs meanwhile says it itself
            except (KeyError, TypeError, AttributeError):
                version, failed = "", failed + 1  # what came is no event: whatever stands between
            if failed:
                await asyncio.sleep(min(0.2 * 2**failed, _MAX_PAUSE) * (0.5 + random.random()))

    async def _list(self) -> str:
        listed = await self._api.call("GET", self._api.pods(), query=[("labelSelector", self._selector)])
        there = {pod["metadata"]["name"]: pod for pod in listed.get("items") or ()}
        for name, followed in list(self._followed.items()):
            # One made while the list was on its way is not in it: it is looked at by itself before it is given up.
            if name in there:
                followed.saw(there[name])
            else:
                await self.ask(followed)
        return str(listed["metadata"].get("resourceVersion") or "0")

    async def _events(self, version: str) -> str:
        """Hear events until the watch ends. Returns where it ended."""
        query = [
            ("labelSelector", self._selector),
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(_WATCH_SECONDS)),
        ]
        began = asyncio.get_running_loop().time()
        try:
            async with aclosing(self._api.watch(self._api.pods(), query, _WATCH_SECONDS + 30.0)) as events:
                async for event in events:
                    pod = event["object"]
                    version = str(pod["metadata"].get("resourceVersion") or version)
                    followed = self._followed.get(pod["metadata"].get("name", ""))
                    if followed is not None and event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        if event["type"] == "DELETED" and pod["metadata"].get("uid") == followed.uid:
                            followed.saw(pod)  # why, if it says
                            followed.saw(None)
                        elif event["type"] != "DELETED":
                            followed.saw(pod)
        except TimeoutError:
            return version
        except UnreachableError:
            if asyncio.get_running_loop().time() - began < 1.0:
                raise
        if asyncio.get_running_loop().time() - began < 1.0:
            await asyncio.sleep(0.2)  # a server that ends them at once is not asked in a tight loop
        return version
