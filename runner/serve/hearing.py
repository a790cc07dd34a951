"""`Ear`: what is told of one rollout reaches whoever looks on, under the name that it has for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from runner.records.event import AgentEnded, Event, Listener
from runner.records.rollout import Outcome
from runner.serve.played import Played


class Ear:
    """Hears of one rollout, and passes it on under its label; `left` is told what its agent left.

    `hears` is what somebody looks at, None for all of it.
    """

    __slots__ = ("_left", "_listen", "_played", "hears")

    def __init__(
        self,
        hears: frozenset[type[Event]] | None,
        listen: Listener,
        left: Callable[[Played, Outcome], None],
        played: Played,
    ) -> None:
        self.hears = hears
        self._listen = listen
        self._left = left
        self._played = played

    def __call__(self, event: Event) -> None:
        if type(event) is AgentEnded:
            self._left(self._played, event.left)
        label = self._played.label
        self._listen(event if label == event.rollout_id else replace(event, rollout_id=label))
