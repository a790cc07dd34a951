"""Which generation a start on `/rollout` is taken for, by the evidence of its body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.config.serve import ServeSection
from runner.serve.dialects.auto import make_dialects

PLAIN = {
    "rollout_id": "ep-41",
    "chat_completions_url": "http://ctl/v1",
    "completion_callback_url": "http://ctl/cb/done",
    "grader_callback_url": None,
}
AUTO = make_dialects(ServeSection())


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "either"),
        ({"llm_api_key": None}, "single-sample"),
        ({"llm_api_key": "x", "rollout_id": "a/b"}, "single-sample"),  # the first evidence counts
        ({"rollout_id": None}, "single-sample"),
        ({"rollout_id": "a/b"}, "multi-sample"),
        ({"rollout_id": ""}, "multi-sample"),
        ({"chat_completions_url": "http://ctl/v1/rollouts/ep-41"}, "single-sample"),
        ({"rollout_id": "ep 41", "grader_callback_url": "http://ctl/r/ep%2041/grader"}, "single-sample"),
        ({"chat_completions_url": "http://ctl/v1/ep-41x?ep-41"}, "either"),
        ({"chat_completions_url": "http://[", "grader_callback_url": 5}, "either"),
    ],
)
def test_the_evidence_in_its_order(changes: dict[str, Any], name: str) -> None:
    dialect = AUTO.choose("/rollout", {**PLAIN, **changes})
    assert dialect is not None and dialect.name == name


def test_an_absent_id_is_the_third_generations() -> None:
    body = {key: value for key, value in PLAIN.items() if key != "rollout_id"}
    dialect = AUTO.choose("/rollout", body)
    assert dialect is not None and dialect.name == "single-sample"


@pytest.mark.parametrize("name", ["agent-loop", "multi-sample", "single-sample"])
def test_a_dialect_that_is_named_is_not_guessed(name: Any) -> None:
    dialects = make_dialects(ServeSection(dialect=name))
    path = AUTO.named[name].path
    assert list(dialects.starts) == [path]
    for body in (PLAIN, {**PLAIN, "rollout_id": "a/b"}, {**PLAIN, "rollout_id": None}):
        dialect = dialects.choose(path, body)
        assert dialect is not None and dialect.name == name
    # Rollouts that an earlier process accepted keep the dialect they were accepted in.
    assert set(dialects.named) == {"agent-loop", "multi-sample", "single-sample", "either"}


def test_every_generation_has_its_path() -> None:
    assert set(AUTO.starts) == {"/v1/rollout/init", "/rollout"}
    assert AUTO.choose("/elsewhere", {}) is None
    assert {name: each.full_status for name, each in AUTO.named.items()} == {
        "agent-loop": 503,
        "multi-sample": 429,
        "single-sample": 429,
        "either": 429,
    }


_leaf = st.none() | st.integers() | st.text(st.characters(), max_size=6) | st.lists(st.integers(), max_size=2)


@settings(max_examples=60, deadline=None)
@given(body=st.dictionaries(st.sampled_from(sorted(PLAIN)), _leaf) | _leaf)
def test_any_value_is_taken_for_something(body: Any) -> None:
    assert AUTO.choose("/rollout", body) is not None
