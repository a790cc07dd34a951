"""The fan-out: a listener that raises hurts nobody."""

from __future__ import annotations

import logging

import pytest

from runner.records.event import Event, RolloutStarted, ignore
from runner.telemetry.listeners import Listeners, listening


def test_one_that_raises_is_named_once_and_the_others_hear_everything(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise KeyError("lost")

    tell = Listeners([broken, heard.append, ignore])
    with caplog.at_level(logging.DEBUG):
        for number in range(5):
            tell(RolloutStarted(f"r{number}", 0.0, "row", 0))

    assert [event.rollout_id for event in heard] == ["r0", "r1", "r2", "r3", "r4"]
    [record] = caplog.records
    assert "broken failed on RolloutStarted" in record.getMessage()
    assert record.exc_info is not None


def test_nobody_listening_is_ignore_itself() -> None:
    assert listening(None, ignore) is ignore
    heard: list[Event] = []
    listening(None, heard.append)(RolloutStarted("r", 0.0, "row", 0))
    assert len(heard) == 1


def test_what_listeners_look_at_is_what_any_of_them_does() -> None:
    class One:
        hears = frozenset({RolloutStarted})

        def __call__(self, event: object) -> None: ...

    assert Listeners([One()]).hears == {RolloutStarted}
    assert Listeners([One(), print]).hears is None
