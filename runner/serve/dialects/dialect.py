"""`Dialect`: one generation of the wire. Pure: bodies in, answers and callbacks out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from runner.records.completion import ToolSpec
from runner.records.rollout import Outcome
from runner.serve.start import Start
from runner.store.outbox import Owed


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

    def said(self, start: Start, outcome: Outcome) -> tuple[str, str | None]:
        """The verdict as the status endpoint says it: success, failure or cancelled, and a message.

        The same as the callbacks say, so that a controller never reads two things about one rollout.
        """
        ...

    def settled(self, start: Start, outcome: Outcome) -> Owed | None:
        """The callback that brings the reward, or the whole result; None if the controller asked for none."""
        ...
