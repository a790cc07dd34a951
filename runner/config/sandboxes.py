"""`[sandboxes.NAME]`: where tools and graders run what a model wrote. Which keys a kind can honour is a table here."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from runner.config.kubernetes import KubernetesSection
from runner.config.model import Header
from runner.config.quantity import Bytes, Seconds
from runner.config.section import OPERATION, Array, Section

SandboxKind: TypeAlias = Literal["none", "bubblewrap", "podman", "docker", "kubernetes"]

HONOURED: dict[str, tuple[SandboxKind, ...]] = {
    "image": ("podman", "docker", "kubernetes"),
    "network": ("bubblewrap", "podman", "docker", "kubernetes"),
    "workdir": ("bubblewrap", "podman", "docker", "kubernetes"),
    "mount": ("bubblewrap", "podman", "docker"),
    "user": ("bubblewrap", "podman", "docker", "kubernetes"),
    "pids": ("none", "bubblewrap", "podman", "docker"),
    "kubernetes": ("kubernetes",),
}
"""The kinds that can do what a key says. A key that is not here works with all of them."""


class SandboxSection(Section):
    """A place of its own for each rollout, where commands run and files lie. Started when a tool first needs it."""

    kind: SandboxKind = "bubblewrap"
    """What holds it: `none` (nothing: local processes in a temporary folder), `bubblewrap`, `podman`, `docker`,
    `kubernetes`. Default: `bubblewrap`, which needs no daemon and costs milliseconds a command."""
    image: str | None = None
    """The image of a container. Required by the kinds that have one."""
    network: bool = False
    """Whether commands reach the network. Default: no, since whatever they send is gone."""
    memory: Bytes | None = None
    """What all its processes may hold together. Default: 2GiB, where something can hold a whole sandbox to it."""
    cpus: Annotated[float, Field(gt=0)] | None = None
    """How many processors it may use at a time. Default: as many as there are."""
    pids: Annotated[int, Field(ge=2)] | None = None
    """How many processes and threads at once. Default: 256, where something can hold a whole sandbox to it."""
    time: Seconds = 60.0
    """How long one command may take, where the tool that runs it does not say. Default 60s."""
    env: dict[str, Header] = Field(default_factory=dict)
    """Variables of its commands, each a string or `{ env = "NAME" }`. Nothing else of our own environment is seen."""
    workdir: Annotated[str, Field(pattern=r"^/[^\u0000]+$")] = "/workspace"
    """The folder commands start in, and where relative paths count from."""
    user: str | None = None
    """Who commands run as inside, `UID` or `UID:GID`. Default: 1000 with `bubblewrap`, else what the image says."""
    mount: dict[str, str] = Field(default_factory=dict)
    """Folders and files of this machine that are seen inside: `{ "data" = "/data:ro" }`, with `:rw` to be written."""
    copy_in: Annotated[dict[str, str], Field(alias="copy")] = Field(default_factory=dict)
    """What each sandbox gets a copy of its own of: `{ "repos/{{ row.repo }}" = "." }`, a path here, which may be a
    Jinja template over `row`, to a path inside. The contents of a folder go into the folder named. Nothing it does
    to them changes yours."""
    setup: Array[str] = ()
    """Shell commands run once in each, after the copies. One that fails fails the rollout."""
    setup_time: Annotated[Seconds, OPERATION] = 300.0
    """How long each of them may take. Default 5m."""
    scope: Literal["rollout", "run"] = "rollout"
    """`rollout`: a fresh one for each; `run`: one for all, whose rollouts see what others left. Default: `rollout`."""
    most: Annotated[Annotated[int, Field(ge=1)] | None, OPERATION, Field(alias="max")] = None
    """How many may be alive at once; whoever comes later waits, which counts as its own time. Default: no limit."""
    warm: Annotated[Annotated[int, Field(ge=0)], OPERATION] = 0
    """How many are kept started ahead. Default 0: a local one starts at once."""
    kubernetes: KubernetesSection = KubernetesSection.model_construct()
    """Where and how pods are made."""
