"""Ten thousand rollouts in flight at once in one process, each waiting about five seconds for its model.

Memory per rollout is the peak with 10,000 in flight less the peak with 100, divided by the difference. Latency added
per model call is what the process measured less what the server says it took itself, once the flood of the start has
spread out: the server's latency varies by half, and rollouts that began later than two waves are counted.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from harness import Cost, measure, model_server, osmosis_run, sound, write_report
from workload import write_workload

ROWS = 30_000
MANY, FEW = 10_000, 100
LATENCY = 5.0


def main() -> None:
    server = model_server("--two-step", "--latency", str(LATENCY), "--jitter", "0.5")
    with tempfile.TemporaryDirectory() as place, server as url:
        folder = Path(place)
        write_workload(folder, url, ROWS, MANY)
        few = _eval(folder, FEW)
        many = _eval(folder, ROWS)
        added = _added(folder / "runs" / "bench" / "rollouts.jsonl")
    each = (many.peak - few.peak) / (MANY - FEW)
    middle, high = statistics.median(added), statistics.quantiles(added, n=100)[98]
    write_report(
        "in_flight",
        {
            "rollouts in flight": MANY,
            "rollouts played": ROWS,
            "peak memory, 100 in flight (MB)": round(few.peak / 1e6),
            "peak memory, 10,000 in flight (MB)": round(many.peak / 1e6),
            "memory per rollout in flight (KB)": round(each / 1000, 1),
            "wanted (KB)": "< 60",
            "added per model call, median (ms)": round(middle * 1000, 2),
            "added per model call, 99th percentile (ms)": round(high * 1000, 2),
            "wanted, median (ms)": "< 5",
        },
    )
    if each > 60_000 or middle > 0.005:
        raise SystemExit("over the limit")


def _eval(folder: Path, rows: int) -> Cost:
    command = osmosis_run("eval", "rows.jsonl", "--fresh", "--json", "--set", f"dataset.limit={rows}")
    return sound(measure(command, cwd=folder))


def _added(journal: Path) -> list[float]:
    """Seconds added to each model call of the rollouts that began after the first two waves."""
    added = []
    started: float | None = None
    with journal.open() as lines:
        for record in map(json.loads, lines):
            at = record["timing"]["started"]
            started = at if started is None else min(started, at)
            if at > started + 4 * LATENCY:
                added += [call["latency"] - call["extra"]["latency"] for call in record["calls"]]
    return added


if __name__ == "__main__":
    main()
