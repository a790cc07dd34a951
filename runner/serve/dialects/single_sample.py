"""`SingleSample`: the third generation. Two callbacks, one sample, and deadlines that count from acceptance.

`Either` is the same for a controller that may be of the second generation: its grader callback satisfies both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from runner.records.file_name import is_segment
from runner.records.rollout import Outcome
from runner.serve.dialects.encode import strict
from runner.serve.dialects.fields import GivenKey, read
from runner.serve.dialects.rollout_report import Told, sample_body
from runner.serve.dialects.rollout_start import LONGEST_ID, RolloutFields, rollout_chat, rollout_start
from runner.serve.dialects.sample import Parts
from runner.serve.dialects.two_callbacks import TwoCallbacks, sample_name
from runner.serve.start import Start


def _segment(text: str) -> str:
    if not is_segment(text):
        raise ValueError("rollout_id must be one path segment: not empty, `.` or `..`, and without `/`, `\\` and NUL")
    return text


class SingleSampleFields(RolloutFields):
    """The body of a start."""

    rollout_id: Annotated[str, Field(max_length=LONGEST_ID), AfterValidator(_segment)] | None = None
    llm_api_key: GivenKey | None = None


class SingleSample(TwoCallbacks):
    """The dialect."""

    name = "single-sample"
    status_first = True
    shape = "sample"

    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a body. Raises `Refused` (422)."""
        fields = read(SingleSampleFields, body)
        named = fields.rollout_id
        key = fields.controller_api_key if fields.llm_api_key is None else fields.llm_api_key
        chat = rollout_chat(fields, key, named, self._sample, self._stream)
        ids = named, rollout_id if named is None else named
        return rollout_start(self.name, fields, ids, chat, deadlines=True, shape=self.shape)

    def _grade(self, start: Start, outcome: Outcome, verdict: Told, parts: Parts) -> bytes:
        body = {
            "status": verdict.status,
            "rollout_id": start.wire_id,
            "sample": sample_body(parts, start.label, verdict) if verdict.listed else None,
            "err_message": verdict.message,
            "err_category": verdict.category,
        }
        return strict(body)


class Either(SingleSample):
    """For a start that does not tell its generation: read as the third one's, reported so that both understand."""

    name = "either"
    shape = "both"

    def _grade(self, start: Start, outcome: Outcome, verdict: Told, parts: Parts) -> bytes:
        """The sample is told in both shapes and is most of the body: it is written once."""
        sample = strict(sample_body(parts, start.label, verdict) if verdict.listed else None)
        rest = {
            "status": verdict.status,
            "rollout_id": start.wire_id,
            "err_message": verdict.message,
            "err_category": verdict.category,
        }
        # A sample that never chatted is unknown to controllers of the second generation, and left out for them.
        listed = verdict.listed and outcome.sample.calls
        named = _named(sample_name(start, outcome), sample) if listed else b""
        return b'%b,"sample":%b,"samples":{%b}}' % (strict(rest)[:-1], sample, named)


def _named(name: str, sample: bytes) -> bytes:
    said = strict(name)
    return b'%b:{"id":%b,%b' % (said, said, sample[1:])
