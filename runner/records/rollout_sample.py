"""`RolloutSample`: a sample as the code of a user knows it, who fills it in and hands it to the engine or to a grader.

Its `messages` are the agent's own; `trajectory_messages` the same in chat form, where the two differ.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from runner.records.message import Message

MAIN: Final = "main"
"""What a sample is called that nobody has named."""


class _Same:
    """Says: as `messages`."""

    def __repr__(self) -> str:
        return "a copy of messages"


_SAME: Final = _Same()


@dataclass(slots=True)
class RolloutSample:
    """The sample as generation 2 and 3 know it; `reward` is what a grader sets.

    `trajectory_messages` is a copy of `messages` unless it is given; None where there is none in chat form.
    """

    messages: list[Message] = field(default_factory=list)
    label: str | None = None
    reward: float | None = None
    remove_sample: bool = False
    metrics: dict[str, float] = field(default_factory=dict)
    extra_fields: dict[str, Any] = field(default_factory=dict)
    id: str = MAIN
    trajectory_messages: Any = field(default=_SAME, repr=False)

    def __post_init__(self) -> None:
        if self.trajectory_messages is _SAME:
            self.trajectory_messages = _copied(self.messages)

    def json_safe_copy(self) -> RolloutSample:
        """A copy that is JSON all through; whatever is none is written as its text."""
        made = {name: json.loads(json.dumps(getattr(self, name), default=str)) for name in self.__slots__}
        return RolloutSample(**made)


def _copied(messages: list[Message]) -> list[Message] | None:
    try:
        return deepcopy(messages)
    except Exception:  # something in them cannot be copied: there is no second form of these
        return None
