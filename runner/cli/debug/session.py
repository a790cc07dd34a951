"""Rollouts one after another, as a person asks for them: play one, show how it ended, go to the next."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import replace

from runner.batch.transcript import safe
from runner.build.live import Live
from runner.cli.consent import is_yes, question_text
from runner.cli.console import Console
from runner.cli.debug.clock import PausingClock
from runner.cli.debug.guide import Leave, Person
from runner.cli.debug.keys import Keys, Typed
from runner.cli.debug.screen import Screen
from runner.datasets.dataset import DatasetError, Row
from runner.records.rollout import Outcome, RolloutRequest
from runner.runtime.rollout import run_rollout
from runner.runtime.stepping import Stepping
from runner.runtime.stop import Stop, current_stop
from runner.tools.tool import Question


class NoSuchRow(Exception):
    """The dataset has no row of that name; its words say what there is."""


def find_row(live: Live, name: str) -> Row:
    """The row whose id is `name`, or whose place from 0; the first one for an empty name. Raises `NoSuchRow`."""
    dataset = live.plan.dataset
    assert dataset is not None  # the command has seen to that
    placed: Row | None = None
    count = 0
    for row in dataset.rows():
        count += 1
        if not name or row.id == name:
            return row
        if placed is None and name == str(row.index):
            placed = row
    if placed is None:
        raise NoSuchRow(f"there is no row `{name}` among the {count} of `{dataset.path.name}`")
    return placed


def row_after(live: Live, row: Row) -> Row | None:
    """The row that follows in the dataset's order, None behind the last."""
    assert live.plan.dataset is not None
    rows = iter(live.plan.dataset.rows())
    return next((next(rows, None) for each in rows if each.index == row.index), None)


class Session:
    """One sitting. With `as_json` each rollout that ended, or was left, is a line of JSON on stdout."""

    def __init__(self, live: Live, console: Console, clock: PausingClock, as_json: bool) -> None:
        self._live = live
        self._console = console
        self._clock = clock
        live.ask = self._consents
        self._as_json = as_json
        self._keys = Keys(console)
        self._screen = Screen(console)

    async def _consents(self, question: Question) -> bool:
        with self._clock.stopped():
            typed = self._keys.ask(question_text(self._console, question))
        return typed is not None and is_yes(typed.key)

    async def run(self, row: Row, attempt: int) -> None:
        """Play from `row` on, until the person leaves. Raises KeyboardInterrupt on Ctrl-C."""
        going: tuple[Row, int] | None = (row, attempt)
        while going is not None:
            row, attempt = going
            try:
                going = await self._play(row, attempt)
            except DatasetError as error:  # this row's prompt cannot be made; another's may
                self._screen.complain(str(error))
                going = self._at_end(row, attempt, [])

    async def _play(self, row: Row, attempt: int) -> tuple[Row, int] | None:
        """Play one rollout and say where to go next."""
        request = self._live.plan.request(row, attempt)
        self._screen.begin(request)
        outcome, person, left = await self._walk(request)
        if person.info:
            info = {**outcome.sample.info, **person.info}
            outcome = replace(outcome, sample=replace(outcome.sample, info=info))
        if self._as_json:
            self._print(outcome)
        if left is None:
            self._screen.outcome(outcome, person.marks())
            return self._at_end(row, attempt, list(outcome.sample.messages))
        if left.interrupted:
            raise KeyboardInterrupt
        return self._goal(left.goal, row, attempt) if left.goal else None

    async def _walk(self, request: RolloutRequest) -> tuple[Outcome, Person, Leave | None]:
        stop, left = Stop(), list[Leave]()

        def leave(why: Leave) -> None:
            left.append(why)
            stop.reason = "cancelled"
            task.cancel()

        person = Person(self._keys, self._screen, self._clock, leave)
        context = contextvars.copy_context()
        context.run(current_stop.set, stop)
        playing = run_rollout(self._live, request, person.listen, stepping=Stepping(person, self._clock))
        task = asyncio.get_running_loop().create_task(playing, context=context)
        try:
            outcome = await task
        finally:
            self._screen.settle()
        return outcome, person, left[0] if left else None

    def _print(self, outcome: Outcome) -> None:
        from runner.store.record import to_record

        self._console.print_json(to_record(outcome, self._live.plan.digests), indent=None)
        self._console.flush()

    def _at_end(self, row: Row, attempt: int, messages: list[dict[str, object]]) -> tuple[Row, int] | None:
        while True:
            typed = self._keys.ask(self._screen.prompt("ended", "end"))
            if typed is None or typed.key in ("q", "quit"):
                return None
            place = self._next(typed, row, attempt)
            if place is not None:
                return place
            if typed.key == "m":
                self._screen.messages(messages, typed.rest)
            elif typed.key in ("?", "h", "help"):
                self._screen.help()
            elif typed.key not in ("n", "g"):
                self._screen.complain(f"`{safe(typed.key)}` is no key here: the rollout has ended; ? lists them")

    def _next(self, typed: Typed, row: Row, attempt: int) -> tuple[Row, int] | None:
        """Where a key leads, None if it leads nowhere; then the reason was said."""
        if typed.key == "r":
            return row, attempt
        if typed.key == "n":
            following = row_after(self._live, row)
            if following is None:
                self._screen.say("this was the last row; g goes to another, q leaves")
            return None if following is None else (following, 0)
        if typed.key == "g":
            return self._find(typed.rest)
        return None

    def _goal(self, name: str, row: Row, attempt: int) -> tuple[Row, int] | None:
        """Where `g` of a rollout that was left leads; if nowhere, it is played from its beginning."""
        return self._find(name) or (row, attempt)

    def _find(self, goal: str) -> tuple[Row, int] | None:
        name, slash, attempt = goal.rpartition("/")
        try:
            if slash and attempt.isdigit():
                return find_row(self._live, name), int(attempt)
            return find_row(self._live, goal), 0
        except (NoSuchRow, DatasetError) as error:
            self._screen.complain(str(error))
            return None
