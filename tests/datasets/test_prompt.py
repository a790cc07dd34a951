"""From a row to its prompt and its label."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.datasets.dataset import DatasetError
from runner.datasets.prompt import label_of, messages_of
from runner.templates.template import Template

SYSTEM = {"role": "system", "content": "S"}
USER = {"role": "user", "content": "U"}
DEVELOPER = {"role": "developer", "content": "D"}
BEGUN = {"role": "assistant", "content": "A"}
PARTS = [{"type": "text", "text": "U"}]
ROLES = "roles are system, developer, user, assistant, tool"


@pytest.mark.parametrize(
    ("row", "system", "user", "expected"),
    [
        ({"user_prompt": "U"}, None, None, [USER]),
        ({"user_prompt": "U", "system_prompt": "S"}, None, None, [SYSTEM, USER]),
        ({"user_prompt": "U", "system_prompt": None}, None, None, [USER]),
        ({"user_prompt": "U", "system_prompt": "theirs"}, "S", None, [SYSTEM, USER]),
        ({"q": "U"}, "S", "{{ row.q }}", [SYSTEM, USER]),
        ({"q": "U"}, None, "{{ row.q }}{{ label }}", [{"role": "user", "content": "U42"}]),
        ({"messages": [USER]}, "S", "unused", [SYSTEM, USER]),
        ({"messages": [SYSTEM, USER]}, "other", None, [SYSTEM, USER]),
        ({"messages": [DEVELOPER, USER]}, "S", None, [DEVELOPER, USER]),
        ({"messages": json.dumps([USER])}, None, None, [USER]),
        ({"messages": None, "user_prompt": "U"}, None, None, [USER]),
        ({"messages": [USER, BEGUN]}, None, None, [USER, BEGUN]),
        ({"user_prompt": PARTS}, None, None, [{"role": "user", "content": PARTS}]),
    ],
)
def test_prompts(row: dict[str, Any], system: str | None, user: str | None, expected: list[Any]) -> None:
    made = messages_of(
        row, system=Template(system) if system else None, user=Template(user) if user else None, label="42"
    )
    assert made == expected


def test_a_prompt_is_a_copy() -> None:
    row = {"messages": [dict(USER)]}
    messages_of(row)[0]["content"] = "changed"
    assert row["messages"] == [USER]


def test_tool_turns_are_allowed() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "4"}]
    assert messages_of({"messages": turns}) == turns


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "q", "id": 1}, "the row has neither `messages` nor `user_prompt`; it has `question`, `id`"),
        ({"user_prompt": None}, "`user_prompt` is null"),
        ({"user_prompt": 3}, "`user_prompt` is a number, not text"),
        ({"user_prompt": "x", "system_prompt": {"a": 1}}, "`system_prompt` is an object, not text"),
        ({"messages": []}, "`messages` is an empty list"),
        ({"messages": {}}, "`messages` is an object, not a list of messages"),
        ({"messages": "hello"}, "`messages` is text, but not JSON: Expecting value: line 1 column 1 (char 0)"),
        ({"messages": ["hi"]}, '`messages[0]` is text, not an object such as {"role": "user", "content": "…"}'),
        ({"messages": [USER, {"role": "bot", "content": ""}]}, f'`messages[1]` has the role "bot"; {ROLES}'),
        ({"messages": [{"content": ""}]}, f"`messages[0]` has no `role`; {ROLES}"),
        ({"messages": [{"role": "user"}]}, "`messages[0]` has no `content`"),
        ({"messages": [{"role": "user", "content": 3}]}, "`messages[0]` has a number as its content, not text"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "`messages[0]` has a content part without a `type`"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "`messages[0]` is a tool result without its `tool_call_id`"),
    ],
)
def test_rows_without_a_prompt(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError) as caught:
        messages_of(row, where="data.jsonl:3")
    assert str(caught.value) == f"data.jsonl:3: {message}"


def test_the_hint_names_the_likely_column() -> None:
    with pytest.raises(DatasetError) as caught:
        messages_of({"id": 1, "question": "q"})
    assert caught.value.hint == 'say which column it is: [dataset] columns = { user_prompt = "question" }'


def test_a_template_that_names_what_the_row_lacks() -> None:
    with pytest.raises(DatasetError) as caught:
        messages_of({"question": "q"}, user=Template("{{ row.qestion }}"), where="d.jsonl:2")
    assert str(caught.value) == "d.jsonl:2: the prompt cannot be made: `row` has no `qestion`; did you mean `question`?"


@pytest.mark.parametrize(
    ("row", "template", "expected"),
    [
        ({"ground_truth": "4"}, None, "4"),
        ({"ground_truth": 4.0}, None, "4.0"),
        ({"ground_truth": True}, None, "true"),
        ({"ground_truth": ["é"]}, None, '["é"]'),
        ({"ground_truth": None}, None, None),
        ({}, None, None),
        ({"answer": 7}, "{{ row.answer }}", "7"),
        ({"answer": None}, "{{ row.answer }}", None),
        ({"answer": "#### 7"}, "{{ row.answer.split('####')[1].strip() }}", "7"),
    ],
)
def test_labels(row: dict[str, Any], template: str | None, expected: str | None) -> None:
    assert label_of(row, Template(template) if template else None) == expected


def test_a_label_that_is_not_there() -> None:
    with pytest.raises(DatasetError, match=r"d\.csv:4: the label cannot be made: `row` has no `answr`"):
        label_of({"answer": "1"}, Template("{{ row.answr }}"), where="d.csv:4")
