"""`Dialect`: one generation of the wire. Pure: bodies in, answers and callbacks out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from runner.records.completion import ToolSpec
from runner.records.quick import quick
from runner.records.rollout import Outcome
from runner.serve.start import Start
from runner.store.outbox import Owed

SUCCESS, FAILURE, CANCELLED = "success", "failure", "cancelled"
"""The words for how a rollout ended."""


@quick
class Settled:
    """A verdict: `word` and `message` are what the status endpoint says.

    They are what the callbacks say, so that a controller never reads two things about one rollout. `owed` is the last
    of these; None if the controller asked for none.
    """

    word: str
    message: str | None
    owed: Owed | None = None


class Dialect(Protocol):
    """What one generation says on the wire. Safe to share: it keeps nothing."""

    name: str
    """"agent-loop", "multi-sample", "single-sample", or "either" of the last two where a start does not tell."""
    path: str
    """Where its starts are posted."""
    full_status: int
    """What a start is answered with when there is no room: 429, or 503 where callers take any 4xx as fatal."""

    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a decoded body; `rollout_id` is what to call it if it brings none. Raises `Refused` (422)."""
        ...

    def accepted(self, start: Start, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """The answer to a start that is on disk: status and body."""
        ...

    def repeated(self, rollout_id: str, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """The answer to a start whose rollout, `rollout_id`, was accepted before."""
        ...

    def ended(self, start: Start, left: Outcome) -> Owed | None:
        """The callback that says how the agent part ended; None in a dialect that reports once, at the end.

        `left` is "ungraded" (the agent ended, graders have not spoken) or "failed" or "cancelled".
        """
        ...

    def settled(self, start: Start, outcome: Outcome) -> Settled:
        """How the rollout ended, with the callback that brings its reward, or the whole result."""
        ...
