"""The stand-in does what a real cluster was recorded doing (1.20, one node), case by case, and real clients work on it.

Asked with a plain WebSocket, not with our client: what that one believes is not taken from itself.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import aiohttp
import pytest

from tests.sandboxes.kubernetes.api_server.cluster import Cluster, Pod
from tests.sandboxes.kubernetes.api_server.server import serving

MANIFEST = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1000"]}]},
}


@dataclass
class Raw:
    """A running pod `p`, and plain sockets to its commands."""

    cluster: Cluster
    url: str
    session: aiohttp.ClientSession
    pod: Pod
    sockets: list[Any] = field(default_factory=list)

    async def open(self, *command: str, protocols: tuple[str, ...] = ("v5", "v4"), **more: str) -> Any:
        query = [("command", word) for word in command] + list({"stdout": "true", "stderr": "1", **more}.items())
        offered = [f"{each}.channel.k8s.io" for each in protocols]
        url = f"{self.url}/api/v1/namespaces/default/pods/{more.pop('pod', 'p')}/exec"
        socket = await self.session.ws_connect(url, params=query, protocols=offered, max_msg_size=1 << 26)
        self.sockets.append(socket)
        return socket

    async def whole(self, *command: str, **more: Any) -> dict[int, bytes]:
        """What came on each channel until the server closed."""
        return await heard(await self.open(*command, **more))


async def heard(socket: Any) -> dict[int, bytes]:
    said: dict[int, bytes] = {}
    async for message in socket:
        said[message.data[0]] = said.get(message.data[0], b"") + message.data[1:]
    return said


@asynccontextmanager
async def running(*, v4: bool = False) -> AsyncIterator[Raw]:
    async with serving() as (cluster, url), aiohttp.ClientSession() as session:
        cluster.faults.v4_only = v4
        cluster.create("default", json.loads(json.dumps(MANIFEST)))
        pod = cluster.find("default", "p")
        while pod.object["status"].get("conditions", [{}])[-1] != {"type": "Ready", "status": "True"}:
            await asyncio.sleep(0.01)
        raw = Raw(cluster, url, session, pod)
        yield raw
        for socket in raw.sockets:
            socket._response.close()


def test_commands_as_recorded() -> None:
    async def main() -> None:
        async with running(v4=True) as raw:
            socket = await raw.open("sh", "-c", "echo out; echo err >&2; exit 7")
            assert socket.protocol == "v4.channel.k8s.io"
            said = await heard(socket)
            assert (said[1], said[2], socket.close_code) == (b"out\n", b"err\n", 1000)
            status = json.loads(said[3])
            assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
            assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
            assert json.loads((await raw.whole("true"))[3]) == {"metadata": {}, "status": "Success"}
            assert (
                json.loads((await raw.whole("sh", "-c", "kill -9 $$"))[3])["details"]["causes"][0]["message"] == "137"
            )
            status = json.loads((await raw.whole("no-such-program"))[3])
            assert (status["reason"], status["code"]) == ("InternalError", 500)
            assert not [cause for cause in status["details"]["causes"] if cause.get("reason") == "ExitCode"]
            assert len((await raw.whole("head", "-c", "5000000", "/dev/zero"))[1]) == 5_000_000

    asyncio.run(main())


def test_input_as_recorded() -> None:
    async def main() -> None:
        async with running(v4=True) as raw:
            socket = await raw.open("cat", stdin="true")
            await socket.send_bytes(b"\0hello")
            await socket.send_bytes(b"\xff\0")  # version 4 knows no such thing: it waits for ever
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(heard(socket), 0.5)
            socket = await raw.open("head", "-c", "5", stdin="true")
            await socket.send_bytes(b"\0hello and more")
            assert (await heard(socket))[1] == b"hello"
            raw.cluster.faults.v4_only = False
            socket = await raw.open("cat", stdin="true")
            assert socket.protocol == "v5.channel.k8s.io"
            await socket.send_bytes(b"\0hello")
            await socket.send_bytes(b"\xff\0")
            assert (await heard(socket))[1] == b"hello"
            for size, passes in ((31 << 20, True), (33 << 20, False)):
                socket = await raw.open("wc", "-c", stdin="true")
                try:
                    await socket.send_bytes(bytes(1 + size))
                    await socket.send_bytes(b"\xff\0")
                    said = await heard(socket)
                except ConnectionError:
                    said = {}
                assert (said.get(1) == f"{size}\n".encode()) is passes and (3 in said) is passes

    asyncio.run(main())


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_goes_away_as_recorded(how: str) -> None:
    """The process lives on, with its input ended."""

    async def main() -> None:
        async with running(v4=True) as raw:
            assert raw.pod.container is not None
            folder = raw.pod.container.workdir
            text = "cat > in; n=0; while [ $n -lt 8 ]; do echo x >> on; sleep 0.02; n=$((n+1)); done; echo end >> on"
            socket = await raw.open("sh", "-c", f"cd /workspace; {text}", stdin="true")
            await socket.send_bytes(b"\0hello")
            await asyncio.sleep(0.2)
            if how == "close":
                await socket.close()
            else:
                plug = socket.get_extra_info("socket")
                plug.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                socket._response.close()
            await asyncio.sleep(0.5)
            assert (folder / "in").read_bytes() == b"hello" and (folder / "on").read_bytes().endswith(b"end\n")

    asyncio.run(main())


def test_refusals_as_recorded() -> None:
    async def main() -> None:
        async with running(v4=True) as raw, aiohttp.ClientSession() as plain:
            base = f"{raw.url}/api/v1/namespaces/default/pods"
            for path, protocol, code, reason in (
                ("p/exec?command=true&container=nope&stdout=1", "v4", 400, "BadRequest"),
                ("q/exec?command=true&stdout=1", "v4", 404, "NotFound"),
                ("p/exec?command=true&stdout=1", "v5", 403, "Forbidden"),
            ):
                headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
                headers |= {
                    "Sec-WebSocket-Key": "A" * 22 + "==",
                    "Sec-WebSocket-Protocol": f"{protocol}.channel.k8s.io",
                }
                async with plain.get(f"{base}/{path}", headers=headers) as response:
                    status = await response.json()
                    assert (response.status, status["kind"], status["reason"]) == (code, "Status", reason)

    asyncio.run(main())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_works_on_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as (cluster, url):

            async def kubectl(*words: str, given: bytes | None = None) -> tuple[int, bytes, bytes]:
                pipe = asyncio.subprocess.PIPE
                env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
                child = await asyncio.create_subprocess_exec(
                    "kubectl", "--server", url, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=env
                )
                out, err = await asyncio.wait_for(child.communicate(given), 60)
                return child.returncode or 0, out, err

            (tmp_path / "pod.json").write_text(json.dumps(MANIFEST))
            code, out, err = await kubectl("create", "--validate=false", "-f", str(tmp_path / "pod.json"))
            assert (code, out) == (0, b"pod/p created\n"), err
            assert (await kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=20s"))[0] == 0
            code, out, err = await kubectl("exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
            assert (code, out, err.splitlines()[0]) == (7, b"out\n", b"err")
            assert (await kubectl("exec", "-i", "p", "--", "cat", given=b"given\n"))[:2] == (0, b"given\n")
            code, out, err = await kubectl("exec", "p", "--", "no-such-program")
            assert code != 0 and b"no-such-program" in err
            data = bytes(range(256)) * 12_000
            (tmp_path / "big").write_bytes(data)
            assert (await kubectl("cp", str(tmp_path / "big"), "p:/workspace/big"))[0] == 0
            assert (await kubectl("cp", "p:/workspace/big", str(tmp_path / "back")))[0] == 0
            assert (tmp_path / "back").read_bytes() == data
            assert (await kubectl("get", "pods", "-l", "app=x", "-o", "name"))[1] == b"pod/p\n"
            assert (await kubectl("delete", "pod", "p", "--timeout=20s"))[0] == 0
            assert not cluster.pods

    asyncio.run(main())


CLIENT = """
import sys
import kubernetes
from kubernetes.stream import stream
configuration = kubernetes.client.Configuration(host=sys.argv[1])
core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
def opened(pod, *command, **more):
    return stream(core.connect_get_namespaced_pod_exec, pod, "default", command=list(command), stdout=True, stderr=True,
                  _preload_content=False, **more)
ran = opened("p", "sh", "-c", "echo out; echo err >&2; exit 7")
ran.run_forever(timeout=10)
print(ran.read_stdout().strip(), ran.read_stderr().strip(), ran.returncode)
ran = opened("p", "head", "-c", "200000", "/dev/zero")
ran.run_forever(timeout=10)
print(len(ran.read_stdout()), ran.returncode)
ran = opened("p", "cat", stdin=True)
ran.write_stdin("hello")
ran.close_channel(0)
ran.run_forever(timeout=10)
print(ran.read_stdout(), ran.returncode)
try:
    opened("q", "true")
except kubernetes.client.exceptions.ApiException as error:
    print(type(error).__name__, "404" in str(error))
print([pod.metadata.name for pod in core.list_namespaced_pod("default", label_selector="app=x").items])
"""


def test_the_python_client_works_on_it() -> None:
    pytest.importorskip("kubernetes", reason="the Python client of Kubernetes is not installed")

    async def main() -> None:
        async with running() as raw:
            pipe = asyncio.subprocess.PIPE
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CLIENT, raw.url, stdout=pipe, stderr=pipe, env={"PATH": "/usr/bin:/bin"}
            )
            out, err = await asyncio.wait_for(child.communicate(), 60)
            lines = out.decode().splitlines()
            assert lines == ["out err 7", "200000 0", "hello 0", "ApiException True", "['p']"], err.decode()[-2000:]

    asyncio.run(main())
