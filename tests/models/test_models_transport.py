"""The paths through the library: TLS with a certificate of our own, and a proxy from the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TLS = """
import asyncio, gc, ssl, sys
from runner.models.chat import ChatModel
from runner.models.double import Double
from runner.models.retry import Retries
from runner.records.completion import Caller, Sampling
from runner.records.failure import ModelError

USER = [{"role": "user", "content": "hi"}]


class Secure(Double):
    async def __aenter__(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("cert.pem", "key.pem")
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, "127.0.0.1", 0, ssl=context)
        return self


async def main():
    async with Secure(lambda request: "over TLS") as double:
        for stream in (False, True):
            url = f"https://localhost:{double.port}/v1"
            model = ChatModel(model="m", base_url=url, stream=stream, retries=Retries(2, 0.01))
            try:
                answers = await asyncio.gather(*[model.complete(USER, (), Sampling(), Caller("r")) for _ in range(5)])
                print({answer.message["content"] for answer in answers})
            except ModelError as error:
                print(type(error).__name__, error.retries, error)
            await model.aclose()


asyncio.run(main())
gc.collect()
"""

PROXY = """
import asyncio
from runner.models.chat import ChatModel
from runner.models.double import Double
from runner.records.completion import Caller, Sampling
import os


async def main():
    async with Double(lambda request: "by proxy") as proxy:
        os.environ["HTTP_PROXY"] = os.environ["http_proxy"] = proxy.url
        model = ChatModel(model="m", base_url="http://model.invalid/v1")
        answer = await model.complete([{"role": "user", "content": "hi"}], (), Sampling(), Caller("r"))
        print(answer.message["content"], proxy.requests)
        await model.aclose()


asyncio.run(main())
"""


def run(script: str, folder: Path, **env: str) -> str:
    plain = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, cwd=folder, env={**plain, **env}
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command to make a certificate")
def test_tls_trusted_and_not(tmp_path: Path) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    command = ["openssl", *words.split(), "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert run(TLS, tmp_path, SSL_CERT_FILE=str(tmp_path / "cert.pem")) == "{'over TLS'}\n" * 2
    refused = run(TLS, tmp_path).splitlines()[0]
    assert refused.startswith("ModelUnavailable 0 its certificate is not trusted")
    assert "(localhost:" in refused
    assert "SSL_CERT_FILE" in refused


def test_a_proxy_from_the_environment(tmp_path: Path) -> None:
    assert run(PROXY, tmp_path) == "by proxy 1\n"
