"""`AgentLoop`: the first generation. Tools are told in the answer to the start, and one callback brings everything.

What a finish reason is called there (`finish_reason_of`):

    ours                                    theirs
    final_answer, finish_tool, empty_answer stop
    max_tokens (an answer was cut off)      length
    context_overflow                        length
    max_total_tokens                        max_tokens
    max_turns, content_filter, any other    the same word
    a rollout that failed                   error

A rollout whose grader failed is COMPLETED without a reward, and `error_message` says why: the agent did its part, and
a caller that can grade for itself still has the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from runner.models.address import header_value
from runner.records.completion import ToolSpec
from runner.records.rollout import Outcome
from runner.serve.dialects.addresses import joined
from runner.serve.dialects.category import error_text, failure_text
from runner.serve.dialects.dialect import CANCELLED, FAILURE, SUCCESS, Settled
from runner.serve.dialects.encode import encode, scrubbed, strict
from runner.serve.dialects.fields import Fields, Key, Messages, cleaned, read
from runner.serve.dialects.rollout_report import ended_well, finite_reward
from runner.serve.dialects.sample import Parts, encoded
from runner.serve.dialects.sampling import read_params
from runner.serve.start import Chat, Start
from runner.store.outbox import Owed

_FINISH = {
    "final_answer": "stop",
    "finish_tool": "stop",
    "empty_answer": "stop",
    "max_tokens": "length",
    "context_overflow": "length",
    "max_total_tokens": "max_tokens",
}


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("rollout_id must not be only whitespace")
    return text


class AgentLoopFields(Fields):
    """The body of a start."""

    rollout_id: Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_not_blank)]
    server_url: str
    messages: Messages
    completion_params: dict[str, Any]
    tool_server_url: str | None = None
    max_turns: int = 10
    max_tokens_total: int = 8192
    metadata: dict[str, Any] = Field(default_factory=dict)
    api_key: Key | None = None
    idempotency_key: Annotated[str, Field(max_length=1024)] | None = None


class AgentLoop:
    """The dialect. `sample` goes out as `x-sample-id`, `secrets` is what no error text may hold."""

    name = "agent-loop"
    path = "/v1/rollout/init"
    full_status = 503

    def __init__(
        self,
        sample: str = "main",
        *,
        stream: bool = False,
        max_messages: int | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._sample = sample
        self._stream = stream
        self._max_messages = max_messages
        self._secrets = tuple(secrets)
        self._announced: tuple[Sequence[ToolSpec], str] = (), "[]"

    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a body. Raises `Refused` (422)."""
        fields = read(AgentLoopFields, body)
        notes: list[str] = []
        asked = read_params(cleaned(fields.completion_params, "completion_params", notes), notes)
        named = fields.rollout_id
        again = fields.idempotency_key
        return Start(
            dialect=self.name,
            wire_id=named,
            rollout_id=named,
            # Each in a namespace of its own: a key that equals another rollout's id does not join that rollout.
            keys=(f"key:{again}" if again else f"id:{named}",),
            prompt=tuple(cleaned(fields.messages, "messages", notes)),
            chat=Chat(
                url=joined("server_url", fields.server_url, "/v1/chat/completions"),
                key=fields.api_key or None,
                model=asked.model or "default",
                # Its controllers route by the body's `rollout_id`; who routes by headers finds them, too.
                headers={"x-rollout-id": header_value(named), "x-sample-id": self._sample},
                extra={"rollout_id": named, "logprobs": asked.logprobs},
                tools=False,
                stream=self._stream,
            ),
            completion_url=joined("server_url", fields.server_url, "/v1/rollout/completed"),
            callback_key=fields.api_key or None,
            metadata=cleaned(fields.metadata, "metadata", notes),
            sampling=asked.sampling,
            limits=_limits(fields, notes),
            notes=tuple(notes),
        )

    def accepted(self, start: Start, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """202 with the rollout's tools, their JSON Schemas whole."""
        return self.repeated(start.rollout_id, tools)

    def repeated(self, rollout_id: str, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """The same, with the id of the rollout that was accepted first."""
        offered, announced = self._announced
        if offered is not tools:  # they are the same for every start of a plan, and most of the answer
            announced = encode([_tool(tool) for tool in tools]).decode()
            self._announced = tools, announced
        return 202, f'{{"rollout_id":{encode(rollout_id).decode()},"tools":{announced}}}'.encode()

    def ended(self, start: Start, left: Outcome) -> Owed | None:
        """None: this generation is told once, at the end."""
        return None

    def settled(self, start: Start, outcome: Outcome) -> Settled:
        """With the completion; fields without a value are left out of it.

        A rollout that could only not be graded is a success without a reward.
        """
        fine = ended_well(outcome)
        reward, problem = finite_reward(outcome), self._problem(start, outcome)

        def body(parts: Parts) -> bytes:
            told = {
                "rollout_id": start.wire_id,
                "status": "COMPLETED" if fine else "ERROR",
                # What an agent that failed had said so far is for the archive.
                "final_messages": parts.messages if fine else [],
                "finish_reason": finish_reason_of(outcome),
                "error_message": problem,
                "reward": reward,
                "metrics": metrics_of(outcome),
                "extra_fields": parts.extra if fine else {},
            }
            return strict({name: value for name, value in told.items() if value is not None})

        sent = encoded(body, outcome.sample, self._max_messages)
        owed = Owed("completion", start.completion_url, sent, start.callback_key)
        if outcome.status == "cancelled":
            return Settled(CANCELLED, CANCELLED, owed)
        return Settled(SUCCESS if fine else FAILURE, problem, owed)

    def _problem(self, start: Start, outcome: Outcome) -> str | None:
        """Why it failed, or why there is no reward although graders were asked."""
        if not ended_well(outcome):
            return error_text(failure_text(start, outcome), start, self._secrets)
        if outcome.status == "scored":
            return None if finite_reward(outcome) is not None else "no reward: the graders gave no finite number"
        failure = outcome.failure
        if failure is None or (failure.kind == "no_grader" and not outcome.scores):
            return None  # nothing was to be graded
        return error_text(f"no reward: {failure.message or failure.kind}", start, self._secrets)


def finish_reason_of(outcome: Outcome) -> str:
    """How the agent stopped, in this generation's words (see the module's table)."""
    if not ended_well(outcome):
        return "error"
    word = scrubbed(outcome.ended or outcome.stop_reason)[:256]
    return _FINISH.get(word, word or "stop")


def metrics_of(outcome: Outcome) -> dict[str, float] | None:
    """The eight numbers of a completion, latencies in milliseconds; None of a rollout that never played.

    An agent loop runs its tools itself and counts them with `ctx.record_tool_call`: what it counted is told.
    """
    timing, calls, counted = outcome.timing, outcome.sample.calls, outcome.sample.metrics
    if not timing:
        return None
    answered = [call for call in calls if not call.get("error")]
    return {
        "total_latency_ms": _milliseconds(timing.get("total", 0.0)),
        "llm_latency_ms": _milliseconds(timing.get("model", 0.0)),
        "tool_latency_ms": counted.get("tool_latency_ms", _milliseconds(timing.get("tool", 0.0))),
        "num_llm_calls": len(answered),
        "num_tool_calls": int(counted.get("num_tool_calls", len(outcome.sample.tool_spans))),
        "prompt_tokens": outcome.usage.input_tokens,
        "response_tokens": outcome.usage.output_tokens,
        "max_context_tokens": max((_context(call) for call in answered), default=0),
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _context(call: Mapping[str, Any]) -> int:
    """Tokens in the window when a call was answered: its prompt and its answer."""
    usage = call.get("usage") or {}
    return int(usage.get("total_tokens") or 0)


def _limits(fields: AgentLoopFields, notes: list[str]) -> dict[str, int]:
    """The limits that the body names; without a word the file's own hold."""
    limits: dict[str, int] = {}
    for name, limit in (("max_turns", "turns"), ("max_tokens_total", "total_tokens")):
        if name in fields.model_fields_set:
            given: int = getattr(fields, name)
            limits[limit] = max(0, given)
            if given < 0:
                notes.append(f"{name} is negative, taken as 0")
    return limits


def _tool(tool: ToolSpec) -> dict[str, Any]:
    """The announcement: the schema as it is, with the three keys that readers of this generation cannot do without."""
    parameters = {"type": "object", "properties": {}, "required": [], **tool.parameters}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters, "strict": False}
    return {"type": "function", "function": function}
