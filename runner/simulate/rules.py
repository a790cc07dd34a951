"""What a controller may complain of: every rule of the wire that it can see broken, by a stable name.

A rule says what the server should have done. `trap` is the number of the protocol's known trap, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`says` completes the sentence "a rollout server must …"."""

    name: str
    trap: int | None
    says: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach: which rule, by which rollout, and what was seen. `at` is in seconds since the ledger was opened."""

    rule: str
    rollout_id: str
    evidence: str
    at: float

    @property
    def trap(self) -> int | None:
        return RULES[self.rule].trap

    def to_json(self) -> dict[str, object]:
        return {
            "rule": self.rule,
            "trap": self.trap,
            "rollout_id": self.rollout_id,
            "evidence": self.evidence,
            "at": round(self.at, 3),
        }


_ALL = (
    # starts
    Rule("start-5xx", None, "answer a good start without a server error"),
    Rule("start-status", None, "answer a good start with the status of its dialect, or 429 when it is full"),
    Rule("start-body", None, "answer a start with the JSON object of its dialect"),
    Rule("start-other-id", 45, "answer a start with the rollout id that was sent"),
    Rule("start-refused", None, "not refuse a start that is as the protocol wants it"),
    Rule("duplicate-answer", 44, "answer a repeated start as the first one was answered"),
    Rule("tools-differ", 52, "announce its tools with the whole JSON Schema of their arguments"),
    Rule("retry-after-missing", None, "say with 429 when to come back"),
    Rule("retry-after-garbage", 67, "give Retry-After as seconds or as an HTTP date"),
    Rule("agent-loop-429", None, "never answer an agent-loop start with 429, which its caller takes as fatal"),
    # who it is
    Rule("bearer-missing", None, "send the bearer key that the start gave it"),
    Rule("bearer-wrong", None, "send the bearer key that the start gave for this purpose, and no other"),
    Rule("bearer-scheme", 105, "spell the scheme `Bearer ` with one space"),
    Rule("bearer-unasked", 59, "send no Authorization header when the start gave no key"),
    Rule("redirect-followed", 6, "not follow a redirect with a bearer key"),
    Rule("secret-leaked", 100, "not repeat a key in what it reports"),
    Rule("content-type", None, "send JSON as `application/json`"),
    Rule("not-json", None, "send bodies that are JSON objects"),
    Rule("not-finite", 24, "send no NaN and no Infinity"),
    Rule("lone-surrogate", 30, "replace unpaired surrogates before it encodes a body"),
    Rule("unknown-rollout", None, "name only rollouts that were started"),
    Rule("id-mismatch", 12, "put the same rollout id in a callback's body as in its path, or null"),
    # chat
    Rule("chat-headers", None, "name the rollout and the sample in the headers of a multi-sample chat call"),
    Rule("chat-body-id", None, "name the rollout in the body of an agent-loop chat call"),
    Rule("chat-shape", None, "send chat messages as a list of objects"),
    Rule("chat-tools", None, "not send tools with an agent-loop chat call: its caller knows them"),
    Rule("chat-parts", 103, "join text parts into one string: a controller may keep only the first"),
    Rule("chat-stream", 104, "say with each chat call whether it wants a stream"),
    Rule("chat-after-verdict", None, "not ask for completions when the rollout is over"),
    Rule("chat-after-cancel", 16, "stop asking for completions once the rollout is cancelled"),
    Rule("chat-again", 44, "not play a repeated start twice"),
    # callbacks
    Rule("missing-field", None, "send every field of a callback"),
    Rule("null-field", None, "leave out the empty fields of an agent-loop completion"),
    Rule("status-word", None, "use the status words of the dialect"),
    Rule("category-word", None, "use the known error categories, or null"),
    Rule("grader-before-completion", None, "post the completion before the grade"),
    Rule("grader-unasked", 20, "post no grade where no grader URL was given"),
    Rule("callback-after-ack", 2, "not post a callback again that was acknowledged"),
    Rule("callback-after-cancel", 16, "send no callbacks for a cancelled rollout"),
    Rule("callback-never-started", None, "send no callbacks for a start that it refused"),
    Rule("contradicting-verdict", 1, "never contradict a verdict that it has sent"),
    Rule("changed-duplicate", 10, "repeat a callback with the same body"),
    Rule("retry-after-ignored", 5, "wait as long as Retry-After asks"),
    Rule("no-backoff", None, "wait longer between the tries of a callback that is refused"),
    Rule("message-too-long", 100, "keep error messages short (4 KiB)"),
    Rule("silent-failure", 19, "say why something failed"),
    # samples and rewards
    Rule("sample-missing", 101, "report every sample that asked for a completion"),
    Rule("sample-unknown", 101, "report samples under the names of their chat calls"),
    Rule("sample-without-chat", 102, "leave out samples that never asked for a completion"),
    Rule("sample-key", 101, "give a sample the same id as its key"),
    Rule("sample-shape", None, "report samples with messages, reward, metrics and the other fields"),
    Rule("reward-missing", 27, "not call a grade a success when there is no reward"),
    Rule("reward-not-number", 25, "send rewards as JSON numbers"),
    Rule("reward-on-failure", 26, "send no reward with a failure, nor for a removed sample"),
    Rule("metric-not-number", 28, "send metrics as finite numbers"),
    # questions
    Rule("status-shape", None, "answer the status of a rollout with its four fields"),
    Rule("status-contradicts", None, "tell the same verdict by its status as by its callbacks"),
    Rule("cancel-shape", None, "answer a cancel with a disposition for each id"),
    Rule("cancel-untrue", None, "tell the truth about what a cancel did"),
    Rule("server-died", None, "stay up"),
    Rule("verdict-missing", 17, "report a verdict for every rollout that it accepted"),
)  # fmt: skip

RULES = {rule.name: rule for rule in _ALL}
