"""`Listeners`: one ear for the runtime, many behind it.

Whatever watches a rollout must not be able to hurt it, or each other: a listener that raises is named in the log once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from runner.records.event import Event, Listener, ignore

_log = logging.getLogger(__name__)


class Listeners:
    """A `Listener` that passes every event on to each of `listeners`, in their order.

    One that raises hears the next event again; its first error of each type is logged with its traceback. A listener
    may say by `hears` which kinds of events it looks at, and by a mapping, with which ear of its each; `hears` here is
    what all of them look at, None for all events.
    """

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self._listeners = tuple(listener for listener in listeners if listener is not ignore)
        self._told: set[tuple[int, type[BaseException]]] = set()
        self._ears: dict[type[Event], tuple[tuple[Listener, Listener], ...]] = {}
        self.hears = _heard_by(self._listeners)

    def __call__(self, event: Event) -> None:
        ears = self._ears.get(type(event))
        if ears is None:
            ears = self._ears[type(event)] = tuple(self._ears_for(type(event)))
        for ear, listener in ears:
            try:
                ear(event)
            except Exception as error:
                self._broken(listener, event, error)

    def _ears_for(self, kind: type[Event]) -> Iterator[tuple[Listener, Listener]]:
        for listener in self._listeners:
            kinds = getattr(listener, "hears", None)
            if kinds is None or kind in kinds:
                yield (kinds[kind] if isinstance(kinds, Mapping) else listener), listener

    def _broken(self, listener: Listener, event: Event, error: Exception) -> None:
        mark = id(listener), type(error)
        if mark in self._told:
            return
        self._told.add(mark)
        name = getattr(listener, "__qualname__", None) or type(listener).__qualname__
        _log.error(
            "the listener %s failed on %s and goes on with the next event; said once for this kind of error",
            name,
            type(event).__name__,
            exc_info=error,
        )


def _heard_by(listeners: Iterable[Listener]) -> frozenset[type[Event]] | None:
    """The kinds of events that somebody there looks at; None for all of them."""
    every: set[type[Event]] = set()
    for listener in listeners:
        kinds = getattr(listener, "hears", None)
        if kinds is None:
            return None
        every.update(kinds)
    return frozenset(every)


def heard_as(rollout_id: str, listen: Listener) -> Listener:
    """`listen`, told of one rollout under another name than its own."""
    if listen is ignore:
        return ignore
    return _Renaming(rollout_id, listen)


class _Renaming:
    def __init__(self, rollout_id: str, listen: Listener) -> None:
        self._rollout_id = rollout_id
        self._listen = listen
        self.hears: Collection[type[Event]] | None = getattr(listen, "hears", None)

    def __call__(self, event: Event) -> None:
        self._listen(replace(event, rollout_id=self._rollout_id))


def listening(*listeners: Listener | None) -> Listener:
    """One listener for those that are there: `ignore` for none of them, so that the runtime makes no events at all."""
    there = [listener for listener in listeners if listener is not None and listener is not ignore]
    return Listeners(there) if there else ignore
