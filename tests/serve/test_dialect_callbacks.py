"""Callbacks of all three generations, read by receivers written from the protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from runner.records.completion import Usage
from runner.records.failure import Failure
from runner.records.rollout import Outcome, RolloutRequest, Sample, ScoreRecord
from runner.serve.dialects.agent_loop import AgentLoop
from runner.serve.dialects.category import MAX_TEXT, category_of
from runner.serve.dialects.dialect import Dialect
from runner.serve.dialects.multi_sample import MultiSample
from runner.serve.dialects.single_sample import Either, SingleSample
from runner.serve.start import Start

Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Category = Literal["timeout", "validation_error", "http_error", "agent_error"]


class Metrics(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    total_latency_ms: float
    llm_latency_ms: float
    tool_latency_ms: float
    num_llm_calls: int
    num_tool_calls: int
    prompt_tokens: int
    response_tokens: int
    max_context_tokens: int


class AgentLoopCompletion(BaseModel):
    """2.8: what has no value is absent, never null."""

    model_config = ConfigDict(extra="forbid")
    rollout_id: str
    status: Literal["COMPLETED", "ERROR"]
    final_messages: list[dict[str, Any]]
    extra_fields: dict[str, Any]
    finish_reason: str = ""
    error_message: Text = ""
    reward: Finite = 0.0
    metrics: Metrics = Field(default_factory=Metrics.model_construct)


class Completion(BaseModel):
    """3.4: all five keys are there."""

    model_config = ConfigDict(extra="forbid")
    rollout_id: str | None
    status: Literal["success", "failure"]
    extra_fields: None
    err_message: Text | None
    err_category: Category | None


class ReceivedSample(BaseModel):
    """5.5."""

    model_config = ConfigDict(extra="forbid")
    messages: list[dict[str, Any]]
    label: str | None
    reward: Finite | None
    remove_sample: bool
    metrics: dict[str, Any]
    extra_fields: dict[str, Any]


class NamedSample(ReceivedSample):
    id: str


class Grade(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rollout_id: str | None
    status: Literal["success", "failure"]
    err_message: Text | None
    err_category: Category | None


class MultiGrade(Grade):
    samples: dict[str, NamedSample]


class SingleGrade(Grade):
    sample: ReceivedSample | None


class EitherGrade(SingleGrade):
    samples: dict[str, NamedSample]


DIALECTS: dict[str, tuple[Dialect, type[Grade] | None]] = {
    "g1": (AgentLoop(), None),
    "g2": (MultiSample("solver"), MultiGrade),
    "g3": (SingleSample(), SingleGrade),
    "either": (Either(), EitherGrade),
}
_ROLLOUT = {
    "rollout_id": "ep-41",
    "initial_messages": [],
    "label": "Lima",
    "chat_completions_url": "http://ctl/v1",
    "completion_callback_url": "http://ctl/done",
    "grader_callback_url": "http://ctl/graded",
    "controller_api_key": "k-9876543210",
}
_AGENT_LOOP = {
    "rollout_id": "ep-41",
    "server_url": "http://ctl",
    "messages": [],
    "completion_params": {},
    "api_key": "k-9876543210",
}
REQUEST = RolloutRequest("ep-41", ())
CALLS = (
    {"turn": 1, "usage": {"total_tokens": 90}},
    {"turn": 2, "usage": {"total_tokens": 161}},
    {"turn": 3, "usage": None},
    {"turn": 3, "usage": None, "error": {"kind": "model_unavailable"}},
)
SAMPLE = Sample(
    messages=({"role": "user", "content": "Capital of Peru?"}, {"role": "assistant", "content": "Lima"}),
    calls=CALLS,
    tool_spans=({"name": "add"},),
    metrics={"turns": 3},
)
SCORED = Outcome(
    REQUEST,
    "scored",
    "final_answer",
    1.0,
    sample=SAMPLE,
    usage=Usage(210, 41),
    timing={"total": 0.8124, "model": 0.79, "tool": 0.0019},
    ended="final_answer",
)
SILENT = Failure("grader", "grader_silent", "grader 'g' gave no score")


def started(which: str, **changes: Any) -> Start:
    body = {**(_AGENT_LOOP if which == "g1" else _ROLLOUT), **changes}
    return DIALECTS[which][0].parse(body, "made-up")


def failed(failure: Failure, status: Any = "failed", **more: Any) -> Outcome:
    kind = failure.kind if status == "failed" else "final_answer"
    return replace(SCORED, status=status, stop_reason=failure.kind, reward=None, failure=failure, ended=kind, **more)


def strict_json(raw: bytes) -> dict[str, Any]:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    found: dict[str, Any] = json.loads(raw.decode(), parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode()
    return found


def settled(which: str, outcome: Outcome, dialect: Dialect | None = None, **changes: Any) -> dict[str, Any]:
    owed = (dialect or DIALECTS[which][0]).settled(started(which, **changes), outcome).owed
    assert owed is not None and owed.key == "k-9876543210"
    body = strict_json(owed.body)
    model = DIALECTS[which][1] or AgentLoopCompletion
    model.model_validate(body)
    return body


def ended(which: str, outcome: Outcome, **changes: Any) -> dict[str, Any]:
    owed = DIALECTS[which][0].ended(started(which, **changes), outcome)
    assert owed is not None and (owed.channel, owed.url) == ("completion", "http://ctl/done")
    body = strict_json(owed.body)
    Completion.model_validate(body)
    return body


def test_the_agent_loop_example() -> None:
    assert DIALECTS["g1"][0].ended(started("g1"), SCORED) is None
    assert settled("g1", SCORED) == {
        "rollout_id": "ep-41",
        "status": "COMPLETED",
        "final_messages": list(SAMPLE.messages),
        "finish_reason": "stop",
        "reward": 1.0,
        "metrics": {
            "total_latency_ms": 812.4,
            "llm_latency_ms": 790.0,
            "tool_latency_ms": 1.9,
            "num_llm_calls": 3,
            "num_tool_calls": 1,
            "prompt_tokens": 210,
            "response_tokens": 41,
            "max_context_tokens": 161,
        },
        "extra_fields": {},
    }


def test_the_multi_sample_example() -> None:
    assert list(ended("g2", SCORED).items()) == [
        ("rollout_id", "ep-41"),
        ("status", "success"),
        ("extra_fields", None),
        ("err_message", None),
        ("err_category", None),
    ]
    body = settled("g2", SCORED)
    assert body["samples"]["solver"] == {
        "id": "solver",
        "messages": list(SAMPLE.messages),
        "label": None,
        "reward": 1.0,
        "remove_sample": False,
        "metrics": {"turns": 3},
        "extra_fields": {},
    }


def test_the_single_sample_example() -> None:
    assert list(ended("g3", SCORED))[:2] == ["status", "rollout_id"]
    body = settled("g3", SCORED)
    assert list(body) == ["status", "rollout_id", "sample", "err_message", "err_category"]
    assert (body["sample"]["label"], body["sample"]["reward"]) == ("Lima", 1.0)


def test_the_superset_answers_both() -> None:
    body = settled("either", SCORED)
    assert body["samples"] == {"main": {"id": "main", **body["sample"]}}


def test_trap_12_and_20_no_id_and_no_grader_url() -> None:
    assert ended("g3", SCORED, rollout_id=None)["rollout_id"] is None
    assert settled("g3", SCORED, rollout_id=None)["rollout_id"] is None
    assert DIALECTS["g3"][0].settled(started("g3", grader_callback_url=""), SCORED).owed is None


@pytest.mark.parametrize(
    ("which", "changes", "outcome", "why"),
    [
        ("g2", {"label": None}, failed(Failure("grader", "no_label", "row has no label"), "ungraded"), "no label"),
        ("g3", {"label": None}, failed(Failure("grader", "no_label", "row has no label"), "ungraded"), "no label"),
        ("g3", {}, failed(Failure("config", "no_grader", "x"), "ungraded"), "no grader configured"),
    ],
)
def test_trap_19_an_empty_failure_says_why(which: str, changes: Any, outcome: Outcome, why: str) -> None:
    assert ended(which, outcome, **changes)["status"] == "success"
    body = settled(which, outcome, **changes)
    assert body["status"] == "failure" and why in body["err_message"]
    for sample in [body.get("sample"), *body.get("samples", {}).values()]:
        assert sample is None or sample["reward"] is None


@pytest.mark.parametrize("reward", [float("nan"), float("-inf"), None, "1.5"])
def test_trap_24_and_25_a_reward_is_a_finite_number_or_none(reward: Any) -> None:
    broken = replace(SCORED, reward=reward)
    assert settled("g3", broken)["sample"]["reward"] is None
    assert settled("g3", broken)["err_category"] == "validation_error"
    assert settled("g2", broken)["status"] == "failure"
    completed = settled("g1", broken)
    assert "reward" not in completed and completed["error_message"].startswith("no reward")
    assert settled("g1", replace(SCORED, reward=True))["reward"] == 1.0


def test_trap_26_no_reward_of_what_was_not_scored() -> None:
    for status in ("ungraded", "failed", "cancelled"):
        outcome = replace(SCORED, status=status, reward=0.7, failure=SILENT)
        assert "reward" not in settled("g1", outcome)
        assert all(each["reward"] is None for each in settled("g2", outcome)["samples"].values())
        assert (settled("g3", outcome)["sample"] or {"reward": None})["reward"] is None


def test_trap_27_a_grader_that_gave_no_score() -> None:
    outcome = failed(SILENT, "ungraded")
    for which in ("g2", "g3", "either"):
        body = settled(which, outcome)
        assert body["err_message"] == "Sample has no reward after grading: grader 'g' gave no score"
        assert (body["status"], body["err_category"]) == ("failure", "validation_error")
    body = settled("g1", outcome)
    assert (body["status"], body["finish_reason"]) == ("COMPLETED", "stop")
    assert body["error_message"] == "no reward: grader 'g' gave no score"


def test_nothing_to_grade_is_no_problem_of_an_agent_loop() -> None:
    assert "error_message" not in settled("g1", failed(Failure("config", "no_grader", "x"), "ungraded"))


def test_a_limit_that_leaves_ungraded_removes_the_sample() -> None:
    outcome = replace(SCORED, status="ungraded", reward=None, stop_reason="max_turns", ended="max_turns")
    for which in ("g3", "either"):
        body = settled(which, outcome)
        assert (body["status"], body["sample"]["remove_sample"], body["err_message"]) == ("success", True, None)
    body = settled("g2", outcome)  # where even a removed sample needs a reward
    assert body["status"] == "failure" and "Sample solver has no reward after grading" in body["err_message"]
    assert settled("g1", outcome)["finish_reason"] == "max_turns"


@pytest.mark.parametrize("value", [None, 0.5])
def test_a_grader_that_takes_a_sample_out_removes_it(value: float | None) -> None:
    scores = {"g": ScoreRecord(value, removed=True)}
    outcome = replace(SCORED, status="ungraded", reward=None, stop_reason="removed", scores=scores)
    for which in ("g3", "either"):
        body = settled(which, outcome)
        assert (body["status"], body["sample"]["remove_sample"], body["sample"]["reward"]) == ("success", True, None)
    body = settled("g2", outcome)
    sample = body["samples"]["solver"]
    wanted = ("success", 0.5) if value is not None else ("failure", None)
    assert (body["status"], sample["reward"], sample["remove_sample"]) == (*wanted, True)
    assert value is not None or "the grader removed it" in body["err_message"]


@pytest.mark.parametrize(
    ("failure", "category"),
    [
        (Failure("workflow", "rollout_timeout", "x"), "timeout"),
        (Failure("grader", "grader_timeout", "x"), "timeout"),
        (Failure("workflow", "agent_error", "TimeoutError: mine"), "timeout"),
        (Failure("workflow", "agent_error", "ValueError: x"), "validation_error"),
        (Failure("workflow", "agent_error", "AssertionError"), "validation_error"),
        (Failure("workflow", "bad_return", "x"), "validation_error"),
        (Failure("model", "model_unavailable", "x"), "http_error"),
        (Failure("workflow", "agent_error", "KeyError: 'x'"), "agent_error"),
        (Failure("workflow", "shutdown", "server shutting down"), "agent_error"),
        (Failure("tool", "tool_crashed", "x"), "agent_error"),
    ],
)
def test_trap_18_a_failure_has_its_text_and_its_category(failure: Failure, category: str) -> None:
    assert category_of(failure) == category
    outcome = failed(failure)
    for which in ("g2", "g3"):
        body = ended(which, outcome)
        assert (body["status"], body["err_message"], body["err_category"]) == ("failure", failure.message, category)
        assert settled(which, outcome)["err_message"] == failure.message
    assert settled("g2", outcome)["samples"] == {} and settled("g3", outcome)["sample"] is None
    body = settled("g1", outcome)
    assert (body["status"], body["finish_reason"], body["error_message"]) == ("ERROR", "error", failure.message)


def test_trap_64_a_deadline_says_how_long_it_waited() -> None:
    failure = Failure("workflow", "rollout_timeout", "not finished within `[limits] time`")
    outcome = failed(failure, timing={"total": 2.0, "queued": 1.42})
    said = ended("g3", outcome, agent_timeout_sec=0.2)["err_message"]
    assert said == "workflow exceeded its 0.2s deadline (1.4s of it spent queued)"
    assert ended("g3", failed(failure), agent_timeout_sec=120)["err_message"] == "workflow exceeded its 120s deadline"
    assert ended("g3", outcome)["err_message"] == failure.message  # the file's own: its words


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("max_total_tokens", "max_tokens"), ("context_overflow", "length"), ("max_tokens", "length"), ("mine", "mine")],
)
def test_finish_reasons(ours: str, theirs: str) -> None:
    assert settled("g1", replace(SCORED, ended=ours))["finish_reason"] == theirs


def test_trap_28_metrics_that_are_none_are_dropped_and_listed_once() -> None:
    metrics: Any = {"bad": float("nan"), 7: 1.5, "d": Decimal("2.5"), "o": object(), "t": (1, 2), None: 1}
    sample = settled("g3", replace(SCORED, sample=replace(SAMPLE, metrics=metrics)))["sample"]
    assert sample["metrics"] == {"7": 1.5, "d": 2.5, "t": [1, 2]}
    assert sample["extra_fields"] == {
        "left_out": ["metrics.bad (nan)", "metrics.o (object)", "metrics (a NoneType as a key)"]
    }


@pytest.mark.parametrize("content", [b"raw", object(), float("inf"), 10**5000], ids=["bytes", "object", "inf", "long"])
def test_trap_29_a_message_is_mended_and_the_reward_kept(content: Any) -> None:
    outcome = replace(SCORED, sample=replace(SAMPLE, messages=({"role": "tool", "content": content}, {"role": "user"})))
    for which in ("g2", "g3", "either"):
        body = settled(which, outcome)
        sample = body["sample"] if "sample" in body else body["samples"]["solver"]
        assert sample["reward"] == 1.0
        assert sample["messages"][0]["content"].startswith("[left out: ") and sample["messages"][1] == {"role": "user"}
        assert sample["extra_fields"]["left_out"][0].startswith("messages[0].content")
    assert settled("g1", outcome)["reward"] == 1.0


def test_trap_30_and_31_half_a_pair_is_replaced_and_the_rest_is_raw() -> None:
    outcome = replace(SCORED, sample=replace(SAMPLE, messages=({"role": "user", "content": "é\ud83d漢"},)))
    owed = DIALECTS["g3"][0].settled(started("g3"), outcome).owed
    assert owed is not None and "é\ufffd漢".encode() in owed.body
    assert ended("g2", failed(Failure("workflow", "agent_error", "x\udc00")))["err_message"] == "x\ufffd"


def test_a_message_that_holds_itself_ends() -> None:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = [message, message]
    assert settled("g3", replace(SCORED, sample=replace(SAMPLE, messages=(message,))))["sample"]["reward"] == 1.0


def test_trap_96_a_conversation_is_cut_in_its_middle_and_the_reward_kept() -> None:
    messages = tuple({"role": "user", "content": f"{place}" + "x" * 500} for place in range(100))
    outcome = replace(SCORED, sample=replace(SAMPLE, messages=messages))
    for which, dialect in (("g1", AgentLoop(max_messages=10_000)), ("g3", SingleSample(max_messages=10_000))):
        body = settled(which, outcome, dialect)
        sent = body["final_messages"] if which == "g1" else body["sample"]["messages"]
        assert len(json.dumps(sent)) < 11_000
        assert sent[0] == messages[0] and sent[-1] == messages[-1]
        assert sum("[serve] max_messages" in each["content"] for each in sent) == 1
        assert (body["reward"] if which == "g1" else body["sample"]["reward"]) == 1.0
    assert len(settled("g3", SCORED, SingleSample(max_messages=10_000))["sample"]["messages"]) == 2


def test_trap_99_what_a_failed_agent_had_said_is_not_sent() -> None:
    assert settled("g1", failed(Failure("workflow", "rollout_timeout", "x")))["final_messages"] == []


def test_trap_100_an_error_text_is_short_and_holds_no_key() -> None:
    failure = Failure("model", "model_refused", "with k-9876543210 and a-configured-secret: " + "é" * 9000)
    body = strict_json(MultiSample(secrets=["a-configured-secret"]).ended(started("g2"), failed(failure)).body)
    assert body["err_message"].startswith("with *** and ***: é") and body["err_message"].endswith("…")
    assert len(body["err_message"].encode()) <= MAX_TEXT
    assert "k-9876543210" not in json.dumps(settled("g1", failed(failure)))


def test_trap_101_the_sample_is_called_as_its_chat_calls_were() -> None:
    for which, name in (("g2", "solver"), ("either", "main")):
        start = started(which)
        assert start.chat.headers["x-sample-id"] == name
        assert [(key, each["id"]) for key, each in settled(which, SCORED)["samples"].items()] == [(name, name)]


def test_trap_102_a_sample_that_never_chatted_is_left_out() -> None:
    mute = replace(SCORED, sample=replace(SAMPLE, calls=()))
    body = settled("g2", mute)
    assert (body["status"], body["samples"]) == ("failure", {})
    assert body["err_message"] == "No samples after grading: the agent never asked for a completion"
    body = settled("either", mute)
    assert body["samples"] == {} and body["sample"]["reward"] == 1.0
    assert settled("g3", mute)["status"] == "success"


def test_a_cancelled_rollout_that_is_reported_is_a_failure() -> None:
    outcome = Outcome(REQUEST, "cancelled", "cancelled", ended="cancelled")
    body = settled("g1", outcome)
    assert (body["status"], body["error_message"]) == ("ERROR", "rollout was cancelled (cancelled)")
    assert "metrics" not in body
    assert (ended("g3", outcome)["status"], ended("g3", outcome)["err_category"]) == ("failure", "agent_error")


class _Hostile:
    def __float__(self) -> float:
        raise RuntimeError("no")


_text = st.text(st.characters(), max_size=8)
_nasty = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _text
    | st.binary(max_size=4)
    | st.sampled_from([object(), _Hostile(), Decimal("NaN"), 10**2000, {1, 2}, MappingProxyType({"a": b"x"})]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.tuples(each)
        | st.dictionaries(_text | st.integers() | st.none() | st.tuples(st.integers()), each, max_size=3)
    ),
)
_object: st.SearchStrategy[Mapping[Any, Any]] = st.dictionaries(_text | st.integers(), _nasty, max_size=3)
_failures = st.builds(
    Failure,
    st.sampled_from(["model", "tool", "grader", "workflow", "config", "controller"]),
    st.sampled_from(["rollout_timeout", "grader_silent", "no_grader", "agent_error", "x"]),
    _text | st.just("é\ud800" * 3000),
)
_outcomes = st.builds(
    Outcome,
    request=st.just(REQUEST),
    status=st.sampled_from(["scored", "ungraded", "failed", "cancelled"]),
    stop_reason=_text,
    reward=st.none() | st.floats(),
    failure=st.none() | _failures,
    sample=st.builds(
        Sample,
        messages=st.lists(_object, max_size=3).map(tuple),
        calls=st.sampled_from([(), CALLS]),
        metrics=_object,
        info=_object,
    ),
    timing=st.sampled_from([{}, {"total": 1.5, "queued": 0.3}]),
    ended=_text,
)


@settings(max_examples=150, deadline=None)
@given(which=st.sampled_from(sorted(DIALECTS)), outcome=_outcomes, label=st.none() | st.just("x"), most=st.booleans())
def test_any_outcome_makes_callbacks_that_receivers_understand(
    which: str, outcome: Outcome, label: str | None, most: bool
) -> None:
    changes = {} if which == "g1" else {"label": label, "agent_timeout_sec": 1}
    dialect: Dialect | None = None
    if most:
        dialect = AgentLoop(max_messages=40) if which == "g1" else type(DIALECTS[which][0])("solver", max_messages=40)
    body = settled(which, outcome, dialect, **changes)
    rewards = [body.get("reward"), *(each["reward"] for each in _samples_of(body))]
    if outcome.status != "scored":
        assert not any(reward is not None for reward in rewards)
    if which != "g1":
        completed = ended(which, outcome, **changes)
        assert (completed["status"] == "success") == (outcome.status in ("scored", "ungraded"))
        # Success has a reward or removes the sample; failure has a word why.
        assert (body["status"] == "failure") == (body["err_message"] is not None)
        if body["status"] == "success":
            assert all(each["reward"] is not None or each["remove_sample"] for each in _samples_of(body))


def _samples_of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    single = body.get("sample")
    return [*body.get("samples", {}).values(), *([] if single is None else [single])]
