"""`ToolAnswers`: what a turn's tool calls came to."""

from __future__ import annotations

from collections.abc import Iterable

from runner.records.message import Message


class ToolAnswers(list[Message]):
    """The tool messages, in the order of the calls; `statuses` says in the same order how each call went.

    A status is "ok"; "error", the tool raised or answered with an error; "bad_call", its name or arguments were wrong;
    "timeout".
    """

    def __init__(self, messages: Iterable[Message], statuses: Iterable[str]) -> None:
        super().__init__(messages)
        self.statuses = tuple(statuses)
