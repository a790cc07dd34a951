"""What a rollout owes its controller, and how that is handed on to be posted."""

from __future__ import annotations

from collections.abc import Sequence
from time import time

from runner.records.rollout import Outcome
from runner.serve.dialects.dialect import Settled
from runner.serve.played import Played
from runner.store.outbox import Delivery, Owed


def owed_for(played: Played, outcome: Outcome, settled: Settled) -> list[Owed]:
    """What is owed for a verdict, the agent's end before it if nobody was told of that."""
    owed = []
    if not played.told and (ended := played.dialect.ended(played.start, outcome)) is not None:
        owed.append(ended)
    if settled.owed is not None:
        owed.append(settled.owed)
    return owed


def deliveries_of(played: Played, owed: Sequence[Owed], first: int) -> list[Delivery]:
    """The same as deliveries; `first` is the place of the first among all callbacks of the rollout."""
    now = time()
    return [
        Delivery(played.attempt_id, played.name, each.channel, first + place, each, 0, now, now, "")
        for place, each in enumerate(owed)
    ]
