"""`MultiSample`: the second generation. Two callbacks, and samples by name, of which we report our one.

Its name is one value: the `x-sample-id` of every chat call, the key in `samples` and the `id` inside. A controller that
saw no chat call knows no such sample, so an agent that never asked for a completion is reported without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.rollout import Outcome
from runner.serve.dialects.category import VALIDATION
from runner.serve.dialects.encode import scrubbed
from runner.serve.dialects.fields import read
from runner.serve.dialects.rollout_report import FAILURE, Told, completion, said, sample_body, told
from runner.serve.dialects.rollout_start import PATH, AnyId, RolloutFields, rollout_chat, rollout_start
from runner.serve.dialects.sample import Parts, encoded
from runner.serve.start import Start
from runner.store.outbox import Owed


class MultiSampleFields(RolloutFields):
    """The body of a start."""

    rollout_id: AnyId


class MultiSample:
    """The dialect. `sample` is the sample's name, `secrets` what no error text may hold.

    Its time-outs are for backends of its callers' own; they count here only with `enforce_deadlines`.
    """

    name = "multi-sample"
    path = PATH
    full_status = 429

    def __init__(
        self,
        sample: str = "main",
        *,
        start_status: int = 202,
        stream: bool = True,
        enforce_deadlines: bool = False,
        max_messages: int | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._sample = sample
        self._start_status = start_status
        self._stream = stream
        self._deadlines = enforce_deadlines
        self._max_messages = max_messages
        self._secrets = tuple(secrets)

    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a body. Raises `Refused` (422)."""
        fields = read(MultiSampleFields, body)
        named = fields.rollout_id
        chat = rollout_chat(fields, fields.controller_api_key, named, self._sample, self._stream)
        return rollout_start(self.name, fields, (named, named), chat, deadlines=self._deadlines, shape="samples")

    def accepted(self, start: Start, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """`start_status` and `{}`: tools travel with each chat call."""
        return self._start_status, b"{}"

    def repeated(self, rollout_id: str, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """The same as the first time."""
        return self._start_status, b"{}"

    def ended(self, start: Start, left: Outcome) -> Owed | None:
        """The completion callback."""
        return completion(start, left, self._secrets, status_first=False)

    def said(self, start: Start, outcome: Outcome) -> tuple[str, str | None]:
        """As the last callback says it."""
        return said(start, outcome, self._demanding(told(start, outcome, self._secrets), outcome), self._secrets)

    def settled(self, start: Start, outcome: Outcome) -> Owed | None:
        """The grader callback; None if no URL for it was given."""
        if start.grader_url is None:
            return None
        verdict = self._demanding(told(start, outcome, self._secrets), outcome)
        name = outcome.sample.sample_id or start.chat.headers["x-sample-id"]

        def body(parts: Parts) -> dict[str, Any]:
            return {
                "rollout_id": start.wire_id,
                "status": verdict.status,
                "samples": {name: {"id": name, **sample_body(parts, None, verdict)}} if verdict.listed else {},
                "err_message": verdict.message,
                "err_category": verdict.category,
            }

        sent = encoded(body, outcome.sample, self._max_messages)
        return Owed("grader", start.grader_url, sent, start.callback_key)

    def _demanding(self, verdict: Told, outcome: Outcome) -> Told:
        """In this generation a success needs a sample that chatted, and a reward even for a removed one."""
        if verdict.listed and not outcome.sample.calls:
            why = verdict.message or "No samples after grading: the agent never asked for a completion"
            return Told(FAILURE, listed=False, message=why, category=verdict.category or VALIDATION)
        if verdict.removed:
            why = (
                f"Sample {self._sample} has no reward after grading: it ran into {scrubbed(outcome.stop_reason)[:256]}"
            )
            return replace(verdict, status=FAILURE, message=f"{why}, which [limits] on_limit leaves ungraded",
                           category=VALIDATION)  # fmt: skip
        return verdict
