"""`kill -9` at any moment: nothing that finished is lost, nothing that finished is played again."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

ROWS, ATTEMPTS, KILLS = 2_000, 2, 20
EVAL = ("eval", "-q", "--attempts", str(ATTEMPTS), "--concurrency", "64")


def test_twenty_kills_of_a_run_of_two_thousand_rows(project: Any, double: Any) -> None:
    server = double("--latency", "0.003")
    project.rows(ROWS)
    rng = random.Random(20)
    known = {(f"{n}?", seed) for n in range(ROWS) for seed in seeds(n)}
    finished: list[tuple[int, set[tuple[str, int]]]] = []
    for kill in range(KILLS):
        process = project.start(*EVAL)
        if kill % 4 == 0:  # while it starts, too: before and around its first line
            time.sleep(0.1 + 0.5 * rng.random())
        else:
            wait_for_growth(project, rng.randrange(1, ROWS * ATTEMPTS // KILLS * 2), process)
        process.kill()
        process.communicate()
        if project.journal().exists():
            done = {(f"{line['row']}?", seeds(line["row"])[line["attempt"]]) for line in project.lines()}
            finished.append((len(server.seen()), done))
    project.run(*EVAL)

    played = [(line["row_id"], line["attempt"]) for line in project.lines()]
    assert len(played) == len(set(played)) == ROWS * ATTEMPTS
    asked = server.seen()
    assert set(asked) == known
    assert sum(0 < len(done) < ROWS * ATTEMPTS for _, done in finished) >= KILLS // 2, "the kills came too late"
    for place, done in finished:
        assert not done.intersection(asked[place:]), "something that had finished was played again"
    again = Counter(asked)
    assert sum(again.values()) - len(known) <= KILLS * 64, "more than what was in flight at a kill was played again"
    for row, line in enumerate(sorted(project.lines(), key=lambda line: (line["row"], line["attempt"]))):
        assert line["reward"] == float(row // ATTEMPTS % 7 != 0)

    project.run(*EVAL, "--name", "calm")
    assert without_time(project.summary("it")) == without_time(project.summary("calm"))


def seeds(row: int) -> list[int]:
    """The seeds of a row's attempts, as `seed = "per-attempt"` gives them out."""
    import hashlib

    marks = [hashlib.sha256(f"q{row}\0{attempt}".encode()).digest() for attempt in range(ATTEMPTS)]
    return [int.from_bytes(mark[:4], "big") >> 1 for mark in marks]


def wait_for_growth(project: Any, lines: int, process: Any) -> None:
    """Until the journal has grown by about so many lines, or the run has ended."""
    before = project.journal().stat().st_size if project.journal().exists() else 0
    while process.poll() is None:
        size = project.journal().stat().st_size if project.journal().exists() else 0
        if size - before >= lines * 1_000:
            return
        time.sleep(0.002)


def without_time(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without what the clock says, and without the name."""
    clocks = {"wall_seconds", "rollout_seconds", "name"}
    return {key: value for key, value in summary.items() if key not in clocks}
