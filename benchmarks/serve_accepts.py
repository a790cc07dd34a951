"""A thousand starts a second, durably accepted, while ten thousand rollouts are parked on a model that takes its time.

The parked ones are started first. Memory per parked rollout is what the server holds with all of them waiting for the
model, less what it held when it was warm, divided by their number: task, sockets, buffers and messages included. Then
starts are posted at a fixed rate, whoever waits; the time of each is measured from its posting to its answer.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import tempfile
from pathlib import Path

from controller import Controller
from harness import SERVER_CORE, pin, write_report
from serving import Served, lag_p99, served
from workload import write_workload

PARKED = 10_000
RATE = 1000
SECONDS = 10
DIALECT = "single-sample"
MOST_P99, MOST_BYTES, MOST_LAG = 0.05, 80_000, 0.05


def main() -> None:
    pin(SERVER_CORE)
    gc.disable()  # pauses of the load's own would count as the server's
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_workload(folder, "http://127.0.0.1:9/v1", 1, PARKED)
        room = f"serve.max_concurrent={PARKED}", f"serve.max_queue={RATE * SECONDS * 2}"
        with served(folder, *room, 'serve.chat.timeout="1h"') as server:
            found = asyncio.run(_load(server))
    starts = sorted(found["starts"])
    p50, p99 = (starts[int(len(starts) * share)] for share in (0.5, 0.99))
    each = (found["full"] - found["warm"]) / PARKED
    write_report(
        "serve_accepts",
        {
            "rollouts parked": PARKED,
            "memory per parked rollout (KB)": round(each / 1000, 1),
            "wanted (KB)": f"< {MOST_BYTES // 1000}",
            "accepts/s": round(found["rate"]),
            "accept, median (ms)": round(p50 * 1e3, 1),
            "accept, 99th percentile (ms)": round(p99 * 1e3, 1),
            "wanted, 99th percentile (ms)": f"< {MOST_P99 * 1e3:g}",
            "event loop lag, 99th percentile (ms)": f"<= {found['lag'] * 1e3:g}",
            "CPU of the server while accepting": f"{found['busy']:.0%}",
        },
    )
    if p99 > MOST_P99 or each > MOST_BYTES or found["lag"] > MOST_LAG:
        raise SystemExit("over the limit")


async def _load(server: Served) -> dict[str, object]:
    async with Controller(DIALECT) as controller:
        await controller.play(server.port, 300, 100, "warm")
        warm, asked = server.memory(), controller.asked
        controller.latency = 3600.0
        await controller.pour(server.port, PARKED, RATE, "parked")
        for _ in range(600):
            if controller.asked >= asked + PARKED:
                break
            await asyncio.sleep(0.1)
        assert controller.asked == asked + PARKED, f"{controller.asked - asked} are parked, not {PARKED}"
        await asyncio.sleep(2)
        full, looks, cpu = server.memory(), server.looks(), server.cpu()
        tally = await controller.pour(server.port, RATE * SECONDS, RATE, "more")
        busy = (server.cpu() - cpu) / tally.seconds
        late = lag_p99(server.looks() - looks)
    return {"warm": warm, "full": full, "starts": tally.starts, "rate": tally.rate, "lag": late, "busy": busy}


if __name__ == "__main__":
    main()
