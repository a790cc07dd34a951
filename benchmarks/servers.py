"""What an accepted start costs in HTTP alone: hypercorn with each event loop, framework and version of HTTP.

Run it with `python benchmarks/servers.py [NAME...]`. Each server answers `POST` of 1 KB of JSON with 202 on a core of
its own; our keep-alive client is on the other one. Processor time per request is the server's own, so that a slow
client (the one for HTTP/2 is) does not blur it. `bare` is our test double: the same request without hypercorn.
Read the ratios within one run, not the numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness import MEASURED_CORE, SERVER_CORE, environment, pin, write_report

BODY = json.dumps(
    {
        "rollout_id": "row-000001.run-1",
        "messages": [{"role": "user", "content": "2 + 2? " * 80}],
        "label": "4",
        "metadata": {"tier": 2},
        "chat_completions_url": "http://127.0.0.1:9/v1/rollouts/row-000001.run-1",
        "controller_api_key": "callback",
        "completion_callback_url": "http://127.0.0.1:9/v1/rollouts/row-000001.run-1/completion",
        "grader_callback_url": "http://127.0.0.1:9/v1/rollouts/row-000001.run-1/grader",
    }
).encode()
IN_FLIGHT = 64

SERVERS = {
    "bare": ("bare", "asyncio", {}, "1.1"),
    "asgi asyncio": ("asgi", "asyncio", {}, "1.1"),
    "asgi uvloop": ("asgi", "uvloop", {}, "1.1"),
    "asgi uvloop tuned": ("asgi", "uvloop", {"tuned": True}, "1.1"),
    "starlette asyncio": ("starlette", "asyncio", {}, "1.1"),
    "starlette uvloop": ("starlette", "uvloop", {}, "1.1"),
    "asgi asyncio h2": ("asgi", "asyncio", {}, "2"),
    "asgi uvloop h2": ("asgi", "uvloop", {}, "2"),
    "ours uvloop": ("ours", "uvloop", {}, "1.1"),
    "ours asyncio": ("ours", "asyncio", {}, "1.1"),
}
"""By name: what answers, the event loop, hypercorn's options, the version of HTTP that the client speaks."""


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """Read the body whole, decode it, answer 202."""
    if scope["type"] != "http":
        return
    chunks = []
    while True:
        message = await receive()
        chunks.append(message["body"])
        if not message["more_body"]:
            break
    json.loads(b"".join(chunks))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


def with_starlette() -> Any:
    """The same answer through Starlette's routing, request and response."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def accept(request: Request) -> Response:
        await request.json()
        return Response(b"{}", status_code=202, media_type="application/json")

    return Starlette(routes=[Route("/rollout", accept, methods=["POST"])])


def with_our_app() -> Any:
    """Our whole face, key and all, before an engine that accepts everything."""
    from runner.serve.admission import Answer
    from runner.serve.http.access import Access
    from runner.serve.http.app import App
    from runner.serve.http.body import BodyLimits
    from runner.serve.http.routes import Face, routes

    class Engine:
        draining = False

        async def start(self, dialect: Any, body: Any, raw: bytes, headers: Any = ()) -> Answer:
            return Answer(202, b"{}")

    async def health() -> dict[str, Any]:
        return {"status": "ok"}

    face = Face({"/rollout": lambda body: None}, BodyLimits(), health)
    return App(routes(Engine(), face), Access(None))  # type: ignore[arg-type]


def listening() -> socket.socket:
    found = socket.create_server(("127.0.0.1", 0), backlog=1024)
    found.setblocking(False)
    return found


async def serve(kind: str, tuned: bool) -> None:
    """Answer until SIGTERM."""
    from hypercorn.asyncio import serve as hypercorn_serve
    from hypercorn.config import Config

    from runner.serve.http.server import hypercorn_config

    stop, found, config = asyncio.Event(), listening(), Config()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    port = found.getsockname()[1]
    if kind == "ours":
        config = hypercorn_config({}, [found])
        found.close()
    else:
        config.bind = [f"fd://{found.detach()}"]
    config.errorlog = None
    config.keep_alive_max_requests = 10**9
    config.graceful_timeout = 0.1
    if tuned:
        config.include_date_header = config.include_server_header = False
        config.max_app_queue_size = 0
    print(json.dumps({"port": port}), flush=True)
    apps = {"asgi": lambda: plain, "starlette": with_starlette, "ours": with_our_app}
    await hypercorn_serve(apps[kind](), config, shutdown_trigger=stop.wait)


def run_server(name: str) -> None:
    kind, loop, options, _ = SERVERS[name]
    pin(MEASURED_CORE)
    if loop == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(kind, bool(options.get("tuned"))))
    else:
        asyncio.run(serve(kind, bool(options.get("tuned"))))


@contextmanager
def server(name: str) -> Iterator[tuple[int, int]]:
    """Its process id and port."""
    if SERVERS[name][0] == "bare":
        command = [sys.executable, "-m", "runner.models.double", "--port", "0", "--fixed", "four"]
    else:
        command = [sys.executable, __file__, "--serve", name]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(), preexec_fn=lambda: pin(MEASURED_CORE)
    )
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield process.pid, said["port"] if "port" in said else int(said["url"].rpartition(":")[2].strip("/"))
    finally:
        process.terminate()
        process.wait()


async def http1(port: int, requests: int, path: str) -> list[float]:
    """Seconds that each request took, `IN_FLIGHT` at a time."""
    from runner.models.http1 import Pool
    from runner.models.http1_connection import Bounds

    pool, bounds = Pool("127.0.0.1", port), Bounds(60, 1 << 20)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    request = (f"{head}content-length: {len(BODY)}\r\n\r\n".encode(), BODY)
    took: list[float] = []

    async def worker(count: int) -> None:
        for _ in range(count):
            started = time.perf_counter()
            answer = await pool.post(request, bounds)
            took.append(time.perf_counter() - started)
            assert answer.status in (200, 202), answer.status

    await asyncio.gather(*[worker(requests // IN_FLIGHT) for _ in range(IN_FLIGHT)])
    await pool.aclose()
    return took


async def http2(port: int, requests: int, path: str) -> list[float]:
    """The same over one connection of HTTP/2, by prior knowledge."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import DataReceived, StreamEnded

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = H2Connection(H2Configuration(client_side=True))
    connection.initiate_connection()
    headers = [(":method", "POST"), (":path", path), (":authority", "127.0.0.1"), (":scheme", "http"),
               ("content-type", "application/json"), ("content-length", str(len(BODY)))]  # fmt: skip
    left, took, started = requests, [], {}

    def begin() -> None:
        nonlocal left
        # Hypercorn returns the window of a stream, not always at once that of the connection.
        while left and len(started) < IN_FLIGHT and connection.outbound_flow_control_window > 2 * len(BODY):
            stream = connection.get_next_available_stream_id()
            connection.send_headers(stream, headers)
            connection.send_data(stream, BODY, end_stream=True)
            started[stream] = time.perf_counter()
            left -= 1

    begin()
    writer.write(connection.data_to_send())
    while left or started:
        for event in connection.receive_data(await reader.read(65536)):
            if isinstance(event, DataReceived):
                connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                took.append(time.perf_counter() - started.pop(event.stream_id))
        begin()
        writer.write(connection.data_to_send())
    writer.close()
    return took


def spent(process: int) -> float:
    """Seconds of processor time that a process has used."""
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, requests: int) -> dict[str, float]:
    client = http2 if SERVERS[name][3] == "2" else http1
    path = "/v1/chat/completions" if SERVERS[name][0] == "bare" else "/rollout"
    with server(name) as (process, port):
        asyncio.run(client(port, requests // 10, path))
        before, started = spent(process), time.perf_counter()
        took = sorted(asyncio.run(client(port, requests, path)))
        wall, used = time.perf_counter() - started, spent(process) - before
    return {
        "requests/s": round(len(took) / wall),
        "CPU us/request": round(used / len(took) * 1e6),
        "p99 ms": round(took[int(len(took) * 0.99)] * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SERVERS)}; default: all")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        run_server(options.serve)
        return
    pin(SERVER_CORE)
    write_report("servers", {name: measure(name, options.requests) for name in options.names or SERVERS})


if __name__ == "__main__":
    main()
