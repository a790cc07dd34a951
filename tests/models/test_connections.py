"""`Connections`: shared, bounded, forgotten when idle; and a post whose status is what matters."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from runner.models.chat import ChatModel, ChatModels
from runner.models.connections import Connections
from runner.models.double import Double
from runner.models.double_answer import Reply
from runner.models.http1_parser import Answer
from runner.models.retry import Retries
from runner.models.transport import TransportError
from runner.records.completion import Caller, Sampling
from runner.serve.start import Chat
from tests.waiting import until

USER = [{"role": "user", "content": "hi"}]
BODY = b'{"messages": []}'


async def slowly(request: dict[str, Any]) -> str:
    await asyncio.sleep(0.01)
    return "ok"


async def post(connections: Connections, url: str, **options: Any) -> Answer:
    return await connections.post(url, {}, BODY, **{"timeout": 5.0, "max_body": 1000, **options})


async def complete(model: ChatModel) -> str:
    return str((await model.complete(USER, (), Sampling(), Caller("r"))).message["content"])


def chat(double: Double, number: int) -> Chat:
    url = f"{double.url}/rollouts/{number}/chat/completions"
    return Chat(url, f"key-{number}", "m", {"x-rollout-id": str(number)}, {"rollout_id": str(number)})


def test_models_and_callbacks_share_connections_and_keep_their_own_path_and_key() -> None:
    heard: list[tuple[str, str | None]] = []

    async def run() -> tuple[int, int]:
        async with Double(
            lambda body: "ok", hear=lambda request: heard.append((request.path, request.headers.get("authorization")))
        ) as double:
            connections = Connections()
            models = ChatModels(connections=connections)
            for number in range(20):
                assert await complete(models.model_for(chat(double, number))) == "ok"
            answer = await post(connections, double.base_url + "/chat/completions")
            assert answer.status == 200
            counts = len(double._connections), connections.open
            await connections.aclose()
            return counts

    assert asyncio.run(run()) == (1, 1)
    assert heard[3] == ("/rollouts/3/chat/completions", "Bearer key-3")
    assert heard[-1] == ("/v1/chat/completions", None)


def test_posts_of_one_turn_each_get_their_own_answer_also_beside_one_that_is_given_up() -> None:
    async def run() -> list[str | BaseException]:
        async with Double(lambda body: body["messages"][0]["content"]) as double:
            connections = Connections()

            async def say(text: str) -> str:
                body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
                answer = await connections.post(
                    double.base_url + "/chat/completions", {}, body, timeout=5.0, max_body=50_000
                )
                return str(json.loads(answer.body)["choices"][0]["message"]["content"])

            await asyncio.gather(*[say("warm") for _ in range(40)])  # from now on nobody waits to be connected
            said = [asyncio.ensure_future(say(f"{number} " * 500)) for number in range(40)]
            await asyncio.sleep(0)
            for given_up in said[::7]:
                given_up.cancel()
            found = await asyncio.gather(*said, return_exceptions=True)
            await connections.aclose()
            return found

    for number, found in enumerate(asyncio.run(run())):
        if number % 7:
            assert found == f"{number} " * 500
        else:
            assert isinstance(found, asyncio.CancelledError)


def test_no_more_than_max_are_open_and_no_more_than_idle_are_kept() -> None:
    async def run() -> None:
        async with Double(slowly) as double:
            connections = Connections(max=5, idle=2)
            models = ChatModels(connections=connections)
            await asyncio.gather(*[complete(models.model_for(chat(double, number))) for number in range(50)])
            assert (double.max_in_flight, double.requests) == (5, 50)
            await asyncio.sleep(0.05)
            assert double.stats()["connections"] == connections.open == 2
            await connections.aclose()

    asyncio.run(run())


def test_whoever_waits_for_a_connection_waits_within_its_deadline() -> None:
    async def run() -> None:
        async with Double(lambda body: "late", latency=0.3) as double:
            connections = Connections(max=1)
            url = double.base_url + "/chat/completions"
            first = asyncio.create_task(post(connections, url))
            await asyncio.sleep(0.05)
            left = asyncio.create_task(post(connections, url))
            with pytest.raises(TransportError, match=r"none of the 1 connections .* became free in 0\.05 s") as error:
                await post(connections, url, timeout=0.05)
            assert error.value.timed_out
            left.cancel()  # its place goes to whoever comes next
            assert (await post(connections, url)).status == (await first).status == 200
            assert double.requests == 2
            await connections.aclose()

    asyncio.run(run())


def test_idle_origins_are_forgotten_and_those_in_use_are_not() -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            connections = Connections(idle_time=0.5)
            doubles = [await stack.enter_async_context(Double(lambda body: "ok")) for _ in range(20)]
            slow = await stack.enter_async_context(Double(lambda body: "ok", latency=2.5))
            with pytest.raises(TransportError, match="nothing listens there"):
                await post(connections, "http://127.0.0.1:9/x")
            under_way = asyncio.create_task(post(connections, slow.base_url + "/chat/completions"))
            models = ChatModels(connections=connections)
            kept = [models.model_for(chat(double, 1)) for double in doubles]
            assert await asyncio.gather(*map(complete, kept)) == ["ok"] * 20
            assert (connections.origins, connections.open) == (22, 21)
            await until(lambda: (connections.origins, connections.open) == (1, 1))
            assert not under_way.done()
            await until(lambda: not any(double._connections for double in doubles))
            assert await complete(kept[0]) == "ok"  # a model outlives what was forgotten
            assert (await under_way).status == 200
            await until(lambda: connections.origins == 0)
            await connections.aclose()

    asyncio.run(run())


def test_closing_ends_what_is_under_way_and_refuses_what_comes_after() -> None:
    async def run() -> None:
        async with Double(lambda body: "late", latency=5.0) as double:
            connections = Connections()
            under_way = asyncio.create_task(post(connections, double.base_url + "/chat/completions"))
            await asyncio.sleep(0.05)
            await connections.aclose()
            with pytest.raises(TransportError):
                await under_way
            with pytest.raises(TransportError, match="closing its connections") as error:
                await post(connections, double.base_url + "/chat/completions")
            assert not error.value.retry

    asyncio.run(run())


HUGE = b"x" * 5_000_000


@pytest.mark.parametrize(
    ("reply", "status", "size"),
    [
        (Reply(HUGE), 200, 1000),
        (Reply(HUGE, status=503), 503, 1000),
        (Reply(b"x" * 1000), 200, 1000),
        (Reply(b"", status=204), 204, 0),
        (Reply(b"a" * 10, status=409, pause=9.0), 409, 5),
        (Reply(b"gzipped", headers=(("content-encoding", "gzip"),)), 200, 0),
        (Reply(b"", status=307, headers=(("location", "http://127.0.0.1:9/"),)), 307, 0),
    ],
    ids=["huge", "huge-error", "just-so", "nothing", "stalls", "encoded", "redirect"],
)
def test_with_a_body_wait_the_status_is_known_whatever_the_body_is(reply: Reply, status: int, size: int) -> None:
    async def run() -> None:
        async with Double(lambda body: reply) as double:
            connections = Connections()
            url = double.base_url + "/chat/completions"
            started = time.perf_counter()
            answer = await post(connections, url, body_wait=0.1)
            assert (answer.status, len(answer.body)) == (status, size)
            assert answer.whole == (size == len(reply.body))
            assert time.perf_counter() - started < 2.0
            assert (await post(connections, url, body_wait=0.1)).status == status  # nothing is left over
            await connections.aclose()

    asyncio.run(run())


def test_without_a_body_wait_an_answer_is_whole_or_an_error() -> None:
    async def run() -> None:
        async with Double(lambda body: Reply(HUGE)) as double:
            connections = Connections()
            with pytest.raises(TransportError, match="larger than") as error:
                await post(connections, double.base_url + "/chat/completions")
            assert (error.value.oversized, error.value.status) == (True, 200)
            await connections.aclose()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "headers", "words"),
    [
        ("ftp://h/", {}, "not one of http or https"),
        ("http://h:x/", {}, "could not be cast"),
        ("http://127.0.0.1:9/", {"authorization": "Bearer a\r\nb"}, "the header `authorization` holds"),
        ("http://127.0.0.1:9/", {"x": "ä"}, "the header `x` holds"),
    ],
)
def test_what_cannot_be_sent_is_no_matter_of_retries(url: str, headers: dict[str, str], words: str) -> None:
    async def run() -> TransportError:
        connections = Connections()
        with pytest.raises(TransportError) as error:
            await connections.post(url, headers, b"{}", timeout=1.0, max_body=1)
        await connections.aclose()
        return error.value

    error = asyncio.run(run())
    assert (error.retry, words in str(error)) == (False, True)


def test_a_model_for_a_rollout_costs_a_few_kilobytes() -> None:
    async def run() -> tuple[float, float]:
        async with Double(lambda body: "ok") as double:
            connections = Connections()
            models = ChatModels(connections=connections, retries=Retries(4, 30.0))
            chats = [chat(double, number) for number in range(500)]
            await complete(models.model_for(chats[0]))
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            made = [models.model_for(each) for each in chats]
            fresh = tracemalloc.get_traced_memory()[0] - before
            for model in made:
                await complete(model)
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            await connections.aclose()
            return fresh / len(made), used / len(made)

    fresh, used = asyncio.run(run())
    assert fresh < 8000
    assert used < 8000


TLS = """
import asyncio, gc, ssl
from runner.models.connections import Connections
from runner.models.double import Double
from runner.models.double_answer import Reply
from runner.models.transport import TransportError

answers = [Reply(b"x" * 3000000), Reply(b"ok"), Reply(b"a" * 10, pause=9.0), Reply(b"", status=307, headers=(("location", "http://127.0.0.1:9/"),))]


class Secure(Double):
    async def __aenter__(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("cert.pem", "key.pem")
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, "127.0.0.1", 0, ssl=context)
        return self


async def main():
    async with Secure(lambda request: answers.pop(0) if answers else "fine", latency=0.02) as double:
        url = f"https://localhost:{double.port}/v1/chat/completions"
        connections = Connections(max=4, idle=2)

        async def post():
            return await connections.post(url, {}, b'{"messages": []}', timeout=9.0, max_body=1000, body_wait=0.1)

        for _ in range(4):
            answer = await post()
            print(answer.status, len(answer.body), answer.whole)
        await asyncio.gather(*[post() for _ in range(20)])
        await asyncio.sleep(0.2)
        stats = double.stats()
        print(stats["max_in_flight"], stats["connections"] <= 2)
        try:
            await connections.post("https://a b/", {}, b"", timeout=1.0, max_body=1)
        except TransportError as error:
            print(error.retry)
        await connections.aclose()
        await asyncio.sleep(0.1)


asyncio.run(main())
gc.collect()
"""  # noqa: E501 (a program)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command to make a certificate")
def test_over_tls_too(tmp_path: Path) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    command = ["openssl", *words.split(), "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    plain = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TLS],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={**plain, "SSL_CERT_FILE": str(tmp_path / "cert.pem")},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["200 1000 False", "200 2 True", "200 5 False", "307 0 True", "4 True", "False"]
