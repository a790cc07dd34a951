"""Rollouts per second through `osmosis-run serve`, end to end, against `osmosis-run eval` of the same rows on one core.

End to end is a start over HTTP, its durable acceptance, two chat calls, one tool call, a grader, the stored verdict and
every callback acknowledged. 256 are in flight from start to verdict. Chat is not streamed, as it is not in eval; one
line shows what streaming adds. Every run of serve stands between two of eval and is compared with the mean of both; the
median ratio of each dialect is the figure. Where other work shares the core, the ratio of processor time per rollout is
the steadier one: eval's over serve's, all threads.
How late the event loop was is looked at ten times a second; all looks of a dialect are ranked together.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
from collections import Counter
from pathlib import Path

from controller import DIALECTS, Controller, Tally
from harness import SERVER_CORE, Cost, measure, model_server, osmosis_run, pin, sound, write_report
from serving import Served, lag_p99, served
from workload import write_workload

ROLLOUTS = 6000
WARM = 500
IN_FLIGHT = 256
RUNS = 5
WANTED = 0.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dialects", nargs="*", metavar="DIALECT", help=f"of {', '.join(DIALECTS)}; default: all")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each dialect")
    options = parser.parse_args()
    pin(SERVER_CORE)
    gc.disable()  # pauses of the load's own would count as the server's
    dialects = options.dialects or list(DIALECTS)
    evals: list[tuple[float, float]] = []
    runs: dict[str, list[dict[str, float]]] = {dialect: [] for dialect in dialects}
    late: dict[str, Counter[float]] = {dialect: Counter() for dialect in dialects}
    evals.append(_eval())
    for dialect in dialects * options.runs:
        run, looks = _serve(dialect)
        late[dialect].update(looks)
        evals.append(_eval())
        rate, cpu = (sum(both) / 2 for both in zip(*evals[-2:], strict=True))
        runs[dialect].append({**run, "of rate": run["rate"] / rate, "of cpu": cpu / run["cpu"]})
    figures: dict[str, object] = {
        "eval rollouts/s": round(statistics.median(rate for rate, _ in evals)),
        "eval CPU us/rollout": round(statistics.median(cpu for _, cpu in evals) * 1e6),
    }
    ratios, lags = [], []
    for dialect, found in runs.items():
        middle = {key: statistics.median(run[key] for run in found) for key in found[0]}
        ratios.append(middle["of rate"])
        lags.append(lag_p99(late[dialect]))
        figures[f"{dialect}: rollouts/s"] = round(middle["rate"])
        figures[f"{dialect}: CPU us/rollout"] = round(middle["cpu"] * 1e6)
        figures[f"{dialect}: ratio of rates"] = round(middle["of rate"], 2)
        figures[f"{dialect}: ratio of CPU"] = round(middle["of cpu"], 2)
        figures[f"{dialect}: start p99 (ms)"] = round(middle["p99"] * 1e3, 1)
        figures[f"{dialect}: event loop lag p99 (ms)"] = f"< {lags[-1] * 1e3:g}"
    figures["single-sample, streamed: CPU us/rollout"] = round(_serve("single-sample", stream=True)[0]["cpu"] * 1e6)
    write_report("serve_rate", {**figures, "wanted": f">= {WANTED} of eval, lag < 50 ms"})
    if min(ratios) < WANTED or max(lags) > 0.05:
        raise SystemExit("serve is slower than it may be")


def _eval() -> tuple[float, float]:
    """Rollouts per second of eval, and the processor time of one, both without its start-up."""
    with tempfile.TemporaryDirectory() as place, model_server("--two-step", "--fixed", "2") as url:
        folder = Path(place)
        write_workload(folder, url, ROLLOUTS, IN_FLIGHT)
        empty, whole = (_eval_cost(folder, rows) for rows in (1, ROLLOUTS))
    return (ROLLOUTS - 1) / (whole.wall - empty.wall), (whole.cpu - empty.cpu) / (ROLLOUTS - 1)


def _eval_cost(folder: Path, rows: int) -> Cost:
    command = osmosis_run("eval", "rows.jsonl", "--fresh", "--json", "--set", f"dataset.limit={rows}")
    return sound(measure(command, cwd=folder))


def _serve(dialect: str, *, stream: bool = False) -> tuple[dict[str, float], Counter[float]]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_workload(folder, "http://127.0.0.1:9/v1", 1, IN_FLIGHT)
        chat = f"serve.chat.stream={str(stream).lower()}"
        with served(folder, f"serve.max_concurrent={IN_FLIGHT}", chat) as server:
            return asyncio.run(_load(dialect, server))


async def _load(dialect: str, server: Served) -> tuple[dict[str, float], Counter[float]]:
    """What the load cost, and how many looks at the server's event loop found it how late."""
    async with Controller(dialect) as controller:
        await controller.play(server.port, WARM, IN_FLIGHT, "warm")
        looks, cpu = server.looks(), server.cpu()
        tally: Tally = await controller.play(server.port, ROLLOUTS, IN_FLIGHT, "row")
        used = server.cpu() - cpu
        looks = server.looks() - looks
    p99 = sorted(tally.starts)[int(len(tally.starts) * 0.99)]
    return {"rate": tally.rate, "cpu": used / ROLLOUTS, "p99": p99}, looks


if __name__ == "__main__":
    main()
