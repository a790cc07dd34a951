"""`KubernetesMaker`: makes pods of one section, and waits until they are ready or says why they are not."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api, ApiError
from runner.sandboxes.kubernetes.connection import Connection
from runner.sandboxes.kubernetes.kubeconfig import Access, find_access
from runner.sandboxes.kubernetes.lookout import Followed, Lookout
from runner.sandboxes.kubernetes.network import deny_network
from runner.sandboxes.kubernetes.pod import PodSandbox
from runner.sandboxes.kubernetes.pods import OWNER, SECTION, PodOptions, label, manifest
from runner.sandboxes.kubernetes.reaper import BEAT_SECONDS, alive_until, keep_alive, reap
from runner.sandboxes.owner import owner_key
from runner.sandboxes.sandbox import Command

RIGHTS = (
    ("create", "pods", ""),
    ("get", "pods", ""),
    ("list", "pods", ""),
    ("watch", "pods", ""),
    ("delete", "pods", ""),
    ("patch", "pods", ""),
    ("get", "pods", "exec"),
    ("create", "pods", "exec"),
)
"""What is asked of an account. Over WebSockets servers ask for `get` of pods/exec, newer ones for `create` too."""


class KubernetesMaker:
    """Bound to the event loop of its first use. `access` stands in for what a kubeconfig says.

    Every `beat` seconds the pods are renewed; `pause` waits so many seconds before a call is tried again.
    """

    kind = "kubernetes"

    def __init__(
        self,
        options: PodOptions,
        *,
        access: Access | None = None,
        beat: float = BEAT_SECONDS,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.options = options
        self._access = access
        self._beat_seconds = beat
        self._pause = pause
        self._api: Api | None = None
        self._lookout: Lookout | None = None
        self._beating: asyncio.Task[None] | None = None
        self._alive: set[PodSandbox] = set()

    async def probe(self) -> Sequence[str]:
        api, _ = await self._opened()
        await self._check_rights(api)
        said = []
        try:
            reaped = await reap(api)
            if reaped:
                said.append(f"{reaped} pods that dead runs had left in `{api.namespace}` were removed")
            if not self.options.network:
                said.append(await self._without_network(api))
        except ApiError as error:
            raise _unavailable(f"the cluster at {api.server}: {error}") from error
        trial = await self.make("probe")
        try:
            ran = await trial.exec(Command(["/bin/sh", "-c", "exit 7"], timeout=60.0))
        finally:
            await trial.stop()
        if ran.code != 7:
            told = ran.stderr.decode("utf-8", "replace").strip()[-300:]
            raise _unavailable(f"the image `{self.options.image}` runs no commands: exit code {ran.code}: {told}")
        return said

    async def make(self, name: str) -> PodSandbox:
        api, lookout = await self._opened()
        words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:30].rstrip("-") or "rollout"
        unique = f"osmosis-run-{words}-{secrets.token_hex(5)}"
        wanted = manifest(self.options, unique, owner_key(), name, alive_until())
        try:
            pod = await asyncio.shield(asyncio.ensure_future(api.create_pod(wanted)))
        except asyncio.CancelledError:
            await asyncio.shield(self._remove(api, unique, None))  # it may be there already
            raise
        except ApiError as error:
            raise _not_created(error) from error
        try:
            followed = await lookout.follow(pod)
            await self._until_ready(followed, lookout)
        except BaseException:
            lookout.forget(unique)
            await asyncio.shield(self._remove(api, unique, pod["metadata"]["uid"]))
            raise
        sandbox = PodSandbox(followed, self.options, api, lookout, self._alive.discard)
        self._alive.add(sandbox)
        return sandbox

    async def aclose(self) -> None:
        await asyncio.gather(*(sandbox.stop() for sandbox in list(self._alive)))
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
        if self._lookout is not None:
            await self._lookout.aclose()
        if self._api is not None:
            await self._api.connection.aclose()
        self._api = self._lookout = self._beating = None

    async def _opened(self) -> tuple[Api, Lookout]:
        if self._api is None or self._lookout is None:
            options = self.options
            access = self._access or find_access(options.kubeconfig, options.context)
            self._api = Api(Connection(access), options.namespace or access.namespace, pause=self._pause)
            selector = f"{OWNER}={owner_key()},{SECTION}={label(options.section)}"
            self._lookout = Lookout(self._api, selector)
            self._beating = asyncio.get_running_loop().create_task(self._beat(self._api, self._lookout))
        return self._api, self._lookout

    async def _beat(self, api: Api, lookout: Lookout) -> None:
        await keep_alive(api, lambda: lookout.names, self._beat_seconds)

    async def _check_rights(self, api: Api) -> None:
        missing = [right for right, may in zip(RIGHTS, await _reviews(api), strict=True) if not may]
        if missing:
            words = ", ".join(f"`{verb}` of {what}{f'/{sub}' if sub else ''}" for verb, what, sub in missing)
            raise _unavailable(
                f"the account may not do everything that pods need in the namespace `{api.namespace}`: it lacks "
                f"{words}; give it the role in docs/sandboxes.md"
            )

    async def _without_network(self, api: Api) -> str:
        if not self.options.network_policy:
            return "nothing here keeps its pods from the network: `network_policy = false` leaves that to the cluster"
        return await deny_network(api)

    async def _until_ready(self, followed: Followed, lookout: Lookout) -> None:
        seconds = self.options.start_time
        image = f"image `{self.options.image}`"
        try:
            async with asyncio.timeout(seconds):
                while not followed.standing.ready:
                    if followed.over:
                        raise _unavailable(f"a pod of {image} does not start: {followed.over}")
                    await followed.changed()
        except TimeoutError:
            last = await lookout.ask(followed)  # the watch may have been deaf
            if last.ready:
                return
            kind = "sandbox_full" if last.unschedulable else "sandbox_unavailable"
            why = last.over or last.waiting
            message = f"a pod of {image} was not ready within {seconds:g} s (`kubernetes.start_time`): {why}"
            raise SandboxError(message, kind=kind) from None

    async def _remove(self, api: Api, name: str, uid: str | None) -> None:
        with suppress(ApiError, SandboxError):  # its labels say whose it is: the next run removes it
            await api.delete_pod(name, uid)


async def _reviews(api: Api) -> list[bool]:
    async def may(verb: str, what: str, sub: str) -> bool:
        attributes = {"namespace": api.namespace, "verb": verb, "resource": what, "subresource": sub}
        review: dict[str, Any] = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
        }
        answer = await api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool((answer.get("status") or {}).get("allowed"))

    try:
        return await asyncio.gather(*(may(*right) for right in RIGHTS))
    except ApiError as error:
        who = "it does not know who we are" if error.status == 401 else "it does not say what we may do"
        raise _unavailable(f"the cluster at {api.server}: {who}: {error}") from error


def _not_created(error: ApiError) -> SandboxError:
    if "quota" in str(error):
        return SandboxError(f"no pod can be created, the namespace's quota is used up: {error}", kind="sandbox_full")
    return _unavailable(f"no pod can be created: {error}")


def _unavailable(message: str) -> SandboxError:
    return SandboxError(message, kind="sandbox_unavailable")
