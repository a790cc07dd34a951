"""The person as the engine's guide: where a rollout waits, what they may type there, and how they leave it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from runner.batch.figures import many
from runner.cli.debug.clock import PausingClock
from runner.cli.debug.keys import EditProblem, Keys, Typed
from runner.cli.debug.screen import Screen
from runner.records.completion import Completion
from runner.records.event import Event, Logged
from runner.records.failure import Failure
from runner.records.limits import LIMIT_REASONS
from runner.records.message import Message
from runner.records.quick import quick
from runner.runtime.stepping import Request
from runner.tools.toolbox import Answer


@quick
class Leave:
    """Why a rollout is left: to another row (`goal`, as typed), for good, or by Ctrl-C."""

    goal: str = ""
    interrupted: bool = False


class Person:
    """Pauses at each step of one rollout. `leave` ends it: nobody goes on behind a pause that was left."""

    def __init__(self, keys: Keys, screen: Screen, clock: PausingClock, leave: Callable[[Leave], None]) -> None:
        self._keys = keys
        self._screen = screen
        self._clock = clock
        self._leave = leave
        self._running = False
        self._last: Request | None = None
        self._said: list[Message] = []
        self.edited = False
        self.asked_again = 0
        self.limits_lifted: list[str] = []

    @property
    def info(self) -> dict[str, Any]:
        """What makes this no real rollout, for its record."""
        found = {"edited": self.edited, "asked_again": self.asked_again, "limits_lifted": self.limits_lifted}
        return {key: value for key, value in found.items() if value}

    def marks(self) -> list[str]:
        """The same in words."""
        words = ["a message was edited by hand: this is no real rollout"] if self.edited else []
        if self.asked_again:
            words.append(f"{many(self.asked_again, 'call')} asked again by hand")
        return words + [f"`limits.{limit}` was set aside" for limit in self.limits_lifted]

    def listen(self, event: Event) -> None:
        if isinstance(event, Logged):
            self._screen.logged(event.name, event.data)

    async def asks(self, request: Request) -> None:
        self._screen.request(request)
        self._last, self._said = request, []
        while not self._running:
            typed = await self._ask(f"turn {request.turn}", "request", request.messages)
            if typed.key == "n":
                break
            if typed.key == "e":
                self._edit_last(request, typed.rest)
            else:
                self._other(typed, "the model has not been asked yet: n sends the request")
        self._screen.wait("asking the model")

    async def answered(self, request: Request, answers: Sequence[Completion]) -> Completion | None:
        self._last = request
        several = len(answers) > 1
        for at, each in enumerate(answers, 1) if several else ():
            self._screen.answer(each, f"answer {at}")
        if not several:
            self._screen.answer(answers[0])
        chosen = answers[-1]
        while not self._running:
            self._said = [chosen.message]
            typed = await self._ask(
                f"turn {request.turn} answer", "answers" if several else "answer", [*request.messages, chosen.message]
            )
            if typed.key == "n":
                break
            if typed.key.isdigit() and 1 <= int(typed.key) <= len(answers):
                chosen = answers[int(typed.key) - 1]
                break
            if typed.key == "r":
                self.asked_again += 1
                self._screen.wait("asking the model again")
                return None
            if typed.key == "e":
                chosen = self._edit_answer(chosen, typed.rest)
            else:
                self._other(typed)
        self._said = [chosen.message]
        return chosen

    def _edit_answer(self, chosen: Completion, text: str) -> Completion:
        message = self._edit(chosen.message, text)
        if message is chosen.message:
            return chosen
        # What the endpoint said about its own tokens is not true of these words.
        made = replace(chosen, message=message, token_ids=None, logprobs=None)
        self._screen.answer(made, "as edited")
        return made

    async def used(self, answers: Sequence[Answer]) -> bool:
        self._screen.tools(answers)
        messages = [answer.message for answer in answers]
        if all(answer.result.status == "ok" for answer in answers):
            self._said += messages
            return False
        while not self._running:
            typed = await self._ask("tools", "tools", [*self._conversation(), *messages])
            if typed.key == "r":
                self.asked_again += 1
                return True
            if typed.key == "n":
                break
            self._other(typed, "edit the tool's message in the next request")
        self._said += messages
        return False

    async def failed(self, failure: Failure, request: Request | None, again: bool) -> bool:
        self._screen.failure(failure)
        while not self._running:
            kind = "limit" if failure.kind in LIMIT_REASONS else "failure"
            typed = await self._ask(failure.kind, kind, self._conversation())
            if typed.key == "n":
                break
            if typed.key == "r" and again:
                self.asked_again += 1
                self._screen.wait("trying again")
                return True
            if typed.key == "e" and request is not None and again:
                self._edit_last(request, typed.rest)
            else:
                self._other(typed, "nothing can be tried again here: n goes on")
        return False

    def lifted(self, limit: str) -> None:
        self.limits_lifted.append(limit)
        self._screen.say(f"`limits.{limit}` is set aside for this rollout")

    def _conversation(self) -> list[Message]:
        return [*(self._last.messages if self._last is not None else ()), *self._said]

    async def _ask(self, where: str, kind: str, messages: Sequence[Message]) -> Typed:
        """The next command that is not one of those which work everywhere."""
        while True:
            try:
                with self._clock.stopped():
                    typed = self._keys.ask(self._screen.prompt(where, kind))
            except KeyboardInterrupt:
                await self._go(Leave(interrupted=True))
            if typed is None or typed.key in ("q", "quit"):
                await self._go(Leave())
            if typed.key == "g" and typed.rest:
                await self._go(Leave(typed.rest))
            if typed.key == "c":
                self._running = True
                return Typed("n")
            if typed.key == "m":
                self._screen.messages(messages, typed.rest)
            elif typed.key in ("?", "h", "help"):
                self._screen.help()
            else:
                return typed

    async def _go(self, why: Leave) -> NoReturn:
        self._leave(why)
        await asyncio.Event().wait()  # until the rollout is cancelled, which ends this task
        raise AssertionError("a rollout that was left went on")

    def _edit(self, message: Message, text: str) -> Message:
        try:
            with self._clock.stopped():
                made = self._keys.edit(message, text)
        except EditProblem as problem:
            self._screen.complain(str(problem))
            return message
        if made == message:
            self._screen.say("nothing was changed")
            return message
        self.edited = True
        return made

    def _edit_last(self, request: Request, text: str) -> None:
        made = self._edit(request.messages[-1], text)
        if made is not request.messages[-1]:
            request.messages[-1] = made
            self._screen.edited(len(request.messages) - 1, made)

    def _other(self, typed: Typed, instead: str = "") -> None:
        """A key that works at most steps, or one that has no meaning here."""
        request = self._last
        if typed.key == "t" and request is not None:
            self._screen.offered(request, typed.rest)
        elif typed.key == "s" and request is not None:
            self._screen.sampling(request)
        elif typed.key == "g":
            self._screen.complain("g takes a row: `g 3`, or `g 3/1` for its attempt 1")
        elif typed.key in ("r", "e") and instead:
            self._screen.complain(instead)
        else:
            self._screen.complain(f"`{typed.key}` is no key here; ? lists them")
