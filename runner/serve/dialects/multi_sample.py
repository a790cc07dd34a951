"""`MultiSample`: the second generation. Two callbacks, and samples by name, of which we report our one.

Its name is one value: the `x-sample-id` of every chat call, the key in `samples` and the `id` inside. A controller that
saw no chat call knows no such sample, so an agent that never asked for a completion is reported without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runner.records.rollout import Outcome
from runner.serve.dialects.category import VALIDATION
from runner.serve.dialects.dialect import FAILURE
from runner.serve.dialects.encode import scrubbed, strict
from runner.serve.dialects.fields import read
from runner.serve.dialects.rollout_report import Told, sample_body, told
from runner.serve.dialects.rollout_start import AnyId, RolloutFields, rollout_chat, rollout_start
from runner.serve.dialects.sample import Parts
from runner.serve.dialects.two_callbacks import TwoCallbacks, sample_name
from runner.serve.start import Start


class MultiSampleFields(RolloutFields):
    """The body of a start."""

    rollout_id: AnyId


class MultiSample(TwoCallbacks):
    """The dialect.

    Its time-outs are for backends of its callers' own; they count here only with `enforce_deadlines`.
    """

    name = "multi-sample"
    status_first = False

    def __init__(self, sample: str = "main", *, enforce_deadlines: bool = False, **more: Any) -> None:
        super().__init__(sample, **more)
        self._deadlines = enforce_deadlines

    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a body. Raises `Refused` (422)."""
        fields = read(MultiSampleFields, body)
        named = fields.rollout_id
        chat = rollout_chat(fields, fields.controller_api_key, named, self._sample, self._stream)
        return rollout_start(self.name, fields, (named, named), chat, deadlines=self._deadlines, shape="samples")

    def _verdict(self, start: Start, outcome: Outcome) -> Told:
        """In this generation a success needs a sample that chatted, and a reward even for a removed one."""
        verdict = told(start, outcome, self._secrets)
        if verdict.listed and not outcome.sample.calls:
            why = verdict.message or "No samples after grading: the agent never asked for a completion"
            return Told(FAILURE, listed=False, message=why, category=verdict.category or VALIDATION)
        if not verdict.removed:
            return verdict
        removing = [score for score in outcome.scores.values() if score.removed]
        reward = next((score.value for score in removing if score.value is not None), None)
        if reward is not None:
            return replace(verdict, reward=reward)
        ran_into = f"it ran into {scrubbed(outcome.stop_reason)[:256]}, which [limits] on_limit leaves ungraded"
        why = "the grader removed it and gave it none" if removing else ran_into
        return replace(verdict, status=FAILURE, message=f"Sample {self._sample} has no reward after grading: {why}",
                       category=VALIDATION)  # fmt: skip

    def _grade(self, start: Start, outcome: Outcome, verdict: Told, parts: Parts) -> bytes:
        name = sample_name(start, outcome)
        body = {
            "rollout_id": start.wire_id,
            "status": verdict.status,
            "samples": {name: {"id": name, **sample_body(parts, None, verdict)}} if verdict.listed else {},
            "err_message": verdict.message,
            "err_category": verdict.category,
        }
        return strict(body)
