"""The room that workers share, several of them played in one process: limits, whose turn it is, and deaths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.serve.workers.board import Board
from runner.serve.workers.shared_slots import SharedSlots
from runner.serve.workers.supervisor import worst

CONCURRENT, QUEUE = 2, 3


class Worker:
    """Its slots, what it began, and whom it poked; the poked act at once."""

    def __init__(self, path: Path, number: int, all_of_them: list[Worker]) -> None:
        self.board = Board(path, 2)
        self.board.beat(number)
        self.began: list[str] = []
        self.slots: SharedSlots[str] = SharedSlots(
            self.board,
            number,
            (CONCURRENT, QUEUE),
            self.began.append,
            lambda other: all_of_them[other].slots.pump(),
        )
        self.slots.opened()
        self.board.open(number)

    def take(self, name: str) -> bool:
        if self.slots.reserve():
            self.slots.enter(name, name)
            return True
        return False


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[Worker]]:
    workers: list[Worker] = []
    for number in range(2):
        workers.append(Worker(tmp_path / "board", number, workers))
    yield workers
    for each in workers:
        each.board.close()


def test_the_limits_are_of_both_and_turns_go_by_age(two: list[Worker]) -> None:
    first, second = two
    taken = [two[number % 2].take(f"r{number}") for number in range(7)]
    assert taken == [True] * (CONCURRENT + QUEUE) + [False] * 2
    assert (first.began, second.began) == (["r0"], ["r1"])  # r2 and r4 wait at the first, r3 at the second
    assert first.board.totals() == (2, 5)
    second.slots.leave()
    assert first.began == ["r0", "r2"]  # it was poked: r2 is older than the second's own r3
    first.slots.leave()
    assert (first.began, second.began) == (["r0", "r2"], ["r1", "r3"])
    assert first.slots.withdraw(["r4", "r4x"]) and not first.slots.withdraw(["r4"])
    first.slots.leave()
    second.slots.leave()
    assert first.board.totals() == (0, 0)


def test_who_is_late_in_the_queue_is_hurried_past_the_limit(two: list[Worker]) -> None:
    first = two[0]
    for name in ("a", "b", "c", "d"):
        assert first.take(name)
    assert first.slots.hurry(lambda item: item == "d") == 1
    assert (first.began, first.board.totals()) == (["a", "b", "d"], (3, 4))
    first.slots.leave()
    assert first.began == ["a", "b", "d"]  # still as many as may play
    first.slots.leave()
    assert first.began == ["a", "b", "d", "c"]


def test_the_places_of_a_dead_worker_are_kept_for_its_successor(two: list[Worker], tmp_path: Path) -> None:
    first, second = two
    for number in range(5):
        assert two[number % 2].take(f"r{number}")
    second.board.bury(1)
    assert not first.take("new")  # the dead one's rollouts come back
    assert first.board.totals() == (1, 5)
    first.slots.pump()
    assert first.began == ["r0", "r2"]
    heir = Worker(tmp_path / "board", 1, two)
    two[1] = heir
    for name in ("r1", "r3"):
        heir.slots.enter(name, name, reserved=False)
    assert heir.board.totals() == (2, 5) and heir.began == []
    first.slots.leave()
    first.slots.leave()
    assert first.began + heir.began == ["r0", "r2", "r4", "r1"]


def test_a_start_goes_to_who_holds_clearly_less_and_answers(two: list[Worker]) -> None:
    board = two[0].board
    board.hold(0, 3)
    assert board.emptiest(0, [0, 0]) == 1
    assert board.emptiest(0, [0, 2]) == 0  # two are on their way there
    assert board.emptiest(1, [0, 0]) == 1
    board.bury(1)
    assert board.emptiest(0, [0, 0]) == 0


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([0, 3], 3), ([3, 130], 130), ([0, -9], 3), ([1, 3], 1), ([0, 4], 3)]
)
def test_one_exit_code_for_several(codes: list[int], code: int) -> None:
    assert worst(codes) == code
