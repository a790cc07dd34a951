"""A trajectory as a conversation that an endpoint takes: no two messages of the model in a row."""

from __future__ import annotations

from runner.agentic.trajectory import SAME_MESSAGE, Trajectory, TrajectoryStep
from runner.records.message import Message

GO_ON = "Go on."


def answered(trajectory: Trajectory) -> list[Message]:
    """The conversation, in which each message of the model is answered before its next one."""
    messages: list[Message] = []
    before: TrajectoryStep | None = None
    for step in trajectory.steps:
        if step.metadata.get(SAME_MESSAGE):
            continue
        message = step.to_message()
        if before is not None and message["role"] == messages[-1]["role"] == "assistant":
            messages.append(asks_on(before))
        messages.append(message)
        before = step
    return messages


def asks_on(step: TrajectoryStep) -> Message:
    """What to say after a message of the model that called nothing and ended nothing."""
    # An endpoint that is asked again after its own message would continue that message, or refuse.
    return {"role": "user", "content": step.metadata.get("correction") or GO_ON}
