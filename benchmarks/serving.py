"""`osmosis-run serve` on the measured core, as the benchmarks of serve need it: its port, its cost, its metrics."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import MEASURED_CORE, environment, osmosis_run, pin


@dataclass(frozen=True)
class Served:
    """One server."""

    pid: int
    port: int

    def cpu(self) -> float:
        """Seconds of processor time that it has used, all its threads together."""
        with open(f"/proc/{self.pid}/stat") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Bytes that it holds now."""
        with open(f"/proc/{self.pid}/smaps_rollup") as file:  # noqa: PTH123
            line = next(line for line in file if line.startswith("Pss:"))
        return int(line.split()[1]) * 1024

    def looks(self) -> Counter[float]:
        """The server's own count of how late its event loop was: looks by the upper bound of their lag in seconds."""
        found: Counter[float] = Counter()
        below = 0.0
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if "loop_lag_seconds_bucket" in line:
                    bound = line.partition('le="')[2].partition('"')[0]
                    upto = float(line.rpartition(" ")[2])
                    found[float(bound)], below = int(upto - below), upto
        return found


def lag_p99(looks: Counter[float]) -> float:
    """The upper bound in seconds below which 99 of 100 looks at the loop were."""
    seen = 0
    for bound in sorted(looks):
        seen += looks[bound]
        if seen >= 0.99 * looks.total():
            return bound
    raise ValueError("nobody looked at the loop")


@contextmanager
def served(folder: Path, *settings: str, core: int | None = MEASURED_CORE) -> Iterator[Served]:
    """Serve the workflow in `folder` with these `--set` words until the block ends."""
    words = ["serve", "workflow.toml", "--port", "0"]
    for setting in (f"serve.state={folder / 'state.db'}", *settings):
        words += ["--set", setting]
    process = subprocess.Popen(
        osmosis_run(*words),
        stdout=subprocess.PIPE,
        stderr=(folder / "serve.log").open("a"),
        text=True,
        cwd=folder,
        env=environment(),
        preexec_fn=None if core is None else (lambda: pin(core)),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the server did not start:\n{(folder / 'serve.log').read_text()[-2000:]}")
        yield Served(process.pid, int(json.loads(line)["url"].rpartition(":")[2]))
    finally:
        process.kill()  # what it still plays is nobody's concern
        process.wait()
