"""Ten thousand rollouts in flight at once in one process, each waiting five seconds for its model.

Memory per rollout is the peak with 10,000 in flight less the peak with 100, divided by the difference. Latency added
per model call is what the process takes beyond the model's own latency when it is not saturated (256 in flight).
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from harness import measure, model_server, osmosis_run, sound, write_report
from workload import write_workload

MANY, FEW = 10_000, 100
LATENCY = 5.0


def main() -> None:
    with tempfile.TemporaryDirectory() as place, model_server("--two-step", "--latency", str(LATENCY)) as url:
        folder = Path(place)
        write_workload(folder, url, MANY, MANY)
        few = _eval(folder, FEW)
        many = _eval(folder, MANY)
        added = _added_latency(folder)
    each = (many.peak - few.peak) / (MANY - FEW)
    write_report(
        "in_flight",
        {
            "rollouts in flight": MANY,
            "peak memory, 100 in flight (MB)": round(few.peak / 1e6),
            "peak memory, 10,000 in flight (MB)": round(many.peak / 1e6),
            "memory per rollout (KB)": round(each / 1000, 1),
            "wanted (KB)": "< 60",
            "wall seconds (two calls of 5 s)": round(many.wall, 1),
            "added per model call, median (ms)": round(added * 1000, 2),
            "wanted (ms)": "< 5",
        },
    )
    if each > 60_000 or added > 0.005:
        raise SystemExit("over the limit")


def _eval(folder: Path, rows: int):  # type: ignore[no-untyped-def]
    command = osmosis_run("eval", "rows.jsonl", "--fresh", "--json", "--set", f"dataset.limit={rows}")
    return sound(measure(command, cwd=folder))


def _added_latency(folder: Path) -> float:
    """The median over model calls of (measured latency - the server's), with 256 rollouts in flight."""
    with model_server("--two-step", "--latency", "0.5") as url:
        write_workload(folder / "latency", url, 512, 256)
        sound(measure(osmosis_run("eval", "rows.jsonl", "--fresh", "--json"), cwd=folder / "latency"))
    lines = (folder / "latency" / "runs" / "bench" / "rollouts.jsonl").read_text().splitlines()
    calls = [call["latency"] - 0.5 for line in lines for call in json.loads(line)["calls"]]
    return statistics.median(calls)


if __name__ == "__main__":
    main()
