"""Exit codes, and the one error a command raises on purpose.

A script decides by the code alone, so each has one meaning: who must act next.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Why the process ended."""

    OK = 0
    """It did what was asked."""
    USAGE = 1
    """The command line or a file is wrong: the user's move. Nothing was spent."""
    GATE = 2
    """Everything ran, and a gate of `[eval] gates` was not met."""
    INCOMPLETE = 3
    """Rollouts are missing, too many failed, or we broke: the number at hand is not the whole answer."""
    INTERRUPTED = 130
    """Ctrl-C."""


class CommandError(Exception):
    """A command cannot do its work, and the user can mend it.

    `message` is one sentence that says what is wrong; `hint` what to do, with commands in backticks, or empty.
    """

    def __init__(self, message: str, hint: str = "", code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
