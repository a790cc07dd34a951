"""`Credentials`: the proof of who we are, fresh when it is needed: tokens from files and programs run out.

A file is read again each minute, as the token of a pod is written anew by its node. What a program gave is kept until
shortly before it says that it ends, or the server has refused it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.kubeconfig import Access, Plugin

_FILE_SECONDS = 60.0
_EARLY = 30.0
"""Seconds before its end that a token is not used any more."""
_PLUGIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What goes with a request: the value of its Authorization header, or none; a client certificate and its key."""

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    until: float = float("inf")
    """When it has to be asked for anew, by the clock."""


class Credentials:
    """The proof of an `Access`. `clock` gives seconds since 1970."""

    def __init__(self, access: Access, *, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._clock = clock
        self._proof: Proof | None = None
        self._lock = asyncio.Lock()

    @property
    def can_change(self) -> bool:
        """Whether asking anew may give something else."""
        return self._access.plugin is not None or self._access.token_file is not None

    async def proof(self) -> Proof:
        """Raises `SandboxError` (kind "sandbox_unavailable") where a file or a program gives none."""
        async with self._lock:
            if self._proof is None or self._proof.until <= self._clock():
                self._proof = await self._ask()
            return self._proof

    def refused(self, proof: Proof) -> None:
        """The server does not take `proof`: the next is asked for anew."""
        if self._proof is proof:
            self._proof = None

    async def _ask(self) -> Proof:
        access = self._access
        if access.plugin is not None:
            return await self._from_plugin(access.plugin)
        token, until = access.token, float("inf")
        if access.token_file is not None:
            try:
                token = (await asyncio.to_thread(access.token_file.read_text)).strip()
            except OSError as error:
                raise _none(f"the token {access.token_file} cannot be read: {error.strerror}") from error
            until = self._clock() + _FILE_SECONDS
        return Proof(_header(token, access.basic), access.certificate, access.key, until)

    async def _from_plugin(self, plugin: Plugin) -> Proof:
        said = await _run(plugin, _info(plugin, self._access))
        try:
            status = json.loads(said)["status"]
            token, certificate = status.get("token"), status.get("clientCertificateData")
            key, ends = status.get("clientKeyData"), status.get("expirationTimestamp")
            until = datetime.fromisoformat(ends).timestamp() - _EARLY if ends else float("inf")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _none(f"what `{plugin.command}` printed is no ExecCredential with a status") from error
        if not token and not (certificate and key):
            raise _none(f"`{plugin.command}` gave neither a token nor a certificate with its key")
        return Proof(
            _header(token, None),
            certificate.encode() if certificate else self._access.certificate,
            key.encode() if key else self._access.key,
            until,
        )


def _header(token: str | None, basic: tuple[str, str] | None) -> str | None:
    if token:
        return f"Bearer {token}"
    if basic is not None:
        return "Basic " + base64.b64encode(":".join(basic).encode()).decode()
    return None


def _info(plugin: Plugin, access: Access) -> str:
    """KUBERNETES_EXEC_INFO, as kubectl gives it."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.tells_cluster:
        ca = base64.b64encode(access.ca).decode() if access.ca is not None else None
        spec["cluster"] = {
            "server": access.server,
            **({"certificate-authority-data": ca} if ca else {}),
            **({"tls-server-name": access.tls_name} if access.tls_name else {}),
            **({"insecure-skip-tls-verify": True} if access.insecure else {}),
            **({"proxy-url": access.proxy} if access.proxy else {}),
        }
    return json.dumps({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec})


async def _run(plugin: Plugin, info: str) -> bytes:
    env: Mapping[str, str] = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": info}
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        child = await asyncio.create_subprocess_exec(
            plugin.command, *plugin.args, stdin=nothing, stdout=pipe, stderr=pipe, env=env
        )
    except OSError as error:
        hint = f" ({plugin.hint.strip()})" if plugin.hint else ""
        raise _none(f"the plugin `{plugin.command}` cannot be started: {error.strerror}{hint}") from error
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            out, err = await child.communicate()
    except TimeoutError:
        raise _none(f"the plugin `{plugin.command}` did not answer within {_PLUGIN_SECONDS:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        said = err.decode("utf-8", "replace").strip()[-300:]
        raise _none(f"the plugin `{plugin.command}` exited with {child.returncode}: {said}")
    return out


def _none(message: str) -> SandboxError:
    return SandboxError(f"no way to a cluster: {message}", kind="sandbox_unavailable")
