"""`[sandboxes.NAME] kubernetes = { … }`: where pods are made, and what is said in their specification."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.config.quantity import Bytes, Seconds
from runner.config.section import OPERATION, Array, Section

_DNS = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
Name = Annotated[str, Field(pattern=_DNS, max_length=253)]
"""The name of an object of the cluster."""


class Toleration(Section):
    """A taint of nodes that pods put up with."""

    key: str | None = None
    """The taint's key. Default: any, with the operator `Exists`."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Whether `value` has to be the taint's. Default: `Equal`."""
    value: str | None = None
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The effect that is put up with. Default: every one."""


class KubernetesSection(Section):
    """Which cluster, and what of its own a pod needs there. Everything else comes from the keys all sandboxes have."""

    kubeconfig: Annotated[str | None, OPERATION] = None
    """The file that names the cluster. Default: `KUBECONFIG`, else `~/.kube/config`, else the account of the pod that
    this runs in."""
    context: Annotated[str | None, OPERATION] = None
    """The context of that file. Default: its current one."""
    namespace: Annotated[Name | None, OPERATION] = None
    """Where pods are made. Default: what the context says, else `default`."""
    service_account: Annotated[Name | None, OPERATION] = None
    """The account that pods run under, for what the cluster ties to it; its token is never mounted."""
    runtime_class: Name | None = None
    """The runtime of the container, such as gVisor or Kata: a wall of its own against the kernel of the node."""
    image_pull_policy: Annotated[Literal["Always", "IfNotPresent", "Never"] | None, OPERATION] = None
    """When a node fetches the image. Default: the cluster's."""
    image_pull_secrets: Annotated[Array[Name], OPERATION] = ()
    """Secrets of the namespace that open the registry."""
    node_selector: Annotated[dict[str, str], OPERATION] = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: Annotated[Array[Toleration], OPERATION] = ()
    """Taints of nodes that pods put up with."""
    labels: Annotated[dict[str, str], OPERATION] = Field(default_factory=dict)
    """More labels of each pod. Those of `osmosis-run/` are ours."""
    annotations: Annotated[dict[str, str], OPERATION] = Field(default_factory=dict)
    """More annotations of each pod."""
    request_memory: Annotated[Bytes | None, OPERATION] = None
    """What a node must have free for a pod. Default: its limit, `memory`."""
    request_cpus: Annotated[Annotated[float, Field(gt=0)] | None, OPERATION] = None
    """The processors that a node must have free for a pod. Default: its limit, `cpus`."""
    disk: Bytes | None = None
    """What a pod may write; the cluster evicts one that writes more. Default: no limit."""
    start_time: Annotated[Seconds, OPERATION] = 300.0
    """How long a pod may take until it is ready, its image and its node included. Default 5m."""
    lifetime: Annotated[Annotated[Seconds, Field(ge=60)], OPERATION] = 21600.0
    """After which the cluster ends a pod, whatever became of us. Default 6h; longer than the longest rollout, or run
    with `scope = "run"`."""
    network_policy: bool = True
    """With `network = false`: make the NetworkPolicy that denies it. `false` leaves that to the cluster."""
