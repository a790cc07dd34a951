"""`Ledger`: every rollout's history, and every breach of the protocol, with its evidence.

The controller, the load and the conformance cases write here what they saw; nothing else decides what is a violation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from runner.simulate.answered import retry_after, start_findings
from runner.simulate.callbacks import callback_findings, read_callback
from runner.simulate.chats import chat_findings, is_first_turn
from runner.simulate.decode import Finding
from runner.simulate.history import COMPLETION, GRADER, Channel, History, Said
from runner.simulate.rules import RULES, Violation
from runner.simulate.starts import MULTI_SAMPLE, Ask

_KEPT = 20
"""Violations of one rule that keep their evidence; the others are counted."""
_CANCEL_GRACE = 1.0
"""Seconds after a cancel in which what was already on its way may still arrive."""
_CROSSING = 0.25
"""Seconds in which an acknowledgement and a repetition may pass each other."""
_SOONEST = 0.02
"""Seconds before which a repeated callback counts as one without back-off; so many in a row are a breach."""
_HURRIED = 4


class Ledger:
    """What happened. Its clock is monotonic and starts at 0.

    `keep` keeps whole bodies (for parity and conformance). `one_conversation` says that an agent asks for its first
    turn once, so that a second first turn is a second play.
    """

    def __init__(
        self,
        *,
        keep: bool = False,
        one_conversation: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.histories: dict[str, History] = {}
        self.violations: dict[str, list[Violation]] = {}
        self.counts: Counter[str] = Counter()
        self.keep = keep
        self._one_conversation = one_conversation
        self._tools = tools
        self._secrets = [secret.encode() for secret in secrets if secret]
        self._begun = time.monotonic()

    def now(self) -> float:
        """Seconds since the ledger was opened."""
        return time.monotonic() - self._begun

    def expect(self, ask: Ask) -> History:
        """Open the history of a rollout: before its start is posted, since chat may come before the answer."""
        body_id = ask.extra.get("rollout_id", ask.rollout_id)
        history = History(ask, ask.rollout_id, None if body_id in (None, ...) else str(body_id))
        if history.wire_id is not None:
            history.rollout_id = history.wire_id
        self.histories[history.rollout_id] = history
        return history

    def breach(self, rule: str, rollout_id: str, evidence: str) -> None:
        """Note a violation."""
        if rule not in RULES:
            raise KeyError(f"there is no rule {rule!r}")
        self.counts[rule] += 1
        kept = self.violations.setdefault(rule, [])
        if len(kept) < _KEPT:
            kept.append(Violation(rule, rollout_id, evidence, self.now()))

    def note(self, history: History, findings: Iterable[Finding]) -> None:
        for rule, evidence in findings:
            self.breach(rule, history.rollout_id, evidence)

    def note_stray(self, findings: Iterable[Finding], where: str) -> None:
        """Breaches of a request that belongs to no rollout."""
        for rule, evidence in findings:
            self.breach(rule, where, evidence)

    def of(self, rollout_id: str) -> list[Violation]:
        """The violations of one rollout that kept their evidence."""
        return [each for kept in self.violations.values() for each in kept if each.rollout_id == rollout_id]

    # starts

    def posted(self, history: History) -> None:
        history.starts += 1
        if history.posted is None:
            history.posted = self.now()

    def answered(self, history: History, status: int, headers: Mapping[str, str], body: bytes) -> float:
        """The answer to a start. Returns the seconds that a 429 asks to wait, else 0."""
        self.note(history, start_findings(history, status, headers, body, self._tools))
        if status == 429:
            history.refusals += 1
            if not history.accepted:
                history.status = status
            return retry_after(headers.get("retry-after"))[0]
        if history.accepted and 200 <= status < 300:
            if body != history.answer or status != history.status:
                self.breach("duplicate-answer", history.rollout_id, f"first {history.status}, then {status}")
            return 0.0
        if not history.accepted:
            history.status, history.answer, history.answered = status, body, self.now()
        return 0.0

    def killed(self) -> int:
        """The server was killed on purpose: what was under way may be repeated, and once more asked for.

        Returns how many rollouts were accepted and had no verdict.
        """
        for history in self.histories.values():
            if history.posted is not None:
                history.excused = True
        return len(self.unfinished())

    # chat

    def chat(self, history: History, headers: Mapping[str, str], asked: dict[str, Any]) -> None:
        """A chat call arrived."""
        now = self.now()
        self.note(history, chat_findings(history, headers, asked))
        if history.first_chat is None:
            history.first_chat = now
        history.chats += 1
        if history.cancelled is not None and now - history.cancelled > _CANCEL_GRACE:
            after = now - history.cancelled
            self.breach("chat-after-cancel", history.rollout_id, f"{after:.1f} s after the cancel was answered")
        elif history.verdict_at is not None and not history.excused:
            after = now - history.verdict_at
            self.breach("chat-after-verdict", history.rollout_id, f"{after:.1f} s after the verdict")
        if history.dialect == MULTI_SAMPLE and (sample := headers.get("x-sample-id")):
            history.sample_ids[sample] += 1
        if self.keep:
            history.asked.append(asked)
            history.headers.append(dict(headers))

    def completed(self, history: History, asked: dict[str, Any]) -> None:
        """A chat call was answered with a completion."""
        if not self._one_conversation or not is_first_turn(asked, len(history.ask.prompt)):
            return
        history.first_turns += 1
        if history.first_turns > 1 and history.starts > 1 and not history.excused:
            evidence = f"{history.starts} starts led to {history.first_turns} first turns"
            self.breach("chat-again", history.rollout_id, evidence)

    # callbacks

    def callback(self, history: History, kind: str, payload: dict[str, Any], body: bytes) -> None:
        """A callback arrived, whatever we are about to answer: what was sent once may never be contradicted."""
        now, channel = self.now(), history.channels[kind]
        self.note(history, callback_findings(history, kind, payload))
        self._leaks(history, body)
        self._in_order(history, kind, now)
        self._in_time(history, kind, channel, now)
        said, digest = read_callback(history.dialect, kind, payload), blake2b(body, digest_size=16).digest()
        if self.keep:
            history.bodies.append((kind, payload))
        if channel.first is None:
            channel.first, channel.digest = said, digest
            self._against_completion(history, said)
        elif said.value != channel.first.value:
            evidence = f"{kind}: first {_told(channel.first)}, then {_told(said)}"
            self.breach("contradicting-verdict", history.rollout_id, evidence)
        elif digest != channel.digest:
            self.breach("changed-duplicate", history.rollout_id, f"the {kind} came again with another body")
        channel.tries += 1
        channel.last_at = now
        history.conclude(now)

    def acknowledged(self, history: History, kind: str) -> None:
        """An acknowledgement left whole and in time."""
        channel = history.channels[kind]
        if channel.acknowledged is None:
            channel.acknowledged = self.now()

    def closed(self, history: History, kind: str) -> None:
        """The server has no reason to send a callback again: it was refused for good, or may pass for acknowledged."""
        history.channels[kind].closed = True

    def asked_to_wait(self, history: History, kind: str, seconds: float) -> None:
        """A callback was answered 429 with this Retry-After."""
        history.channels[kind].not_before = self.now() + seconds

    def cancelled(self, history: History, disposition: str) -> None:
        """A cancel was answered."""
        history.disposition = disposition
        if disposition != "not_found" and history.cancelled is None:
            history.cancelled = self.now()
            if history.verdict is None:
                history.over.set()

    def _leaks(self, history: History, body: bytes) -> None:
        keys = [history.ask.callback_key.encode(), history.ask.chat_key.encode(), *self._secrets]
        if any(key and key in body for key in keys):
            self.breach("secret-leaked", history.rollout_id, "a callback repeats a key")

    def _in_order(self, history: History, kind: str, now: float) -> None:
        if kind == GRADER:
            if not history.ask.graded:
                self.breach("grader-unasked", history.rollout_id, "the start gave no grader URL")
            if history.channels[COMPLETION].first is None:
                self.breach("grader-before-completion", history.rollout_id, "no completion had come")
        if history.cancelled is not None and now - history.cancelled > _CANCEL_GRACE and history.verdict is None:
            after = now - history.cancelled
            self.breach("callback-after-cancel", history.rollout_id, f"{kind}, {after:.1f} s after the cancel")
        if history.status >= 400 and history.status != 429 and not history.accepted:
            self.breach("callback-never-started", history.rollout_id, f"the start was answered {history.status}")

    def _in_time(self, history: History, kind: str, channel: Channel, now: float) -> None:
        if channel.acknowledged is not None and now - channel.acknowledged > _CROSSING and not history.excused:
            after = now - channel.acknowledged
            self.breach("callback-after-ack", history.rollout_id, f"{kind}, {after:.1f} s after it was acknowledged")
        elif now < channel.not_before - 0.05 and not history.excused:
            early = channel.not_before - now
            self.breach("retry-after-ignored", history.rollout_id, f"{kind} came {early:.2f} s too early")
        if channel.tries and not history.excused:
            channel.hurried = channel.hurried + 1 if now - channel.last_at < _SOONEST else 0
            if channel.hurried == _HURRIED:
                evidence = f"{kind}: {_HURRIED + 1} tries within {_SOONEST:g} s each"
                self.breach("no-backoff", history.rollout_id, evidence)

    def _against_completion(self, history: History, said: Said) -> None:
        completion = history.channels[COMPLETION].first
        if said.channel == GRADER and said.status == "success" and completion is not None:
            if completion.status == "success":
                return
            evidence = f"the completion says {completion.status}, the grade success"
            self.breach("contradicting-verdict", history.rollout_id, evidence)

    # the end

    def unfinished(self) -> list[History]:
        """Accepted rollouts without a verdict that nobody cancelled."""
        return [each for each in self.histories.values()
                if each.accepted and each.verdict is None and each.cancelled is None]  # fmt: skip

    def close(self) -> None:
        """Note every accepted rollout that never got its verdict."""
        for history in self.unfinished():
            completion = history.channels[COMPLETION].first
            seen = "nothing was heard" if completion is None else f"its completion said {completion.status}"
            self.breach("verdict-missing", history.rollout_id, f"{seen}; {history.chats} chat calls")


def _told(said: Said) -> str:
    return f"{said.status} with reward {said.reward}" if said.reward is not None else said.status
