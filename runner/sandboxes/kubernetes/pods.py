"""What a pod of ours is, as the server wants it told, and what a server says of one, in words.

A pod holds one container that waits; the workdir is an empty folder of its own. It may do nothing to the cluster: no
account, no rights to become more, no capabilities, the runtime's filter of system calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from runner.sandboxes.asked import DEFAULT_MEMORY, NO_LIMITS, Limits

MANAGED = "app.kubernetes.io/managed-by"
OWNER = "osmosis-run/owner"
SECTION = "osmosis-run/section"
NETWORK = "osmosis-run/network"
ALIVE_UNTIL = "osmosis-run/alive-until"
CALLED = "osmosis-run/name"
CONTAINER = "sandbox"

_LIVE = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'
_FATAL = {
    "ImagePullBackOff": "its image cannot be pulled",
    "InvalidImageName": "its image has no valid name",
    "ErrImageNeverPull": "its image is not on the node, and may not be pulled",
    "RegistryUnavailable": "the registry of its image cannot be reached",
    "CreateContainerConfigError": "its container cannot be configured",
    "CreateContainerError": "its container cannot be created",
    "RunContainerError": "its container cannot be started",
    "CrashLoopBackOff": "its container ends as soon as it starts",
}
_WAITING = {**_FATAL, "ErrImagePull": "its image cannot be pulled"}


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What a section asks of its pods. Sizes are in bytes, times in seconds; `user` is `UID` or `UID:GID`.

    `time` is of one command, `start_time` until a pod is ready, `lifetime` after which the cluster ends it whatever
    became of us. `requests` is what a node has to have free: memory in bytes, processors; where None, the limits.
    """

    image: str
    section: str = "sandbox"
    limits: Limits = NO_LIMITS
    time: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    workdir: str = "/workspace"
    user: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    service_account: str | None = None
    runtime_class: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    image_pull_secrets: Sequence[str] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    request_memory: int | None = None
    request_cpus: float | None = None
    disk: int | None = None
    start_time: float = 300.0
    lifetime: float = 6 * 3600.0
    network_policy: bool = True


def manifest(options: PodOptions, name: str, owner: str, called: str, alive_until: str) -> dict[str, Any]:
    """The pod `name` of `owner`; `called` is for people."""
    labels = {
        **options.labels,
        MANAGED: "osmosis-run",
        OWNER: owner,
        SECTION: label(options.section),
        NETWORK: "open" if options.network else "none",
    }
    annotations = {**options.annotations, ALIVE_UNTIL: alive_until, CALLED: called}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(options)}


def _spec(options: PodOptions) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": int(options.lifetime),
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": "sandbox",
        "containers": [_container(options)],
        "volumes": [{"name": "workdir", "emptyDir": {} if options.disk is None else {"sizeLimit": str(options.disk)}}],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    given = {
        "serviceAccountName": options.service_account,
        "runtimeClassName": options.runtime_class,
        "nodeSelector": dict(options.node_selector),
        "tolerations": [dict(each) for each in options.tolerations],
        "imagePullSecrets": [{"name": each} for each in options.image_pull_secrets],
    }
    return {**spec, **{key: value for key, value in given.items() if value}}


def _container(options: PodOptions) -> dict[str, Any]:
    security: dict[str, Any] = {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    if options.user is not None:
        user, _, group = options.user.partition(":")
        security |= {"runAsUser": int(user), "runAsGroup": int(group or user), "runAsNonRoot": int(user) != 0}
    container = {
        "name": CONTAINER,
        "image": options.image,
        "command": ["/bin/sh", "-c", _LIVE],
        "workingDir": "/",
        "resources": _resources(options),
        "securityContext": security,
        "volumeMounts": [{"name": "workdir", "mountPath": options.workdir}],
    }
    return container | ({"imagePullPolicy": options.image_pull_policy} if options.image_pull_policy else {})


def _resources(options: PodOptions) -> dict[str, dict[str, str]]:
    limits = {"memory": str(DEFAULT_MEMORY if options.limits.memory is None else options.limits.memory)}
    requests = {}
    if options.limits.cpus is not None:
        limits["cpu"] = _cpus(options.limits.cpus)
    if options.disk is not None:
        limits["ephemeral-storage"] = str(options.disk)
    if options.request_memory is not None:
        requests["memory"] = str(options.request_memory)
    if options.request_cpus is not None:
        requests["cpu"] = _cpus(options.request_cpus)
    return {"limits": limits, "requests": requests} if requests else {"limits": limits}


def _cpus(count: float) -> str:
    return f"{max(round(count * 1000), 1)}m"


def label(text: str) -> str:
    """`text` as the value of a label: at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends."""
    kept = "".join(each if (each.isascii() and each.isalnum()) or each in "-_." else "-" for each in text)
    return kept[:63].strip("-_.")


class Standing(NamedTuple):
    """What a pod is: `ready` to be used, `over` for good (in words), or waiting (why, in words, where it says)."""

    ready: bool = False
    over: str = ""
    waiting: str = ""
    out_of_memory: bool = False
    unschedulable: bool = False


def standing(pod: Mapping[str, Any]) -> Standing:
    """What the server says of a pod."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or [{}]
    state: Mapping[str, Any] = containers[0].get("state") or {}
    ended = state.get("terminated")
    hungry = isinstance(ended, Mapping) and ended.get("reason") == "OOMKilled"
    if pod["metadata"].get("deletionTimestamp"):
        return Standing(over=_why(status, "it is being deleted"), out_of_memory=hungry)
    if hungry:
        return Standing(over="its container has ended: out of memory", out_of_memory=True)
    if status.get("phase") in ("Failed", "Succeeded", "Unknown"):
        return Standing(over=_why(status, f"its pod has ended ({status['phase']})"))
    if ended is not None:
        return Standing(over=f"its container has ended with {ended.get('exitCode')} ({ended.get('reason')})")
    waiting = state.get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in _FATAL:
        return Standing(over=_told(_FATAL[reason], reason, message))
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    if ready.get("reason") == "NodeLost" or status.get("reason") == "NodeLost":
        return Standing(over="its node was lost")
    if status.get("phase") == "Running" and "running" in state and ready.get("status") == "True":
        return Standing(ready=True)
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        words = _told("no node takes it", str(scheduled.get("reason") or ""), str(scheduled.get("message") or ""))
        return Standing(waiting=words, unschedulable=True)
    if reason:
        return Standing(waiting=_told(_WAITING.get(reason, "its container waits"), reason, message))
    if status.get("phase") == "Running":
        return Standing(waiting=_told("its pod runs and is not ready", str(ready.get("reason") or ""), ""))
    return Standing(waiting="nothing was said of it yet")


def _why(status: Mapping[str, Any], plain: str) -> str:
    """Evicted, DeadlineExceeded, NodeLost, Preempting: with what the cluster says of it."""
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    known = {
        "Evicted": "it was evicted",
        "NodeLost": "its node was lost",
        "DeadlineExceeded": "its lifetime (`kubernetes.lifetime`) is over",
        "Preempting": "it had to give way to another pod",
        "Preempted": "it had to give way to another pod",
    }
    return _told(known.get(reason, plain), reason, message) if reason else plain


def _told(words: str, reason: str, message: str) -> str:
    reason = f" ({reason})" if reason else ""
    return f"{words}{reason}{f': {message[:400]}' if message else ''}"
