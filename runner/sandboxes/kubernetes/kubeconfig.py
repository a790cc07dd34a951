"""`Access`: where a cluster is and who we are to it, from the files of kubectl or from inside of a pod.

The rules are kubectl's: of several files in KUBECONFIG the first that names something wins, and a relative path starts
at the file that says it. Nothing is sent from here.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.records.failure import SandboxError

PLUGIN_VERSION = "client.authentication.k8s.io/v1"
IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True, slots=True)
class Plugin:
    """A program that gives credentials: `users[].user.exec` of a kubeconfig."""

    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    api_version: str = PLUGIN_VERSION
    hint: str = ""
    tells_cluster: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """A server and how we prove who we are. Certificates and keys are PEM; at most one way of proof is used.

    `where` says for people what was read: a file and its context, or the pod's own account.
    """

    server: str
    namespace: str = "default"
    where: str = ""
    ca: bytes | None = None
    insecure: bool = False
    tls_name: str | None = None
    proxy: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    basic: tuple[str, str] | None = field(default=None, repr=False)
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    plugin: Plugin | None = None


def find_access(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    home: Path | None = None,
    account: Path = IN_CLUSTER,
) -> Access:
    """The file named, else KUBECONFIG, else ~/.kube/config, else the account of the pod we run in.

    Raises `SandboxError` (kind "sandbox_unavailable") when there is none, or it cannot be used.
    """
    env = os.environ if env is None else env
    if kubeconfig is not None:
        return read_kubeconfig([Path(kubeconfig).expanduser()], context)
    if env.get("KUBECONFIG"):
        named = [Path(part).expanduser() for part in env["KUBECONFIG"].split(os.pathsep) if part]
        return read_kubeconfig([path for path in named if path.exists()] or named[:1], context)
    usual = (home or Path.home()) / ".kube" / "config"
    if usual.exists():
        return read_kubeconfig([usual], context)
    if env.get("KUBERNETES_SERVICE_HOST") and (account / "token").exists():
        return _in_cluster(env, account)
    raise _unusable(
        "there is no KUBECONFIG, no ~/.kube/config, and this is no pod with an account: name a `kubeconfig`"
    )


def read_kubeconfig(paths: Sequence[Path], context: str | None = None) -> Access:
    """What the files say together about `context`, or about their current one. Raises `SandboxError`."""
    merged = _merged(paths)
    files = ", ".join(map(str, paths))
    name = context or merged["current-context"]
    if not name:
        raise _unusable(f"{files}: no current context; name one: {_names(merged['contexts'])}")
    if name not in merged["contexts"]:
        raise _unusable(f"{files}: no context is called `{name}`; there are {_names(merged['contexts'])}")
    chosen, _ = merged["contexts"][name]
    cluster, at = _named(merged, "clusters", chosen.get("cluster"), f"{files}: context `{name}`")
    user, beside = _named(merged, "users", chosen.get("user") or "", f"{files}: context `{name}`")
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("http://", "https://")):
        raise _unusable(f"{files}: the cluster of `{name}` has no `server` address")
    proxy = cluster.get("proxy-url") or None
    if proxy is not None and not str(proxy).startswith(("http://", "https://")):
        raise _unusable(f"{files}: a proxy of the kind `{proxy}` cannot be used here: only http and https ones")
    return Access(
        server=server.rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        where=f"context `{name}` of {files}",
        ca=_content(cluster, "certificate-authority", at),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        tls_name=cluster.get("tls-server-name") or None,
        proxy=proxy,
        **_proof(user, beside),
    )


def _proof(user: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    proof: dict[str, Any] = {
        "certificate": _content(user, "client-certificate", beside),
        "key": _content(user, "client-key", beside),
    }
    if user.get("tokenFile"):  # it wins over `token`, as everywhere
        return {**proof, "token_file": beside / Path(str(user["tokenFile"])).expanduser()}
    if user.get("token"):
        return {**proof, "token": str(user["token"])}
    if user.get("username"):
        return {**proof, "basic": (str(user["username"]), str(user.get("password", "")))}
    if isinstance(user.get("exec"), dict):
        return {**proof, "plugin": _plugin(user["exec"], beside)}
    if user.get("auth-provider"):
        raise _unusable("`auth-provider` is gone from Kubernetes since 1.26: use an `exec` plugin")
    return proof


def _plugin(table: Mapping[str, Any], beside: Path) -> Plugin:
    command = str(table.get("command") or "")
    if not command:
        raise _unusable("the `exec` plugin of the user has no `command`")
    if table.get("interactiveMode") == "Always":
        raise _unusable(f"the plugin `{command}` wants a terminal (`interactiveMode: Always`), and there is none")
    if "/" in command:
        command = str(beside / command)
    env = {str(each["name"]): str(each["value"]) for each in table.get("env") or ()}
    return Plugin(
        command,
        [str(word) for word in table.get("args") or ()],
        env,
        str(table.get("apiVersion") or PLUGIN_VERSION),
        str(table.get("installHint") or ""),
        bool(table.get("provideClusterInfo")),
    )


def _merged(paths: Sequence[Path]) -> dict[str, Any]:
    """By list and name, the first entry and the folder of its file; and the first current context."""
    merged: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for path in paths:
        read = _read(path)
        merged["current-context"] = merged["current-context"] or read.get("current-context") or ""
        for plural, singular in _LISTS.items():
            for entry in read.get(plural) or ():
                if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                    content = entry.get(singular)
                    content = content if isinstance(content, dict) else {}
                    merged[plural].setdefault(entry["name"], (content, path.resolve().parent))
    return merged


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        read = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise _unusable(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise _unusable(f"{path} is no YAML: {said}") from error
    if not isinstance(read, dict):
        raise _unusable(f"{path} is no kubeconfig")
    return read


def _named(merged: Mapping[str, Any], plural: str, name: Any, who: str) -> tuple[dict[str, Any], Path]:
    if plural == "users" and not name:
        return {}, Path()
    if name not in merged[plural]:
        raise _unusable(f"{who} names the {_LISTS[plural]} `{name}`, and there is none; there are "
                        f"{_names(merged[plural])}")  # fmt: skip
    found: tuple[dict[str, Any], Path] = merged[plural][name]
    return found


def _content(table: Mapping[str, Any], key: str, beside: Path) -> bytes | None:
    """`KEY-data` decoded, else the file that `KEY` names."""
    if table.get(f"{key}-data"):
        try:
            return base64.b64decode(table[f"{key}-data"], validate=False)
        except (binascii.Error, TypeError) as error:
            raise _unusable(f"`{key}-data` is no base64: {error}") from error
    if not table.get(key):
        return None
    path = beside / Path(str(table[key])).expanduser()
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(f"`{key}`: {path}: {error.strerror}") from error


def _in_cluster(env: Mapping[str, str], account: Path) -> Access:
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = account / "namespace"
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        where=f"the account of this pod ({account})",
        ca=(account / "ca.crt").read_bytes() if (account / "ca.crt").exists() else None,
        token_file=account / "token",
    )


def _names(entries: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in entries) or "none"


def _unusable(message: str) -> SandboxError:
    return SandboxError(f"no way to a cluster: {message}", kind="sandbox_unavailable")
