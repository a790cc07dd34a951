"""`SingleSample`: the third generation. Two callbacks, one sample, and deadlines that count from acceptance.

`Either` is the same for a controller that may be of the second generation: its grader callback satisfies both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from runner.records.completion import ToolSpec
from runner.records.file_name import is_segment
from runner.records.rollout import Outcome
from runner.serve.dialects.fields import GivenKey, read
from runner.serve.dialects.rollout_report import completion, said, sample_body, told
from runner.serve.dialects.rollout_start import LONGEST_ID, PATH, RolloutFields, rollout_chat, rollout_start
from runner.serve.dialects.sample import Parts, encoded
from runner.serve.start import Start
from runner.store.outbox import Owed


def _segment(text: str) -> str:
    if not is_segment(text):
        raise ValueError("rollout_id must be one path segment: not empty, `.` or `..`, and without `/`, `\\` and NUL")
    return text


class SingleSampleFields(RolloutFields):
    """The body of a start."""

    rollout_id: Annotated[str, Field(max_length=LONGEST_ID), AfterValidator(_segment)] | None = None
    llm_api_key: GivenKey | None = None


class SingleSample:
    """The dialect. `sample` goes out as `x-sample-id`, `secrets` is what no error text may hold."""

    name = "single-sample"
    path = PATH
    full_status = 429
    shape = "sample"

    def __init__(
        self,
        sample: str = "main",
        *,
        start_status: int = 202,
        stream: bool = True,
        max_messages: int | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._sample = sample
        self._start_status = start_status
        self._stream = stream
        self._max_messages = max_messages
        self._secrets = tuple(secrets)

    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a body. Raises `Refused` (422)."""
        fields = read(SingleSampleFields, body)
        named = fields.rollout_id
        key = fields.controller_api_key if fields.llm_api_key is None else fields.llm_api_key
        chat = rollout_chat(fields, key, named, self._sample, self._stream)
        ids = named, rollout_id if named is None else named
        return rollout_start(self.name, fields, ids, chat, deadlines=True, shape=self.shape)

    def accepted(self, start: Start, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """`start_status` and `{}`: tools travel with each chat call."""
        return self._start_status, b"{}"

    def repeated(self, rollout_id: str, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """The same as the first time."""
        return self._start_status, b"{}"

    def ended(self, start: Start, left: Outcome) -> Owed | None:
        """The completion callback."""
        return completion(start, left, self._secrets, status_first=True)

    def said(self, start: Start, outcome: Outcome) -> tuple[str, str | None]:
        """As the last callback says it."""
        return said(start, outcome, told(start, outcome, self._secrets), self._secrets)

    def settled(self, start: Start, outcome: Outcome) -> Owed | None:
        """The grader callback; None if no URL for it was given."""
        if start.grader_url is None:
            return None
        verdict = told(start, outcome, self._secrets)
        name = outcome.sample.sample_id or start.chat.headers["x-sample-id"]

        def body(parts: Parts) -> dict[str, Any]:
            sample = sample_body(parts, start.label, verdict) if verdict.listed else None
            return {
                "status": verdict.status,
                "rollout_id": start.wire_id,
                "sample": sample,
                **(_samples(name, sample if outcome.sample.calls else None) if start.shape == "both" else {}),
                "err_message": verdict.message,
                "err_category": verdict.category,
            }

        sent = encoded(body, outcome.sample, self._max_messages)
        return Owed("grader", start.grader_url, sent, start.callback_key)


class Either(SingleSample):
    """For a start that does not tell its generation: read as the third one's, reported so that both understand."""

    name = "either"
    shape = "both"


def _samples(name: str, sample: Mapping[str, Any] | None) -> dict[str, Any]:
    """The second generation's container; a sample that never chatted is unknown to its controllers, and left out."""
    return {"samples": {} if sample is None else {name: {"id": name, **sample}}}
