"""Rollouts per second of `osmosis-run eval` against a bare aiohttp loop making the same two calls, on the same core.

The eval also renders prompts, checks and runs a tool, grades, journals and summarises. Several pairs, in turn; the
median ratio is the figure.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from harness import HERE, measure, model_server, osmosis_run, sound, write_report
from workload import write_workload

ROWS = 6000
IN_FLIGHT = 256
PAIRS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as place, model_server("--two-step") as url:
        folder = Path(place)
        write_workload(folder, url, ROWS, IN_FLIGHT)
        bare, ours, marginal = [], [], []
        empty = _eval_seconds(folder, 1)
        for _ in range(PAIRS):
            rate = float(sound(_bare(url)).out)
            seconds = _eval_seconds(folder, ROWS)
            bare.append(rate)
            ours.append(ROWS / seconds)
            marginal.append((ROWS - 1) / (seconds - empty))
    whole = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    steady = statistics.median(a / b for a, b in zip(marginal, bare, strict=True))
    write_report(
        "eval_rate",
        {
            "bare aiohttp conversations/s": round(statistics.median(bare)),
            "eval rollouts/s, whole process": round(statistics.median(ours)),
            "eval rollouts/s, without start-up": round(statistics.median(marginal)),
            "ratio, whole process": round(whole, 2),
            "ratio, without start-up": round(steady, 2),
            "wanted": ">= 0.5",
        },
    )
    if steady < 0.5:
        raise SystemExit("eval is slower than half of the bare loop")


def _bare(url: str):  # type: ignore[no-untyped-def]
    return measure([sys.executable, str(HERE / "bare_loop.py"), url, str(ROWS), str(IN_FLIGHT)])


def _eval_seconds(folder: Path, rows: int) -> float:
    command = osmosis_run("eval", "rows.jsonl", "--fresh", "--json", "--set", f"dataset.limit={rows}")
    return sound(measure(command, cwd=folder)).wall


if __name__ == "__main__":
    main()
