"""How long a person waits: `--help`, `validate` on a reference-sized file, an eval of one row.

Each is the median of several warm runs; the bare interpreter of the same run stands beside it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from harness import HERE, measure, model_server, osmosis_run, sound, write_report
from workload import write_workload

RUNS = 11
REFERENCE = HERE.parent / "tests" / "good" / "reference"


def main() -> None:
    with tempfile.TemporaryDirectory() as place, model_server("--two-step") as url:
        folder = Path(place)
        write_workload(folder, url, 1, 1)
        bare = _median([sys.executable, "-c", "pass"], folder)
        helped = _median(osmosis_run("--help"), folder)
        validated = _median(osmosis_run("validate", str(REFERENCE)), folder)
        evaluated = _median(osmosis_run("eval", "rows.jsonl", "--fresh", "--json"), folder)
    figures: dict[str, object] = {
        "bare interpreter (ms)": round(bare),
        "--help (ms)": round(helped),
        "wanted --help": "< 150",
        "validate, reference-sized file (ms)": round(validated),
        "wanted validate": "< 300",
        "eval of one row (ms)": round(evaluated),
        "wanted eval": "< 700",
    }
    write_report("startup", figures)
    if helped > 150 or validated > 300 or evaluated > 700:
        raise SystemExit("over the limit")


def _median(command: list[str], folder: Path) -> float:
    sound(measure(command, cwd=folder, core=None))
    return 1000 * statistics.median(sound(measure(command, cwd=folder, core=None)).wall for _ in range(RUNS))


if __name__ == "__main__":
    main()
