"""Who plays and who waits, against a plain model of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.serve.slots import Slots

STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "enter", "give back", "leave", "withdraw", "recover"]), st.integers(0, 9))
)


@settings(max_examples=200)
@given(st.integers(1, 3), st.integers(0, 4), STEPS)
def test_never_more_than_it_says_and_in_order(concurrent: int, queue: int, steps: list[tuple[str, int]]) -> None:
    begun: list[str] = []
    slots: Slots[str] = Slots(concurrent, queue, begun.append, clock=lambda: 0.0)
    waiting: list[str] = []
    reserved = running = 0
    for number, (step, pick) in enumerate(steps):
        name = f"r{number}"
        if step == "reserve":
            room = reserved + running + len(waiting) < concurrent + queue
            assert slots.reserve() is room
            reserved += room
        elif step == "give back" and reserved:
            slots.give_back()
            reserved -= 1
        elif step == "enter" and reserved:
            slots.enter(name, name)
            reserved -= 1
            waiting.append(name)
        elif step == "recover":
            slots.enter(name, name, reserved=False)
            waiting.append(name)
        elif step == "leave" and running:
            slots.leave()
            running -= 1
        elif step == "withdraw":
            name = waiting[pick % len(waiting)] if waiting else "nobody"
            assert slots.withdraw([name]) == [each for each in waiting if each == name]
            waiting = [other for other in waiting if other != name]
        while waiting and running < concurrent:
            assert begun.pop(0) == waiting.pop(0)
            running += 1
        assert not begun
        assert (slots.running, slots.waiting, slots.reserved) == (running, len(waiting), reserved)


def test_when_to_come_back_follows_what_was_measured() -> None:
    now = 0.0
    slots: Slots[str] = Slots(2, 0, lambda name: None, clock=lambda: now)
    for name in ("a", "b"):
        assert slots.reserve()
        slots.enter(name, name)
    assert not slots.reserve()
    assert slots.retry_after() == 5  # nothing has ended: nothing is known
    for name in ("c", "d"):
        now += 3.0
        slots.leave()
        assert slots.reserve()
        slots.enter(name, name)
    assert not slots.reserve()
    first = slots.retry_after()
    assert 2 <= first <= 4  # one ends every three seconds or so
    assert not slots.reserve()
    assert slots.retry_after() > first  # somebody is ahead
    now += 600.0
    assert slots.retry_after() == 60


def test_those_whose_time_is_over_begin_at_once_and_end() -> None:
    begun: list[str] = []
    slots: Slots[str] = Slots(1, 5, begun.append)
    for name in ("plays", "late", "waits"):
        assert slots.reserve()
        slots.enter(name, name)
    slots.hurry(lambda name: name == "late")
    assert begun == ["plays", "late"] and slots.running == 2
    slots.leave()
    assert begun == ["plays", "late"]
    slots.leave()
    assert begun == ["plays", "late", "waits"]
