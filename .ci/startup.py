"""The start-up budget, warm and compiled: the best of several fresh processes against the promised numbers."""
# ruff: noqa: T201

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
COMMAND = str(Path(sys.executable).parent / "osmosis-run")
ARITHMETIC = str(ROOT / "configs" / "arithmetic")


def best(words: list[str], tries: int = 7) -> float:
    """The fastest of some runs, in milliseconds: the rest of the machine only ever adds."""
    times = []
    for _ in range(tries):
        started = perf_counter()
        subprocess.run([COMMAND, *words], check=True, capture_output=True)
        times.append((perf_counter() - started) * 1000)
    return min(times)


def main() -> int:
    with tempfile.TemporaryDirectory() as runs:
        one = ["eval", "-w", ARITHMETIC, "--rows", "0", "--attempts", "1", "--fresh", "--set", f"eval.output={runs}"]
        budgets = [
            (["--help"], 150.0),
            (["validate", ARITHMETIC], 300.0),
            (["validate", "--no-import", str(ROOT / "tests" / "good" / "reference")], 300.0),
            (one, 700.0),
        ]
        missed = 0
        for words, budget in budgets:
            took = best(words)
            missed += took > budget
            name = " ".join(word for word in words if not word.startswith("/"))
            print(f"{'ok  ' if took <= budget else 'SLOW'} {took:5.0f} ms of {budget:.0f}  osmosis-run {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
