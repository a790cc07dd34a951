"""Starts of all three generations: what is taken, what is coerced, what is refused, and what it is refused with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.records.completion import Sampling, ToolSpec
from runner.runtime.sampling import merge_sampling
from runner.serve.dialects.agent_loop import AgentLoop
from runner.serve.dialects.multi_sample import MultiSample
from runner.serve.dialects.single_sample import Either, SingleSample
from runner.serve.start import Refused, Start

ALL = {"g1": AgentLoop(), "g2": MultiSample(), "g3": SingleSample(), "either": Either()}
_ROLLOUT = {
    "rollout_id": "ep-41",
    "initial_messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of Peru?"}],
    "label": "Lima",
    "chat_completions_url": "http://ctl.internal/v1",
    "controller_api_key": "k-9",
    "completion_callback_url": "http://ctl.internal/cb/done",
    "grader_callback_url": "http://ctl.internal/cb/graded",
}
BODIES: dict[str, dict[str, Any]] = {
    "g1": {
        "rollout_id": "batch7-003",
        "server_url": "http://train.internal:8800/",
        "messages": [{"role": "user", "content": "add 5 and 3"}],
        "completion_params": {"temperature": 0.8, "max_tokens": 256},
        "max_turns": 4,
        "metadata": {"ground_truth": "8"},
        "api_key": "cb-1",
    },
    "g2": _ROLLOUT,
    "g3": {**_ROLLOUT, "llm_api_key": "llm", "agent_timeout_sec": 120, "grader_timeout_sec": 30},
    "either": _ROLLOUT,
}


def parsed(which: str, **changes: Any) -> Start:
    body = {key: value for key, value in {**BODIES[which], **changes}.items() if value is not ...}
    return ALL[which].parse(body, "made-up")


def refusal(which: str, **changes: Any) -> list[dict[str, Any]]:
    with pytest.raises(Refused) as caught:
        parsed(which, **changes)
    assert caught.value.status == 422
    detail: list[dict[str, Any]] = json.loads(json.dumps(caught.value.detail, allow_nan=False).encode())
    assert detail and all(each["loc"][0] == "body" and each["type"] and each["msg"] for each in detail)
    return detail


def test_the_agent_loop_example() -> None:
    start = parsed("g1")
    assert start.chat.url == "http://train.internal:8800/v1/chat/completions"
    assert start.completion_url == "http://train.internal:8800/v1/rollout/completed"
    assert (start.chat.key, start.callback_key, start.chat.model) == ("cb-1", "cb-1", "default")
    assert (start.chat.tools, start.chat.stream) == (False, False)
    assert start.chat.extra == {"rollout_id": "batch7-003", "logprobs": True}
    assert start.sampling == {"temperature": 0.8, "max_tokens": 256}
    assert start.limits == {"turns": 4}  # a limit that the body does not name stays the file's
    assert (start.metadata, start.keys) == ({"ground_truth": "8"}, ("id:batch7-003",))
    assert start.notes == ()


def test_the_multi_sample_example() -> None:
    start = parsed("g2", llm_api_key="ignored")
    assert start.chat.url == "http://ctl.internal/v1/chat/completions"
    assert start.chat.headers == {"x-rollout-id": "ep-41", "x-sample-id": "main"}
    assert (start.chat.key, start.chat.model, start.chat.stream) == ("k-9", "osmosis-rollout", True)
    assert (start.label, start.grade, start.shape) == ("Lima", True, "samples")
    assert (start.completion_url, start.grader_url) == ("http://ctl.internal/cb/done", "http://ctl.internal/cb/graded")
    assert parsed("g2", chat_completions_url="http://ctl/chat/completions/").chat.url == "http://ctl/chat/completions"


def test_the_single_sample_example() -> None:
    start = parsed("g3")
    assert (start.chat.key, start.callback_key) == ("llm", "k-9")
    assert start.limits == {"time": 120.0, "grade_time": 30.0}
    assert ALL["g3"].accepted(start, ()) == (202, b"{}")
    assert (parsed("either").shape, ALL["either"].name) == ("both", "either")


@pytest.mark.parametrize(
    ("which", "changes", "field"),
    [
        ("g1", {"rollout_id": " \n"}, "rollout_id"),
        ("g1", {"rollout_id": ""}, "rollout_id"),
        ("g1", {"rollout_id": "x" * 257}, "rollout_id"),
        ("g1", {"rollout_id": ...}, "rollout_id"),
        ("g1", {"completion_params": None}, "completion_params"),
        ("g1", {"metadata": None}, "metadata"),
        ("g1", {"max_turns": 1.5}, "max_turns"),
        ("g1", {"max_turns": None}, "max_turns"),
        ("g1", {"messages": [{}, 3]}, "messages"),
        ("g1", {"tool_server_url": 3}, "tool_server_url"),
        ("g2", {"rollout_id": None}, "rollout_id"),
        ("g2", {"label": 7}, "label"),
        ("g2", {"initial_messages": None}, "initial_messages"),
        ("g2", {"metadata": []}, "metadata"),
        ("g3", {"extra_fields": "x"}, "extra_fields"),
        ("g3", {"completion_callback_url": None}, "completion_callback_url"),
    ],
)
def test_a_wrong_field_is_named(which: str, changes: dict[str, Any], field: str) -> None:
    assert {each["loc"][1] for each in refusal(which, **changes)} == {field}


def test_all_missing_fields_are_told_at_once_without_the_body() -> None:
    detail = refusal("g1", rollout_id=..., server_url=..., api_key="secret-of-mine")
    assert [each["loc"] for each in detail] == [["body", "rollout_id"], ["body", "server_url"]]
    assert detail[0] == {"type": "missing", "loc": ["body", "rollout_id"], "msg": "Field required"}


def test_keys_and_urls_are_never_repeated() -> None:
    for which, changes in (
        ("g1", {"api_key": "se\ncret"}),
        ("g1", {"server_url": "http://me:se-cret@host"}),
        ("g3", {"llm_api_key": ["se-cret"]}),
        ("g3", {"controller_api_key": "sé-cret"}),
        ("g3", {"completion_callback_url": "ftp://host/?k=se-cret"}),
    ):
        assert "cret" not in json.dumps(refusal(which, **changes))


@pytest.mark.parametrize("which", ["g2", "g3", "either"])
def test_trap_20_an_empty_grader_url_is_none(which: str) -> None:
    start = parsed(which, grader_callback_url="")
    assert (start.grader_url, start.grade) == (None, False)


@pytest.mark.parametrize("url", ["", "ftp://h/x", "http://", "h/x", "http://u:p@h/", "http://h:99999/", "http://[::1"])
@pytest.mark.parametrize(
    ("which", "field"),
    [
        ("g1", "server_url"),
        ("g2", "chat_completions_url"),
        ("g3", "chat_completions_url"),
        ("g2", "completion_callback_url"),
    ],
)
def test_trap_21_and_61_an_unusable_url_is_refused(which: str, field: str, url: str) -> None:
    assert refusal(which, **{field: url})[0]["loc"] == ["body", field]


@pytest.mark.parametrize("url", ["http://h/a?x=1", "http://h/a#b"])
def test_trap_80_nothing_can_be_put_after_a_query(url: str) -> None:
    refusal("g1", server_url=url)
    refusal("g3", chat_completions_url=url)


def test_a_callback_url_may_have_a_query() -> None:
    assert parsed("g3", grader_callback_url="http://h/cb?run=1").grader_url == "http://h/cb?run=1"


@pytest.mark.parametrize("changes", [{"label": ""}, {"label": None, "metadata": {}}])
def test_trap_37_presence_makes_a_rollout_gradable(changes: dict[str, Any]) -> None:
    assert parsed("g3", **changes).grade


def test_whether_there_is_enough_to_grade_is_for_the_graders_to_say() -> None:
    """Not every grader needs a label; those that do say that there is none."""
    assert parsed("g3", label=None, metadata=None).grade
    assert not parsed("g3", grader_callback_url=None).grade


def test_trap_38_a_prompt_may_be_empty() -> None:
    assert parsed("g1", messages=[]).prompt == ()
    assert parsed("g3", initial_messages=[]).prompt == ()


@pytest.mark.parametrize("name", ["a/b", "..", "\0", "x" * 256, "😀", " padded "])
def test_trap_41_first_two_generations_take_any_id(name: str) -> None:
    assert parsed("g1", rollout_id=name).wire_id == name
    start = parsed("g2", rollout_id=name)
    assert start.wire_id == name
    sent = start.chat.headers["x-rollout-id"]
    assert sent.isascii() and sent.isprintable() and sent == sent.strip()
    assert (sent == name) == (not start.notes)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0", "x" * 1025])
def test_trap_41_the_third_takes_one_path_segment(name: str) -> None:
    assert refusal("g3", rollout_id=name)[0]["loc"] == ["body", "rollout_id"]
    refusal("g2", rollout_id="x" * 1025)


def test_trap_30_an_id_that_no_answer_could_repeat_is_refused() -> None:
    assert refusal("g1", rollout_id="\ud83d")[0]["type"] == "string_unicode"


def test_trap_12_an_id_that_was_not_sent_is_not_made_up_on_the_wire() -> None:
    start = parsed("g3", rollout_id=...)
    assert (start.wire_id, start.rollout_id, start.keys) == (None, "made-up", ())
    assert "x-rollout-id" not in start.chat.headers


def test_trap_46_to_48_keys_have_namespaces() -> None:
    assert parsed("g1", idempotency_key="batch7-003").keys == ("key:batch7-003",)
    assert parsed("g1", idempotency_key="").keys == parsed("g1").keys == ("id:batch7-003",)
    assert refusal("g2", rollout_id="")[0]["loc"] == ["body", "rollout_id"]  # it names nothing


def test_trap_58_to_60_keys_of_the_chat_and_the_callbacks() -> None:
    assert refusal("g3", llm_api_key="")[0]["type"] == "string_too_short"
    assert parsed("g3", llm_api_key=" ").chat.key == " "
    assert parsed("g3", llm_api_key=None).chat.key == "k-9"
    quiet = parsed("g3", llm_api_key=None, controller_api_key="")
    assert (quiet.chat.key, quiet.callback_key) == (None, None)
    assert parsed("g1", api_key="").chat.key is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "nan", "1e400", 10**400, "soon"])
def test_trap_62_a_time_out_that_is_no_number_is_refused(value: Any) -> None:
    assert refusal("g3", agent_timeout_sec=value)[0]["loc"] == ["body", "agent_timeout_sec"]


def test_trap_63_a_time_out_may_be_over_at_once() -> None:
    assert parsed("g3", agent_timeout_sec=-3, grader_timeout_sec="0.5").limits == {"time": 0.0, "grade_time": 0.5}


def test_trap_64_time_outs_of_the_second_generation_count_only_when_asked() -> None:
    body = {**BODIES["g2"], "agent_timeout_sec": 3}
    assert ALL["g2"].parse(body, "").limits == {}
    assert MultiSample(enforce_deadlines=True).parse(body, "").limits == {"time": 3.0}


def test_trap_78_reserved_params_are_stripped_and_unknown_ones_forwarded() -> None:
    given = {"messages": [], "rollout_id": "x", "tools": [], "stream": True, "seed": "7", "top_k": 4, "extra": 1}
    start = parsed("g1", completion_params={**given, "model": "policy-2", "logprobs": False, "top_p": None})
    assert start.sampling == {"seed": 7, "extra": {"top_k": 4, "extra": 1}}
    assert (start.chat.model, start.chat.extra["logprobs"]) == ("policy-2", False)
    assert "messages, rollout_id, stream, tools" in start.notes[0]
    merged = merge_sampling(Sampling(), start.sampling)
    assert (merged.seed, merged.extra) == (7, {"top_k": 4, "extra": 1})


@pytest.mark.parametrize(
    ("stop", "kept"),
    [("", None), ([1, "", "b"], ["1", "b"]), ({}, None), (None, None), ("a", ["a"]), ([""], None), ([None], None)],
)
def test_trap_79_stop_texts(stop: Any, kept: list[str] | None) -> None:
    assert parsed("g1", completion_params={"stop": stop}).sampling.get("stop") == kept


def test_trap_104_a_stream_that_is_not_wanted_is_said() -> None:
    start = SingleSample(stream=False).parse(BODIES["g3"], "")
    assert (start.chat.stream, start.chat.extra) == (False, {"stream": False})


def test_limits_are_coerced_and_never_negative() -> None:
    start = parsed("g1", max_turns="-3", max_tokens_total="8192")
    assert start.limits == {"turns": 0, "total_tokens": 8192}
    assert start.notes == ("max_turns is negative, taken as 0",)
    assert parsed("g1", max_turns=...).limits == {}


def test_what_json_cannot_hold_is_mended_with_a_note() -> None:
    start = parsed("g3", initial_messages=[{"role": "user", "content": "a\ud83db", "n": float("nan")}])
    assert start.prompt == ({"role": "user", "content": "a\ufffdb", "n": "[left out: nan]"},)
    assert "initial_messages[0].content (half a surrogate pair)" in start.notes[0]


def test_trap_51_to_53_tools_keep_their_whole_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": 1}, "b": {"enum": [1, 2]}},
        "additionalProperties": False,
    }
    status, raw = ALL["g1"].accepted(parsed("g1"), [ToolSpec("add", "sum", schema), ToolSpec("now", "", {})])
    told = json.loads(raw)
    assert (status, told["rollout_id"]) == (202, "batch7-003")
    function = told["tools"][0]["function"]
    assert {**schema, "required": []} == function["parameters"]
    assert told["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}, "required": []}
    assert b"null" not in raw.replace(b'"type":"null"', b"")
    assert ALL["g1"].repeated("other", [])[1] == b'{"rollout_id":"other","tools":[]}'


def test_start_status_is_the_second_generations_and_of_those_that_may_be() -> None:
    assert MultiSample(start_status=200).accepted(parsed("g2"), ()) == (200, b"{}")
    assert Either(start_status=200).repeated("x", ()) == (200, b"{}")


def test_a_long_list_of_wrong_messages_makes_one_error() -> None:
    assert len(refusal("g3", initial_messages=[1] * 100_000)) == 1


_leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8)
_json = st.recursive(
    _leaves, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=5), each)
)
_names = sorted({name for body in BODIES.values() for name in body} | {"idempotency_key", "max_tokens_total"})
_urls = st.sampled_from(["http://h/x", "https://[::1]:8/é", "http://h/\ud83d", "http://h\\@x", "x" * 3000])


@settings(max_examples=150, deadline=None)
@given(which=st.sampled_from(sorted(ALL)), changes=st.dictionaries(st.sampled_from(_names), _json | _urls, max_size=3))
def test_any_body_is_a_start_or_a_422(which: str, changes: dict[str, Any]) -> None:
    try:
        start = ALL[which].parse({**BODIES[which], **changes}, "made-up")
    except Refused as refused:
        assert refused.status == 422
        json.dumps(refused.detail, allow_nan=False, ensure_ascii=False).encode()
    else:
        status, raw = ALL[which].accepted(start, ())
        assert status == 202 and json.loads(raw) is not None
        sent = [list(start.prompt), dict(start.chat.extra), dict(start.chat.headers), dict(start.metadata)]
        json.dumps([*sent, dict(start.sampling), list(start.notes)], allow_nan=False, ensure_ascii=False).encode()


@settings(max_examples=50, deadline=None)
@given(which=st.sampled_from(sorted(ALL)), body=_json)
def test_any_json_value_is_refused(which: str, body: Any) -> None:
    with pytest.raises(Refused) as caught:
        ALL[which].parse(body, "made-up")
    json.dumps(caught.value.detail, allow_nan=False, ensure_ascii=False).encode()
