"""Which HTTP client the hot chat path should use: calls a second, processor time and memory of each, on one core.

Run it with `python benchmarks/transports.py [CLIENT...]`. The server is the test double in a process of its own, on
another core where there is one. `chat` is the whole `ChatModel`; `own` is its transport alone; the others are bare
libraries doing only the HTTP and the JSON. Read the ratios within one run, not the numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeAlias

from pydantic_core import from_json, to_json

Call: TypeAlias = Callable[[], Awaitable[Any]]

REQUEST = {
    "model": "m",
    "messages": [{"role": "system", "content": "You are careful. " * 20}, {"role": "user", "content": "2 + 2? " * 10}],
}
HEADERS = {"content-type": "application/json", "authorization": "Bearer none"}
IN_FLIGHT = (1, 64, 256)


@contextlib.asynccontextmanager
async def with_aiohttp(base_url: str) -> AsyncIterator[Call]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=HEADERS) as session:

        async def call() -> Any:
            async with session.post(base_url + "/chat/completions", data=to_json(REQUEST)) as answer:
                return from_json(await answer.read())

        yield call


@contextlib.asynccontextmanager
async def with_httpx(base_url: str) -> AsyncIterator[Call]:
    import httpx

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60, headers=HEADERS, trust_env=False) as client:

        async def call() -> Any:
            return from_json((await client.post(base_url + "/chat/completions", content=to_json(REQUEST))).content)

        yield call


@contextlib.asynccontextmanager
async def with_pyreqwest(base_url: str) -> AsyncIterator[Call]:
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().default_headers(HEADERS).no_proxy().build() as client:

        async def call() -> Any:
            request = client.post(base_url + "/chat/completions").body_bytes(to_json(REQUEST)).build()
            return from_json(bytes(await (await request.send()).bytes()))

        yield call


@contextlib.asynccontextmanager
async def with_own(base_url: str) -> AsyncIterator[Call]:
    from runner.models.transport import Transport

    transport = Transport(base_url + "/chat/completions", HEADERS, timeout=60.0)

    async def call() -> Any:
        return from_json((await transport.post(to_json(REQUEST))).body)

    yield call
    await transport.aclose()


@contextlib.asynccontextmanager
async def with_chat(base_url: str) -> AsyncIterator[Call]:
    from runner.models.chat import ChatModel
    from runner.models.limiter import FixedLimit
    from runner.records.completion import Caller, Sampling

    model = ChatModel(model="m", base_url=base_url, api_key="none", limiter=FixedLimit(100_000), return_token_ids=False)
    caller, sampling = Caller("benchmark"), Sampling()
    messages: Any = REQUEST["messages"]

    async def call() -> Any:
        return await model.complete(messages, (), sampling, caller)

    yield call
    await model.aclose()


CLIENTS: dict[str, Callable[[str], contextlib.AbstractAsyncContextManager[Call]]] = {
    "aiohttp": with_aiohttp,
    "pyreqwest": with_pyreqwest,
    "httpx": with_httpx,
    "own": with_own,
    "chat": with_chat,
}


@contextlib.contextmanager
def double(latency: float) -> Iterator[str]:
    """The base URL of a test double on the last core."""
    command = [
        sys.executable,
        "-m",
        "runner.models.double",
        "--port",
        "0",
        "--fixed",
        "four",
        "--latency",
        str(latency),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        info = json.loads(process.stdout.readline())
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(process.pid))})
        try:
            yield info["base_url"]
        finally:
            process.terminate()


async def _rate(client: str, base_url: str, in_flight: int, calls: int) -> tuple[float, float]:
    """Calls a second and microseconds of processor time per call."""
    async with CLIENTS[client](base_url) as call:

        async def worker(count: int) -> None:
            for _ in range(count):
                await call()

        await asyncio.gather(*[worker(2) for _ in range(in_flight)])
        each = max(1, calls // in_flight)
        started, spent = time.perf_counter(), time.process_time()
        await asyncio.gather(*[worker(each) for _ in range(in_flight)])
        done = each * in_flight
        return done / (time.perf_counter() - started), (time.process_time() - spent) / done * 1e6


async def _memory(client: str, base_url: str, in_flight: int) -> tuple[float, float]:
    """KiB for each call in flight, and the median latency in seconds."""
    async with CLIENTS[client](base_url) as call:
        await call()
        before, latencies = _resident(), []

        async def one() -> None:
            started = time.perf_counter()
            await call()
            latencies.append(time.perf_counter() - started)

        calls = [asyncio.ensure_future(one()) for _ in range(in_flight)]
        peak = before
        while not all(task.done() for task in calls):
            await asyncio.sleep(0.2)
            peak = max(peak, _resident())
        await asyncio.gather(*calls)
        return (peak - before) / in_flight / 1024, sorted(latencies)[in_flight // 2]


def _resident() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _available(names: list[str]) -> list[str]:
    from importlib.util import find_spec

    return [name for name in names if name in ("own", "chat") or find_spec(name) is not None]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _in_a_process(*words: str) -> list[float]:
    """Measure in a fresh process, so that no client pays for another's memory."""
    command = [sys.executable, __file__, "--measure", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        return [float("nan"), float("nan")]
    found: list[float] = json.loads(done.stdout)
    return found


def _measure(what: str, client: str, base_url: str, in_flight: str, calls: str) -> None:
    if what == "rate":
        # One core for the client, threads and all; the last one is the server's.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        _say(json.dumps(asyncio.run(_rate(client, base_url, int(in_flight), int(calls)))))
    else:
        _say(json.dumps(asyncio.run(_memory(client, base_url, int(in_flight)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", help=f"of {', '.join(CLIENTS)}; default: all that are installed")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--in-flight", type=int, default=9_500, help="for the memory of each (0: leave it out)")
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(*options.measure)
        return
    names = _available(options.clients or list(CLIENTS))
    _say("client      in flight    calls/s   x aiohttp   CPU us/call")
    bare: dict[int, float] = {}
    with double(0.0) as base_url:
        for name in names:
            for in_flight in IN_FLIGHT:
                calls = options.calls // 10 if name == "httpx" else options.calls
                rate, cpu = _in_a_process("rate", name, base_url, str(in_flight), str(calls))
                if name == "aiohttp":
                    bare[in_flight] = rate
                ratio = rate / bare.get(in_flight, float("nan"))
                _say(f"{name:<10} {in_flight:>10} {rate:>10,.0f} {ratio:>11.2f} {cpu:>13.0f}")
    if options.in_flight:
        _say(f"\nclient      KiB/call at {options.in_flight:,} in flight    median latency s (5 s is the server's)")
        with double(5.0) as base_url:
            for name in names:
                if name != "httpx":  # its pool is quadratic: minutes
                    memory, latency = _in_a_process("memory", name, base_url, str(options.in_flight), "0")
                    _say(f"{name:<10} {memory:>24.1f} {latency:>12.2f}")


if __name__ == "__main__":
    main()
