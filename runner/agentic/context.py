"""`AgentContext`: the context of a rollout as an agent of the third seed is given it.

It adds what such an agent has of its own: a limit of steps, a temperature and a number of tokens, and somebody who
notes each step. Everything else is the engine's: its limits, its records, its tools.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runner.agentic.adapted import rewards
from runner.agentic.steps import Steps
from runner.records.completion import Completion, ToolSpec
from runner.records.failure import LimitReached
from runner.records.message import Message, ToolCall, text_of, tool_calls_of
from runner.runtime.recorder import call_record
from runner.workflows.answers import ToolAnswers
from runner.workflows.workflow import AgentWorkflowContext, Tell

MAX_STEPS = "max_steps"


class AgentContext(AgentWorkflowContext[Any]):
    """`ctx` with `defaults` for what `[sampling]` leaves open. `steps` is told what happens; None: nobody is.

    Without `takes_rewards` the rewards of tools are left to the agent's own code.
    With `max_steps`, a model that has used up its steps is not asked again: the rollout ends with that stop reason.
    """

    def __init__(
        self,
        ctx: AgentWorkflowContext[Any],
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        max_steps: int | None = None,
        steps: Steps | None = None,
        takes_rewards: bool = True,
    ) -> None:
        self.__dict__.update(ctx.__dict__)
        own = {"temperature": temperature, "max_tokens": max_tokens}
        said = ctx.terms.sampling
        self._defaults = {key: value for key, value in own.items() if value is not None and getattr(said, key) is None}
        self._max_steps = max_steps
        self._steps = steps
        self._takes_rewards = takes_rewards
        self._seen = 0
        self._more = 0
        self._turn = 0
        self.reward: float | None = None
        """What tools and interactions have given so far; None while nobody has."""

    def rewarded(self, reward: float) -> None:
        """The last message of the model is worth so much."""
        self.reward = (self.reward or 0.0) + reward
        if self._steps is not None:
            self._steps.rewarded(reward)

    async def chat(
        self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] | None = None, **sampling: Any
    ) -> Completion:
        self._check_steps(messages)
        self._observe(messages)
        completion = await super().chat(messages, tools=tools, **{**self._defaults, **sampling})
        if self._steps is not None:
            self._turn += 1
            self._steps.said(dict(completion.message), call_record(self._turn, completion))
            self._seen += 1
        return completion

    async def call_tools(self, calls: Sequence[ToolCall], *, tell: Tell | None = None) -> ToolAnswers:
        named = [
            call if call.id else replace(call, id=f"call_{self._seen}_{place}") for place, call in enumerate(calls)
        ]
        if self._steps is not None:
            self._steps.called(named)
        if named and named[0].as_text:
            self._more += 2 * (len(named) - 1)  # one message each way, whatever it holds

        def note(answers: ToolAnswers) -> Sequence[Message]:
            told = list(answers) if tell is None else list(tell(answers))
            given = [reward_of(call) for call in named] if self._takes_rewards else None
            for reward in given or ():
                if reward is not None:
                    self.reward = (self.reward or 0.0) + reward
            if self._steps is not None:
                contents = [text_of(answer) for answer in answers]
                self._steps.answered(named, contents, answers.statuses, told, given)
                self._seen += len(told)
            return told

        return await super().call_tools(named, tell=note)

    def _observe(self, messages: Sequence[Message]) -> None:
        """Note what the model is sent and was not sent before: a prompt, a correction, a nudge."""
        if self._steps is None:
            return
        if len(messages) < self._seen:
            self._seen = len(messages)  # the agent has shortened its conversation: nothing new
        for message in messages[self._seen :]:
            _tell(self._steps, message)
        self._seen = len(messages)

    def _check_steps(self, messages: Sequence[Message]) -> None:
        """Raises `LimitReached` when the conversation has as many steps as it may."""
        if self._max_steps is None:
            return
        told = [message for message in messages if message.get("role") != "system"]
        steps = self._more + sum(max(1, len(tool_calls_of(message))) for message in told)
        if steps >= self._max_steps:
            said = f"the limit of {self._max_steps} steps is reached"
            self.driver.reached(MAX_STEPS, said)
            raise LimitReached(said, kind=MAX_STEPS)


def _tell(steps: Steps, message: Message) -> None:
    role = message.get("role")
    if role == "assistant":
        steps.said(message)
        if calls := tool_calls_of(message):
            steps.called(calls)
    elif role == "tool":
        call = ToolCall(str(message.get("tool_call_id") or ""), str(message.get("name") or ""), "{}")
        steps.answered([call], [text_of(message)], [], [message])
    else:
        steps.observed(message)


def reward_of(call: ToolCall) -> float | None:
    """The reward that a tool has left for this call, taken."""
    left = rewards.get() or []
    for entry in left:
        name, arguments, reward = entry
        if arguments is not None and name == call.name and _same(arguments, call.arguments):
            left.remove(entry)
            return reward
    return None


def _same(arguments: Any, written: str) -> bool:
    """Whether a tool was called with what was written: with that, and defaults of its schema."""
    try:
        given = json.loads(written or "{}")
    except ValueError:
        return False
    return isinstance(given, dict) and given.items() <= arguments.items()
