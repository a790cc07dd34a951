"""Fifty thousand rows: memory must not grow with the rows that are done (less than 1 KB a row)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness import measure, model_server, osmosis_run, sound, write_report
from workload import write_workload

MANY, FEW = 50_000, 2_000


def main() -> None:
    with tempfile.TemporaryDirectory() as place, model_server("--two-step") as url:
        folder = Path(place)
        write_workload(folder, url, MANY, 256)
        peaks = {rows: _peak(folder, rows) for rows in (FEW, MANY)}
        again = sound(measure(osmosis_run("eval", "rows.jsonl", "--json"), cwd=folder))
    each = (peaks[MANY] - peaks[FEW]) / (MANY - FEW)
    resumed = (again.peak - peaks[FEW]) / (MANY - FEW)
    write_report(
        "rows",
        {
            "peak memory, 2,000 rows (MB)": round(peaks[FEW] / 1e6),
            "peak memory, 50,000 rows (MB)": round(peaks[MANY] / 1e6),
            "memory per row (bytes)": round(each),
            "memory per row when resuming (bytes)": round(resumed),
            "wanted (bytes)": "< 1000",
        },
    )
    if max(each, resumed) > 1000:
        raise SystemExit("memory grows with the rows")


def _peak(folder: Path, rows: int) -> int:
    command = osmosis_run("eval", "rows.jsonl", "--fresh", "--json", "--set", f"dataset.limit={rows}")
    return sound(measure(command, cwd=folder)).peak


if __name__ == "__main__":
    main()
