"""`Summary`: what a server has done since it last said so, in one line for whoever watches it work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from runner.serve.delivery.deliveries import Deliveries
from runner.serve.engine import Engine
from runner.serve.tally import Tally

_WORDS = ("scored", "ungraded", "failed", "cancelled")


class Summary:
    """One worker's part of the line."""

    def __init__(self, engine: Engine, deliveries: Deliveries, tally: Tally) -> None:
        self._engine = engine
        self._deliveries = deliveries
        self._tally = tally
        self._accepted = 0
        self._asked = monotonic()

    def take(self) -> dict[str, Any]:
        """What was accepted and what ended since this was last asked, and what plays, waits and is owed now."""
        load, backlog = self._engine.load(), self._deliveries.backlog()
        accepted, self._accepted = load.accepted - self._accepted, load.accepted
        ended, self._tally.ended = self._tally.ended, Counter()
        before, self._asked = self._asked, monotonic()
        return {
            "seconds": self._asked - before,
            "accepted": accepted,
            "ended": dict(ended),
            "now": {"play": load.running, "wait": load.queued, "owed": backlog.pending},
        }


def line_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """The parts of all workers as one line, the speaker's first; "" if nothing was accepted and nothing ended."""
    accepted, ended, now = 0, Counter[str](), Counter[str]()
    for part in parts:
        accepted += part["accepted"]
        ended.update(part["ended"])
        now.update(part["now"])
    if not accepted and not ended:
        return ""
    known = [word for word in _WORDS if ended[word]]
    how = ", ".join(f"{ended[word]} {word}" for word in [*known, *(ended.keys() - set(_WORDS))])
    callbacks = "1 callback" if now["owed"] == 1 else f"{now['owed']} callbacks"
    done = f"{accepted} accepted, {ended.total()} ended{f' ({how})' if how else ''}"
    return f"in {parts[0]['seconds']:.3g} s: {done}; now {now['play']} play, {now['wait']} wait, {callbacks} owed"
