"""The state of the stand-in: pods and their lives, what is watched, and the faults that a test asks for."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.sandboxes.kubernetes.api_server.containers import Container

NODE_LABELS = {"kubernetes.io/os": "linux"}


@dataclass
class Faults:
    """What goes wrong. Counters count down; a command's faults are of every command while they are set."""

    handshake: list[int] = field(default_factory=list)
    """Statuses that the next requests for a command are refused with."""
    v4_only: bool = False
    drop_after: int | None = None
    """Bytes of output after which the connection of a command is cut."""
    split: bool = False
    """Each byte is a frame of its own, the status's too."""
    no_status: bool = False
    status_first: bool = False
    """The status comes before the last of the output."""
    calls: list[tuple[int, str | None]] = field(default_factory=list)
    """Statuses that the next calls other than commands are refused with, and their Retry-After."""
    never_running: bool = False
    start_delay: float = 0.0
    watch_ends_after: int | None = None
    """Events after which a watch ends."""
    watch_gone: int = 0
    """So many watches are told 410 at once."""
    watch_garbage: int = 0
    """So many watches end in the middle of an event."""
    denied: set[str] = field(default_factory=set)
    """`VERB RESOURCE` that the account may not do."""
    quota: int | None = None


class StatusError(Exception):
    """An answer that is a refusal."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class Pod:
    """One pod; `object` is what the server tells of it."""

    def __init__(self, manifest: dict[str, Any], namespace: str) -> None:
        metadata = manifest.setdefault("metadata", {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata |= {"namespace": namespace, "uid": secrets.token_hex(16), "creationTimestamp": now}
        self.object: dict[str, Any] = {**manifest, "status": {"phase": "Pending"}}
        self.container: Container | None = None

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])


class Cluster:
    """All namespaces of one server. Everything happens on one event loop."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.pods: dict[tuple[str, str], Pod] = {}
        self.policies: dict[tuple[str, str], dict[str, Any]] = {}
        self.token: str | None = None
        self.requests: list[str] = []
        """Method and path with query of every request."""
        self._version = 100
        self._events: list[tuple[int, dict[str, Any]]] = []
        self._watchers: set[asyncio.Event] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def create(self, namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
        name = manifest["metadata"]["name"]
        if (namespace, name) in self.pods:
            raise StatusError(409, "AlreadyExists", f'pods "{name}" already exists')
        if self.faults.quota is not None and len(self.pods) >= self.faults.quota:
            text = f'pods "{name}" is forbidden: exceeded quota: team, requested: pods=1, used: pods={len(self.pods)}'
            raise StatusError(403, "Forbidden", text)
        pod = Pod(manifest, namespace)
        self.pods[namespace, name] = pod
        self._tell("ADDED", pod)
        self._later(self._live(pod))
        return pod.object

    def find(self, namespace: str, name: str) -> Pod:
        if (namespace, name) not in self.pods:
            raise StatusError(404, "NotFound", f'pods "{name}" not found')
        return self.pods[namespace, name]

    def delete(self, namespace: str, name: str, uid: str | None = None, grace: float = 30.0) -> dict[str, Any]:
        pod = self.find(namespace, name)
        metadata = pod.object["metadata"]
        if uid is not None and uid != metadata["uid"]:
            text = f'Operation cannot be fulfilled on Pod "{name}": the UID in the precondition ({uid}) does not match'
            raise StatusError(409, "Conflict", text)
        metadata["deletionTimestamp"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if grace:
            self._tell("MODIFIED", pod)
            self._later(self._remove_later(pod))
        else:
            self.remove(pod)
        return pod.object

    def remove(self, pod: Pod) -> None:
        if self.pods.pop((pod.object["metadata"]["namespace"], pod.name), None) is pod:
            self._tell("DELETED", pod)
        if pod.container is not None:
            pod.container.kill()

    def finish(self, pod: Pod, reason: str, message: str = "", *, terminated: dict[str, Any] | None = None) -> None:
        """The pod has failed, as when it was evicted or out of memory: its container is gone, its object stays."""
        status = pod.object["status"]
        status["phase"] = "Failed"
        if terminated is None:
            status |= {"reason": reason, "message": message}
        else:
            status["containerStatuses"][0]["state"] = {"terminated": terminated}
        if pod.container is not None:
            pod.container.kill()
        self._tell("MODIFIED", pod)

    def patch(self, pod: Pod, patch: dict[str, Any]) -> dict[str, Any]:
        _merge(pod.object, patch)
        self._tell("MODIFIED", pod)
        return pod.object

    def list(self, namespace: str, selector: str) -> dict[str, Any]:
        items = [
            pod.object for (where, _), pod in self.pods.items() if where == namespace and matches(pod.object, selector)
        ]
        metadata = {"resourceVersion": str(self._version)}
        return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}

    def since(self, version: int, namespace: str, selector: str) -> list[tuple[int, dict[str, Any]]]:
        """The events after a version."""
        return [
            (at, event)
            for at, event in self._events
            if at > version
            and event["object"]["metadata"]["namespace"] == namespace
            and matches(event["object"], selector)
        ]

    def watcher(self) -> asyncio.Event:
        event = asyncio.Event()
        self._watchers.add(event)
        return event

    def forget(self, watcher: asyncio.Event) -> None:
        self._watchers.discard(watcher)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        for pod in list(self.pods.values()):
            self.remove(pod)

    async def _live(self, pod: Pod) -> None:
        spec, status = pod.object["spec"], pod.object["status"]
        container = spec["containers"][0]
        await asyncio.sleep(self.faults.start_delay)
        wanted = spec.get("nodeSelector") or {}
        if any(NODE_LABELS.get(key) != value for key, value in wanted.items()):
            text = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
            scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
            return self._now(pod, conditions=[scheduled])
        status["conditions"] = [{"type": "PodScheduled", "status": "True"}]
        if self.faults.never_running:
            return self._waits(pod, "ContainerCreating", "")
        if "no-such" in container["image"]:
            text = (
                f'rpc error: code = NotFound desc = failed to pull and unpack image "{container["image"]}": not found'
            )
            self._waits(pod, "ErrImagePull", text)
            await asyncio.sleep(0.05)
            return self._waits(pod, "ImagePullBackOff", f'Back-off pulling image "{container["image"]}"')
        mounts = container.get("volumeMounts") or [{"mountPath": "/workspace"}]
        pod.container = Container(mounts[0]["mountPath"])
        await pod.container.started()
        if self.pods.get((pod.object["metadata"]["namespace"], pod.name)) is not pod:
            return pod.container.kill()
        states = [_container_status(pod, {"running": {}})]
        conditions = [*status["conditions"], {"type": "Ready", "status": "False"}]
        self._now(pod, phase="Running", conditions=conditions, containerStatuses=states)
        status["containerStatuses"][0]["ready"] = True
        return self._now(pod, conditions=[status["conditions"][0], {"type": "Ready", "status": "True"}])

    def _waits(self, pod: Pod, reason: str, message: str) -> None:
        waiting = {"reason": reason, **({"message": message} if message else {})}
        self._now(pod, containerStatuses=[_container_status(pod, {"waiting": waiting})])

    def _now(self, pod: Pod, **status: Any) -> None:
        pod.object["status"] |= status
        self._tell("MODIFIED", pod)

    async def _remove_later(self, pod: Pod) -> None:
        await asyncio.sleep(0.3)
        self.remove(pod)

    def _tell(self, kind: str, pod: Pod) -> None:
        import copy

        self._version += 1
        pod.object["metadata"]["resourceVersion"] = str(self._version)
        self._events.append((self._version, {"type": kind, "object": copy.deepcopy(pod.object)}))
        for watcher in self._watchers:
            watcher.set()

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _container_status(pod: Pod, state: dict[str, Any]) -> dict[str, Any]:
    container = pod.object["spec"]["containers"][0]
    told = {"name": container["name"], "image": container["image"], "imageID": ""}
    return {**told, "ready": False, "restartCount": 0, "state": state}


def matches(thing: dict[str, Any], selector: str) -> bool:
    """Whether the labels are those of a selector: `a=b`, `a`, with commas."""
    labels = thing["metadata"].get("labels") or {}
    checks: list[Callable[[], bool]] = []
    for part in filter(None, selector.split(",")):
        key, equals, value = part.replace("==", "=").partition("=")
        checks.append(lambda key=key, equals=equals, value=value: labels.get(key) == value if equals else key in labels)  # type: ignore[misc]
    return all(check() for check in checks)


def _merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value
