"""A streamed answer on its way: bytes in, the body that a call without streaming would have returned out."""

from __future__ import annotations

from typing import Any

from runner.models.sse import DeltaAssembler, EventParser, StreamError
from runner.models.wire import parse_json

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class StreamedAnswer:
    """Feed it the body of an event stream. It costs nothing where none comes, so every call may hold one."""

    __slots__ = ("_deltas", "_done", "_events")

    def __init__(self) -> None:
        self._events: EventParser | None = None
        self._deltas: DeltaAssembler | None = None
        self._done = False

    @property
    def began(self) -> bool:
        """Whether any of it has come."""
        return self._events is not None

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when `[DONE]` has come. Raises ErrorFrame, StreamError, ModelGarbled."""
        if self._events is None or self._deltas is None:
            self._events, self._deltas = EventParser(), DeltaAssembler()
        for event in self._events.feed(data):
            if event.strip() == b"[DONE]":
                self._done = True
                break
            self._deltas.add(parse_json(event))
        return self._done

    def result(self) -> dict[str, Any]:
        """The whole answer. Raises StreamError if it broke off."""
        if self._deltas is None or not (self._done or self._deltas.complete):
            raise StreamError("the stream ended before the answer was finished")
        return self._deltas.result()


def is_stream(body: bytes) -> bool:
    """Whether a body is an event stream, whatever its server calls it: none of its fields begins a JSON value."""
    return body[:16].lstrip().startswith(_FIELDS)
