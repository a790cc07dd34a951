"""`podman` and `docker`, by their command lines: a container that lives as long as its sandbox, and `exec` for each
command.

A container carries the key of its owner as a label, so that the next run finds what one that was killed has left. A
command is found inside by a mark in its environment: killing the client would leave it running.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import PurePosixPath

from runner.records.failure import SandboxError
from runner.sandboxes.asked import DEFAULT_MEMORY, DEFAULT_PIDS
from runner.sandboxes.client import Client, said_by, variables
from runner.sandboxes.container import ContainerOptions, ContainerSandbox
from runner.sandboxes.owner import is_dead, owner_key
from runner.sandboxes.sandbox import Command

LABEL = "osmosis-run.owner"

_LIVE = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'


class ContainerMaker:
    """Makes containers of one image."""

    def __init__(self, options: ContainerOptions) -> None:
        self.options = options
        self._client = Client(options.program)
        self._alive: set[ContainerSandbox] = set()

    @property
    def kind(self) -> str:
        return PurePosixPath(self.options.program).name

    async def probe(self) -> Sequence[str]:
        program, image = self.options.program, self.options.image
        if shutil.which(program) is None:
            raise SandboxError(f"`{program}` is not installed", kind="sandbox_unavailable")
        await self._reap()
        found = await self._client.ask(["image", "inspect", image])
        said = []
        if found.code != 0:
            pulled = await self._client.ask(["pull", "--quiet", image], seconds=600.0)
            if pulled.code != 0:
                text = said_by(pulled) or said_by(found)
                raise SandboxError(
                    f"there is no image `{image}`, and no way to get it: {text}", kind="sandbox_unavailable"
                )
            said.append(f"the image `{image}` was not here and has been pulled")
        trial = await self.make("probe")
        try:
            ran = await trial.exec(Command(["/bin/sh", "-c", "exit 7"], timeout=60.0))
        finally:
            await trial.stop()
        if ran.code != 7:
            raise SandboxError(f"`{program}` runs no commands here: {said_by(ran)}", kind="sandbox_unavailable")
        return said

    async def make(self, name: str) -> ContainerSandbox:
        unique = f"{re.sub(r'[^A-Za-z0-9_.]+', '_', name)[:40]}-{secrets.token_hex(4)}"
        container = f"osmosis-run-{owner_key()}-{unique}"
        words, env = self._words(container)
        sandbox = ContainerSandbox(container, self.options, self._client, self._alive.discard)
        self._alive.add(sandbox)
        try:
            ran = await self._client.ask(words, env=env, seconds=120.0)
        except BaseException:
            await asyncio.shield(sandbox.stop())  # it may be there already
            raise
        if ran.code != 0:
            await sandbox.stop()
            raise SandboxError(f"no container can be started: {said_by(ran)}", kind="sandbox_unavailable")
        await self._make_workdir(container)
        return sandbox

    async def _make_workdir(self, container: str) -> None:
        # The root of a container can be read-only to a root without capabilities: this one command has them.
        script = 'mkdir -p -- "$1" && { [ -z "$2" ] || chmod 777 "$1"; }'
        user = self.options.user or ""
        words = ["exec", "--privileged", "-u", "0", container, "/bin/sh", "-c", script, "sh"]
        ran = await self._client.ask([*words, self.options.workdir, user])
        if ran.code != 0:
            raise SandboxError(f"the workdir cannot be made: {said_by(ran)}", kind="sandbox_unavailable")

    async def aclose(self) -> None:
        await asyncio.gather(*(sandbox.stop() for sandbox in list(self._alive)))

    def _words(self, container: str) -> tuple[list[str], dict[str, str]]:
        options, limits = self.options, self.options.limits
        memory = str(DEFAULT_MEMORY if limits.memory is None else limits.memory)
        pids = str(DEFAULT_PIDS if limits.pids is None else limits.pids)
        words = ["run", "-d", "--name", container, "--label", f"{LABEL}={owner_key()}", "--hostname", "sandbox"]
        words += ["--stop-timeout", "0"]
        words += ["--memory", memory, "--memory-swap", memory, "--pids-limit", pids]
        words += ["--cap-drop", "all", "--security-opt", "no-new-privileges"]
        words += ["--cpus", f"{limits.cpus:g}"] if limits.cpus is not None else []
        words += [] if options.network else ["--network", "none"]
        words += ["--user", options.user] if options.user is not None else []
        for path, mount in options.mounts.items():
            words += ["-v", f"{mount.host}:{path}:{'rw' if mount.writable else 'ro'}"]
        given, env = variables(options.env)
        words += [*given, *options.more, "-w", "/", "--entrypoint", "/bin/sh", options.image]
        return [*words, "-c", _LIVE], env

    async def _reap(self) -> None:
        listed = await self._client.ask(["ps", "-aq", "--filter", f"label={LABEL}"])
        if listed.code != 0:
            raise SandboxError(
                f"`{self.options.program}` does not answer: {said_by(listed)}", kind="sandbox_unavailable"
            )
        for container in listed.stdout.decode().split():
            form = '{{index .Config.Labels "' + LABEL + '"}}'
            label = await self._client.ask(["inspect", "--format", form, container])
            if label.code == 0 and is_dead(label.stdout.decode().strip()):
                await self._client.ask(["rm", "-f", container])
