"""What every benchmark needs: a model server on its own core, a pinned process with its cost, a report.

Every number is a ratio within one run, or a size: absolute times say more about the machine than about us.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPORT = HERE / "report"
MEASURED_CORE, SERVER_CORE = 0, 1


def environment() -> dict[str, str]:
    """Ours, with bytecode compiled and without colour."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "NO_COLOR": "1", "OSMOSIS_RUN_BENCH": "1"}


def pin(core: int) -> None:
    """Bind this process to one core, where the machine has that many.

    Asked of the system, not of our own affinity: a child of a process that is bound already begins with its one core.
    """
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {core})


@contextmanager
def model_server(*options: str) -> Iterator[str]:
    """The shipped test double on its own core; gives its base URL (with /v1)."""
    command = [sys.executable, "-m", "runner.models.double", "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(), preexec_fn=lambda: pin(SERVER_CORE)
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"].rstrip("/") + "/v1"
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Cost:
    """What a finished process cost: wall and CPU seconds, peak memory in bytes, and what it printed."""

    wall: float
    cpu: float
    peak: int
    out: str
    err: str
    code: int


def measure(command: Sequence[str], *, cwd: Path | None = None, core: int | None = MEASURED_CORE) -> Cost:
    """Run a command on one core and account for it."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            list(command),
            stdout=out,
            stderr=err,
            cwd=cwd,
            env=environment(),
            preexec_fn=None if core is None else (lambda: pin(core)),
        )
        # wait4 accounts for this one process; getrusage(RUSAGE_CHILDREN) keeps the peak of all before it.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        cpu = used.ru_utime + used.ru_stime
        return Cost(wall, cpu, used.ru_maxrss * 1024, out.read(), err.read(), process.returncode)


def sound(cost: Cost) -> Cost:
    """The cost of a run that succeeded; anything else is no measurement."""
    if cost.code != 0:
        raise SystemExit(f"the measured command ended with {cost.code}:\n{cost.err[-3000:]}")
    return cost


def osmosis_run(*words: str) -> list[str]:
    """The command line of our own tool, in this environment."""
    return [str(Path(sys.executable).with_name("osmosis-run")), *words]


def write_report(name: str, figures: dict[str, object]) -> None:
    """Keep the figures of one benchmark as JSON and say them."""
    REPORT.mkdir(exist_ok=True)
    (REPORT / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(f"== {name}")
    for key, value in figures.items():
        print(f"  {key:<42} {value}")
