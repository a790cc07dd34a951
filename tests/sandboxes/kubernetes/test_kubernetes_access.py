"""Who we are to a cluster: kubeconfigs, tokens that run out, programs that give them, certificates, a pod's account."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api
from runner.sandboxes.kubernetes.connection import Connection
from runner.sandboxes.kubernetes.credentials import Credentials
from runner.sandboxes.kubernetes.kubeconfig import Access, Plugin, find_access, read_kubeconfig
from tests.sandboxes.kubernetes.api_server.server import serving

TOKEN = "s3cret"  # noqa: S105


def write(path: Path, **content: Any) -> Path:
    import yaml

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **content}))
    return path


def one(server: str = "https://one:6443", user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "rl"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def test_files_are_merged(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "ca.pem").write_bytes(b"CA")
    cluster = {"server": "https://c:6443/", "certificate-authority": "ca.pem", "tls-server-name": "n"}
    cluster["proxy-url"] = "http://p"
    first = write(tmp_path / "a" / "one", contexts=[{"name": "x", "context": {"cluster": "c", "user": "u"}}])
    second = write(
        tmp_path / "b" / "two",
        **{"current-context": "main"},
        contexts=[
            {"name": "x", "context": {"cluster": "other"}},
            {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "rl"}},
        ],
        clusters=[{"name": "c", "cluster": cluster}],
        users=[{"name": "u", "user": {"token": TOKEN, "tokenFile": "t", "client-key-data": "Sw=="}}],
    )
    env = {"KUBECONFIG": f"{first}:{tmp_path / 'none'}:{second}"}
    access = find_access(env=env, home=tmp_path)
    assert (access.server, access.namespace, access.ca, access.key) == ("https://c:6443", "rl", b"CA", b"K")
    assert (access.tls_name, access.proxy, access.insecure) == ("n", "http://p", False)
    assert access.token is None and access.token_file == tmp_path / "b" / "t"
    assert find_access(context="x", env=env, home=tmp_path).namespace == "default"
    write(tmp_path / ".kube" / "config", **one("https://home"))
    assert find_access(env={}, home=tmp_path).server == "https://home"
    assert find_access(str(second), env=env, home=tmp_path).server == "https://c:6443"
    assert TOKEN not in repr(Access("s", token=TOKEN))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**one(), "current-context": "mian"}, "no context is called `mian`; there are `main`"),
        ({**one(), "current-context": ""}, "no current context; name one: `main`"),
        ({**one(), "clusters": []}, "names the cluster `c`, and there is none"),
        ({**one(), "users": [{"name": "v", "user": {}}]}, "names the user `u`, and there is none; there are `v`"),
        (one("c:6443"), "has no `server` address"),
        (one(**{"proxy-url": "socks5://p"}), "only http and https"),
        (one(**{"certificate-authority": "no.pem"}), "`certificate-authority`: .*no.pem: No such file"),
        (one(**{"certificate-authority-data": "a"}), "is no base64"),
        (one(user={"exec": {"args": []}}), "has no `command`"),
        (one(user={"exec": {"command": "x", "interactiveMode": "Always"}}), "wants a terminal"),
        (one(user={"auth-provider": {"name": "gcp"}}), "gone from Kubernetes since 1.26"),
    ],
)
def test_what_is_wrong_in_a_kubeconfig(content: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=words) as caught:
        read_kubeconfig([write(tmp_path / "config", **content)])
    assert caught.value.kind == "sandbox_unavailable"


def test_no_kubeconfig(tmp_path: Path) -> None:
    for text, words in (("[1]", "is no kubeconfig"), ("a: [", "is no YAML")):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(SandboxError, match=words):
            read_kubeconfig([tmp_path / "bad"])
    with pytest.raises(SandboxError, match="No such file"):
        find_access(env={"KUBECONFIG": str(tmp_path / "none")})
    with pytest.raises(SandboxError, match="there is no KUBECONFIG"):
        find_access(env={}, home=tmp_path, account=tmp_path)


def test_the_account_of_a_pod(tmp_path: Path) -> None:
    for name, text in (("token", "t1\n"), ("namespace", "team"), ("ca.crt", "CA")):
        (tmp_path / name).write_text(text)
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = find_access(env=env, home=tmp_path, account=tmp_path)
    assert (access.server, access.namespace, access.ca) == ("https://[fd00::1]:443", "team", b"CA")

    async def main() -> None:
        now = [0.0]
        credentials = Credentials(access, clock=lambda: now[0])
        assert (await credentials.proof()).authorization == "Bearer t1"
        (tmp_path / "token").write_text("t2")
        assert (await credentials.proof()).authorization == "Bearer t1"
        now[0] = 61.0
        assert (await credentials.proof()).authorization == "Bearer t2"

    asyncio.run(main())


PLUGIN = """#!/bin/sh
echo x >> {folder}/asked
case "$KUBERNETES_EXEC_INFO" in *'"interactive": false'*) ;; *) exit 9;; esac
n=$(wc -l < {folder}/asked | tr -d ' ')
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status":'
echo '{{"token": "'$PREFIX$n'", "expirationTimestamp": "'$UNTIL'"}}}}'
"""


def test_a_program_that_gives_tokens(tmp_path: Path) -> None:
    """Asked once, again when its token ends, and again when the server refuses it; what it does wrong is said."""
    program = tmp_path / "give"
    program.write_text(PLUGIN.format(folder=tmp_path))
    program.chmod(0o755)
    env = [{"name": "PREFIX", "value": "t"}, {"name": "UNTIL", "value": "2030-01-01T00:00:00Z"}]
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./give", "env": env}}

    async def main() -> None:
        async with serving() as (cluster, url):
            access = read_kubeconfig([write(tmp_path / "config", **one(url, user))])
            now = [0.0]
            connection = Connection(access, Credentials(access, clock=lambda: now[0]))
            api = Api(connection, "rl")
            cluster.token = "t1"  # noqa: S105
            for _ in range(3):
                await api.call("GET", api.pods())
            cluster.token = "t2"  # noqa: S105
            await api.call("GET", api.pods())
            now[0] = 1893456000.0  # the end of its time
            cluster.token = "t3"  # noqa: S105
            await api.call("GET", api.pods())
            assert (tmp_path / "asked").read_text().count("x") == 3
            await connection.aclose()
        for plugin, words in (
            (Plugin("no-such-program", hint="install it"), r"cannot be started: No such file.*\(install it\)"),
            (Plugin("sh", ["-c", "echo why >&2; exit 3"]), "exited with 3: why"),
            (Plugin("echo", ["{}"]), "no ExecCredential"),
            (Plugin("echo", ['{"status": {}}']), "neither a token nor a certificate"),
        ):
            with pytest.raises(SandboxError, match=words):
                await Credentials(replace(access, plugin=plugin)).proof()

    asyncio.run(main())


def certificates(folder: Path) -> None:
    """An authority, and a server and a client that it vouches for."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    new = ["req", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    openssl(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    for name in ("server", "client"):
        (folder / "ext").write_text("subjectAltName=DNS:cluster.test")
        openssl(*new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.pem", "-days", "2", "-extfile", "ext")  # fmt: skip


def test_certificates_both_ways(tmp_path: Path) -> None:
    try:
        certificates(tmp_path)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"openssl makes no certificates here: {error}")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.pem")
    tls.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    tls.verify_mode = ssl.CERT_REQUIRED

    def data(name: str) -> str:
        return base64.b64encode((tmp_path / name).read_bytes()).decode()

    inline = {"client-certificate-data": data("client.pem"), "client-key-data": data("client.key")}
    named = {"client-certificate": "client.pem", "client-key": str(tmp_path / "client.key")}
    ca = {"certificate-authority": "ca.pem", "tls-server-name": "cluster.test"}

    async def asked(url: str, user: dict[str, Any], **cluster: Any) -> str:
        access = read_kubeconfig([write(tmp_path / "config", **one(url, user, **cluster))])
        connection = Connection(access)

        async def pause(seconds: float) -> None:
            """At once."""

        try:
            listed = await Api(connection, "rl", pause=pause).call("GET", "/api/v1/namespaces/rl/pods")
            return str(listed["kind"])
        except SandboxError as error:
            return str(error)
        finally:
            await connection.aclose()

    async def main() -> None:
        async with serving(tls) as (_, url):
            assert await asked(url, inline, **ca) == await asked(url, named, **ca) == "PodList"
            assert await asked(url, inline, **{"insecure-skip-tls-verify": True}) == "PodList"
            assert "certificate" in (await asked(url, inline)).lower()
            assert "PodList" not in await asked(url, {}, **ca)
            assert "PodList" not in await asked(url, inline, **{**ca, "tls-server-name": "other.test"})
            broken = {**inline, "client-key-data": data("server.key")}
            assert "cannot be used" in await asked(url, broken, **ca)

    asyncio.run(main())


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, json; import runner.sandboxes.kubernetes.maker; "
        "print(json.dumps([name for name in ('aiohttp', 'yaml') if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(ran.stdout) == []
