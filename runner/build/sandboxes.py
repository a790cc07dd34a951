"""`[sandboxes]` to parts that a plan opens as pools: a maker for each section, its copies compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from runner.build.environment import values_of
from runner.build.site import Site
from runner.build.templates import compile_key
from runner.config.sandboxes import SandboxSection
from runner.diag.diagnostic import Path as KeyPath
from runner.records.quick import quick
from runner.sandboxes.asked import Limits, Mount
from runner.sandboxes.sandbox import SandboxMaker
from runner.templates.template import Template, TemplateError

if TYPE_CHECKING:
    from runner.sandboxes.pool import SandboxPool

MakeMaker: TypeAlias = Callable[[], SandboxMaker]
Source: TypeAlias = Callable[[Mapping[str, Any]], Path]
"""The path on this machine for a row. Raises `ValueError` for a row that has none."""

_NAMES = {"rollout": ("row",), "run": ()}


@quick
class SandboxPart:
    """A section of the plan: `make` gives its maker, which is started when the plan opens."""

    name: str
    make: MakeMaker
    most: int | None
    warm: int
    scope: Literal["rollout", "run"]
    copies: Sequence[tuple[Source, str]]
    setup: Sequence[str]
    setup_time: float

    def pool(self) -> SandboxPool:
        """A pool of its own for one opening of the plan."""
        from runner.sandboxes.pool import SandboxPool  # asyncio and tarfile: 40 ms that only a run pays
        from runner.sandboxes.preparation import Copy, Preparation

        copies = [Copy(source, target) for source, target in self.copies]
        prepare = Preparation(copies, self.setup, self.setup_time)
        return SandboxPool(self.name, self.make(), most=self.most, warm=self.warm, scope=self.scope, prepare=prepare)


def build_sandboxes(site: Site) -> list[SandboxPart]:
    """Every section of the file; one that cannot be built is a finding and left out."""
    parts = [_build(site, name, section) for name, section in site.config.sandboxes.items()]
    return [part for part in parts if part is not None]


def _build(site: Site, name: str, section: SandboxSection) -> SandboxPart | None:
    path: KeyPath = ("sandboxes", name)
    copies = _copies(site, section, path)
    maker = _maker(site, section, path)
    if copies is None or maker is None:
        return None
    how = section.most, section.warm, section.scope
    return SandboxPart(name, maker, *how, copies, section.setup, section.setup_time)


def _maker(site: Site, section: SandboxSection, path: KeyPath) -> MakeMaker | None:
    """What makes the kind's maker. Each kind is imported when it is asked for."""
    limits = Limits(section.memory, section.cpus, section.pids)
    if section.kind in ("none", "bubblewrap"):
        return _local(site, section, limits, path)
    if section.kind in ("podman", "docker"):
        return _container(site, section, limits, path)
    return _kubernetes(site, section, limits, path)


def _local(site: Site, section: SandboxSection, limits: Limits, path: KeyPath) -> MakeMaker | None:
    from runner.sandboxes.local_maker import LocalOptions

    user, _, group = (section.user or "1000").partition(":")
    mounts = mounts_of(site, section, path)

    def make() -> SandboxMaker:
        options = LocalOptions(
            limits=limits,
            time=section.time,
            env=values_of(section.env),
            network=section.network,
            workdir=section.workdir,
            mounts=mounts,
            user=int(user),
            group=int(group or user),
        )
        if section.kind == "none":
            from runner.sandboxes.none import NoneMaker

            return NoneMaker(options)
        from runner.sandboxes.bubblewrap import BubblewrapMaker

        return BubblewrapMaker(options)

    return make


def _container(site: Site, section: SandboxSection, limits: Limits, path: KeyPath) -> MakeMaker | None:
    mounts = mounts_of(site, section, path)

    def make() -> SandboxMaker:
        from runner.sandboxes.container import ContainerOptions
        from runner.sandboxes.containers import ContainerMaker

        options = ContainerOptions(
            program=section.kind,
            image=section.image or "",
            limits=limits,
            time=section.time,
            env=values_of(section.env),
            network=section.network,
            workdir=section.workdir,
            mounts=mounts,
            user=section.user,
        )
        return ContainerMaker(options)

    return make


def _kubernetes(site: Site, section: SandboxSection, limits: Limits, path: KeyPath) -> MakeMaker | None:
    asked = section.kubernetes
    named = asked.kubeconfig
    kubeconfig = None if named is None else str(host_path(site, (*path, "kubernetes", "kubeconfig"), named))

    def make() -> SandboxMaker:
        from runner.sandboxes.kubernetes.maker import KubernetesMaker
        from runner.sandboxes.kubernetes.pods import PodOptions

        options = PodOptions(
            image=section.image or "",
            section=str(path[1]),
            limits=limits,
            time=section.time,
            env=values_of(section.env),
            network=section.network,
            workdir=section.workdir,
            user=section.user,
            kubeconfig=kubeconfig,
            context=asked.context,
            namespace=asked.namespace,
            service_account=asked.service_account,
            runtime_class=asked.runtime_class,
            image_pull_policy=asked.image_pull_policy,
            image_pull_secrets=asked.image_pull_secrets,
            node_selector=asked.node_selector,
            tolerations=[each.model_dump(exclude_none=True) for each in asked.tolerations],
            labels=asked.labels,
            annotations=asked.annotations,
            request_memory=asked.request_memory,
            request_cpus=asked.request_cpus,
            disk=asked.disk,
            start_time=asked.start_time,
            lifetime=asked.lifetime,
            network_policy=asked.network_policy,
        )
        return KubernetesMaker(options)

    return make


def mounts_of(site: Site, section: SandboxSection, path: KeyPath) -> dict[str, Mount]:
    """By the absolute path inside, what of this machine is seen there."""
    mounts = {}
    for host, target in section.mount.items():
        inner, _, mode = target.partition(":")
        inside = str(PurePosixPath(section.workdir) / inner)
        mounts[inside] = Mount(host_path(site, (*path, "mount", host), host), writable=mode == "rw")
    return mounts


def host_path(site: Site, path: KeyPath, written: str) -> Path:
    """A path of this machine as written in the file, from the folder of the file that says it."""
    return (folder_of(site, path) / Path(written).expanduser()).resolve()


def folder_of(site: Site, path: KeyPath) -> Path:
    """Where a relative path at `path` starts: the folder of the file that says it."""
    return site.config.folder if site.config.is_made else site.origins.folder(path)


def _copies(site: Site, section: SandboxSection, path: KeyPath) -> list[tuple[Source, str]] | None:
    made = []
    for host, target in section.copy_in.items():
        key = (*path, "copy", host)
        template = compile_key(site, host, key, _NAMES[section.scope])
        if template is None:
            return None
        made.append((_source(folder_of(site, key), template), target))
    return made


def _source(folder: Path, template: Template) -> Source:
    """The path that a template makes for a row. What the row says may name what lies below, never lead out of it."""
    fixed = re.split(r"\{[{%#]", template.text, maxsplit=1)[0]
    base = folder / Path(fixed.rpartition("/")[0] + "/" if "/" in fixed else "").expanduser()
    base, moving = base.resolve(), bool(template.variables)

    def source(row: Mapping[str, Any]) -> Path:
        try:
            text = template.render(row=row)
        except TemplateError as error:
            raise ValueError(f"what to copy cannot be told: {error}") from error
        found = (folder / Path(text).expanduser()).resolve()
        if moving and not found.is_relative_to(base):
            raise ValueError(f"`{text}` leads out of `{base}`, and what a row says may not do that")
        return found

    return source
