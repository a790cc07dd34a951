"""All of GSM8K over real HTTP against the test double: complete, and scored exactly as the solver knows it."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "configs" / "gsm8k"


def solver() -> object:
    spec = importlib.util.spec_from_file_location("gsm8k_solver", FOLDER / "solver.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--profile")
    options.add_argument("--rows")
    wanted = options.parse_args()
    known = solver()
    if not known.DATA.exists():
        print(f"no GSM8K data at {known.DATA}: this check needs it")
        return 1
    double = [sys.executable, "-m", "runner.models.double", "--port", "0", "--answer", f"{FOLDER}/solver.py:answer"]
    with subprocess.Popen(double, stdout=subprocess.PIPE, text=True) as server, tempfile.TemporaryDirectory() as runs:
        try:
            url = base_url(server)
            started = perf_counter()
            done = evaluate(url, runs, wanted.profile, wanted.rows)
            print(f"{perf_counter() - started:.1f} s, exit code {done}")
            summary = json.loads(next(Path(runs).glob("*/summary.json")).read_text(encoding="utf-8"))
        finally:
            server.terminate()
    return 0 if done == 0 and holds(summary, known, wanted.rows) else 1


def base_url(server: subprocess.Popen[str]) -> str:
    """The double says where it listens in its first line."""
    assert server.stdout is not None
    return str(json.loads(server.stdout.readline())["base_url"])


def evaluate(url: str, runs: str, profile: str | None, rows: str | None) -> int:
    words = ["eval", "-w", str(FOLDER), "--set", f"model.base_url={url}"]
    words += ["--profile", profile] if profile else []
    words += ["--rows", rows] if rows else []
    command = [str(Path(sys.executable).parent / "osmosis-run"), *words, "--set", f"eval.output={runs}"]
    return subprocess.run(command, check=False, env={**os.environ, "OPENAI_API_KEY": "none"}).returncode


def holds(summary: dict, known: object, rows: str | None) -> bool:
    expected = known.right_share()
    found = summary["pass_at"]["1"]["value"]
    complete = summary["complete"] and summary["outcomes"]["scored"] == summary["rows"]
    exact = rows is not None or (summary["rows"] == 1319 and abs(found - expected) < 1e-9)
    print(f"{summary['rows']} rows, pass@1 {found:.4f}, the solver knows {expected:.4f}, complete: {complete}")
    return complete and exact


if __name__ == "__main__":
    sys.exit(main())
