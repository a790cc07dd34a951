"""What happens inside a rollout, told upward one way to a `Listener`.

Nothing below asks something above: it emits an event to the listener it was handed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from runner.records.completion import Completion
from runner.records.failure import Failure
from runner.records.message import Message, ToolCall
from runner.records.quick import quick
from runner.records.rollout import Outcome


@quick
class Event:
    """Something that happened in the rollout `rollout_id` at `at` seconds on the budget's monotonic clock."""

    rollout_id: str
    at: float


@quick
class RolloutStarted(Event):
    row_id: str
    attempt: int


@quick
class ModelCalled(Event):
    """A model call began. `messages` is the live conversation: read it at once or copy it.

    `sample_id` is the sample that it is said to be for, where the agent has named it.
    """

    turn: int
    messages: tuple[Message, ...]
    sample_id: str = ""


@quick
class ModelAnswered(Event):
    turn: int
    completion: Completion


@quick
class ModelFailed(Event):
    """A model call ended without an answer after `seconds`, its retries and their waits included."""

    turn: int
    failure: Failure
    seconds: float = 0.0
    retries: int = 0


@quick
class ModelBypassed(Event):
    """The agent's code asked the policy's address by itself: the engine saw neither the call nor what it gave."""

    seconds: float


@quick
class ToolStarted(Event):
    turn: int
    call: ToolCall


@quick
class ToolEnded(Event):
    """`status` is ok, error (the tool answered with an error), bad_call (arguments or name), or timeout.

    `message` is what the model was told when it is not ok; `where` the frame of user code that raised, and `detail` the
    traceback, neither of which the model sees.
    """

    turn: int
    call: ToolCall
    status: str
    seconds: float
    truncated: bool = False
    message: str = ""
    where: str = ""
    detail: str = ""


@quick
class ToolsAnswered(Event):
    """All calls of a turn are answered: their tool messages, in the order of the calls, or what stands for them."""

    turn: int
    messages: tuple[Message, ...]


@quick
class AgentEnded(Event):
    """The agent has ended by itself or at a limit; graders have not spoken yet. `left` is "ungraded"."""

    left: Outcome


@quick
class Graded(Event):
    grader: str
    value: float | None
    reason: str
    seconds: float


@quick
class Logged(Event):
    """A line the workflow's author wrote with `ctx.log_event`."""

    name: str
    data: Mapping[str, Any]


@quick
class RolloutEnded(Event):
    status: str
    stop_reason: str
    reward: float | None


class Listener(Protocol):
    """Hears every event of a rollout, in order, on the event loop. It must not block and must not raise."""

    def __call__(self, event: Event) -> None: ...


def ignore(event: Event) -> None:
    """The listener that hears nothing."""
