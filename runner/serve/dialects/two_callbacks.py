"""`TwoCallbacks`: what the second and third generation share: a completion when the agent ends, a grade after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.rollout import Outcome
from runner.serve.dialects.dialect import Settled
from runner.serve.dialects.rollout_report import Told, completion, said, told
from runner.serve.dialects.rollout_start import PATH
from runner.serve.dialects.sample import Parts, encoded
from runner.serve.start import Start
from runner.store.outbox import Owed


class TwoCallbacks(ABC):
    """A dialect of `POST /rollout`. `sample` is the sample's name, `secrets` what no error text may hold."""

    name: str
    path = PATH
    full_status = 429
    status_first: bool
    """Whether the completion begins with the status, not with the id: readers of logs are used to theirs."""

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

    @abstractmethod
    def parse(self, body: Mapping[str, Any], rollout_id: str) -> Start:
        """The start in a body. Raises `Refused` (422)."""

    def accepted(self, start: Start, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """`start_status` and `{}`: tools travel with each chat call."""
        return self._start_status, b"{}"

    def repeated(self, rollout_id: str, tools: Sequence[ToolSpec]) -> tuple[int, bytes]:
        """The same as the first time."""
        return self._start_status, b"{}"

    def ended(self, start: Start, left: Outcome) -> Owed | None:
        """The completion callback."""
        return completion(start, left, self._secrets, status_first=self.status_first)

    def settled(self, start: Start, outcome: Outcome) -> Settled:
        """With the grader callback, if a URL for it was given."""
        verdict = self._verdict(start, outcome)
        word, message = said(start, outcome, verdict, self._secrets)
        if start.grader_url is None:
            return Settled(word, message)
        sent = encoded(partial(self._grade, start, outcome, verdict), outcome.sample, self._max_messages)
        return Settled(word, message, Owed("grader", start.grader_url, sent, start.callback_key))

    def _verdict(self, start: Start, outcome: Outcome) -> Told:
        """What is said of an outcome."""
        return told(start, outcome, self._secrets)

    @abstractmethod
    def _grade(self, start: Start, outcome: Outcome, verdict: Told, parts: Parts) -> bytes:
        """The body of the grader callback. Raises what `strict` raises."""


def sample_name(start: Start, outcome: Outcome) -> str:
    """What the sample is called: as the agent named it, or as its chat calls did."""
    return outcome.sample.sample_id or start.chat.headers["x-sample-id"]
