"""Every exported row against the schema of its format, from a real run with everything a conversation may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from runner.batch.export.formats import FORMATS, Count, Selection, export
from runner.batch.past_run import PastRun
from runner.cli.commands.export import command

WORKFLOW = r"""
[workflow]
name   = "quotes"
system = "Use the tool. Gib Zahlen aus – 数字だけ 🙂"
user   = "{{ row.question }}"
label  = "{{ row.answer }}"

[model]
id       = "scripted/trader"
provider = "scripted"
[[model.rules]]
when       = "row.how == 'parallel' and turn == 0"
tool_calls = [{ name = "quote", arguments = { symbol = "ÄCME" } }, { name = "quote", arguments = { symbol = "B" } }]
[[model.rules]]
when       = "row.how == 'one' and turn == 0"
reply      = "I look it up."
tool_calls = [{ name = "quote", arguments = { symbol = "ACME" } }]
[[model.rules]]
when       = "row.how == 'bad' and turn == 0"
tool_calls = [{ name = "quote", arguments = '"oops' }]
[[model.rules]]
when       = "row.how == 'forever'"
tool_calls = [{ name = "quote", arguments = { symbol = "ACME" } }]
[[model.rules]]
when  = "row.how == 'down'"
error = "connection refused"
[[model.rules]]
reply = "{{ row.answer }}"

[limits]
turns = 3

[tools.quote]
call        = "./tools.py:quote"
description = "Last price – 株価"

[graders.answer]
kind = "exact"

[dataset]
path = "rows.jsonl"
id   = "id"

[eval]
attempts = 2
breaker  = 0
"""

TOOLS = '''
def quote(symbol: str, tag: str = "close") -> str:
    """The last price of a share."""
    return f"{symbol}: 12.5 €\\u2028 {tag}"
'''

ROWS: list[dict[str, Any]] = [
    {"id": "one", "how": "one", "question": "price of ACME?", "answer": "12.5"},
    {"id": "parallel", "how": "parallel", "question": "ÄCME und B? \u2028 \"quoted\" \\ \u0000", "answer": "12.5 €"},
    {"id": "plain", "how": "plain", "question": "nothing to look up", "answer": "日本語 👩‍🚀"},
    {"id": "bad", "how": "bad", "question": "a bad call", "answer": "12.5"},
    {"id": "forever", "how": "forever", "question": "never ends", "answer": "12.5"},
    {"id": "down", "how": "down", "question": "no model", "answer": "12.5"},
]  # fmt: skip

PARTS = {"type": "array", "minItems": 1, "items": {
    "type": "object", "required": ["type"],
    "properties": {"type": {"enum": ["text", "image_url", "input_audio", "file", "refusal"]}},
    "if": {"properties": {"type": {"const": "text"}}}, "then": {"required": ["type", "text"]},
}}  # fmt: skip
CONTENT = {"anyOf": [{"type": "string"}, PARTS]}
TOOL = {
    "type": "object", "additionalProperties": False, "required": ["type", "function"],
    "properties": {"type": {"const": "function"}, "function": {
        "type": "object", "additionalProperties": False, "required": ["name", "parameters"],
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, "description": {"type": "string"},
            "parameters": {"type": "object", "required": ["type"]}, "strict": {"type": "boolean"},
        },
    }},
}  # fmt: skip


def call(arguments: dict[str, Any], *, with_id: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "type": {"const": "function"},
        "function": {
            "type": "object", "additionalProperties": False, "required": ["name", "arguments"],
            "properties": {"name": {"type": "string", "minLength": 1}, "arguments": arguments},
        },
    }  # fmt: skip
    if with_id:
        properties["id"] = {"type": "string", "minLength": 1}
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


def message(role: str, required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": False, "required": ["role", *required],
        "properties": {"role": {"const": role}, **properties},
    }  # fmt: skip


def assistant(calls: dict[str, Any]) -> dict[str, Any]:
    made = message("assistant", [], content=CONTENT, tool_calls={"type": "array", "minItems": 1, "items": calls},
                   name={"type": "string"})  # fmt: skip
    return {**made, "anyOf": [{"required": ["content"]}, {"required": ["tool_calls"]}]}


def conversation(calls: dict[str, Any], tool: dict[str, Any]) -> dict[str, Any]:
    spoken = [message(role, ["content"], content=CONTENT) for role in ("system", "developer", "user")]
    return {"type": "array", "minItems": 2, "items": {"oneOf": [*spoken, assistant(calls), tool]}}


def schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


TOOLS_LIST = {"type": "array", "minItems": 1, "items": TOOL}
OPENAI_CALL = call({"type": "string", "contentMediaType": "application/json"}, with_id=True)
OPENAI_TOOL = message("tool", ["content", "tool_call_id"], content=CONTENT, tool_call_id={"type": "string"},
                      name={"type": "string"})  # fmt: skip
TRL_TOOL = message("tool", ["name", "content"], content=CONTENT, name={"type": "string", "minLength": 1})
SCHEMAS: dict[str, dict[str, Any]] = {
    "openai-sft": schema(
        {"messages": conversation(OPENAI_CALL, OPENAI_TOOL), "tools": TOOLS_LIST,
         "parallel_tool_calls": {"type": "boolean"}},
        ["messages"],
    ),
    "trl-sft": schema(
        {"messages": conversation(call({"type": "object"}, with_id=False), TRL_TOOL), "tools": TOOLS_LIST},
        ["messages"],
    ),
    "jsonl": schema(
        {
            "row": {"type": "integer", "minimum": 0}, "row_id": {"type": "string"},
            "attempt": {"type": "integer", "minimum": 0}, "reward": {"type": "number"},
            "scores": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
            "stop_reason": {"type": "string"}, "label": {}, "messages": {"type": "array", "minItems": 1},
            "tools": {"type": "array", "items": TOOL},
        },
        ["row", "row_id", "attempt", "reward", "scores", "stop_reason", "label", "messages", "tools"],
    ),
}  # fmt: skip


@pytest.fixture
def run(project: Any) -> Path:
    project.write(ROWS, WORKFLOW)
    (project.folder / "tools.py").write_text(TOOLS)
    result = project.run()
    assert result.summary["outcomes"] == {"scored": 10, "ungraded": 0, "failed": 2, "cancelled": 0}
    return Path(result.folder)


def exported(run: Path, form: str, **selection: Any) -> tuple[list[str], Count]:
    past, count = PastRun.open(run), Count()
    tools = past.manifest["tools"]
    return list(export(past.in_order(count.dropped), form, tools, Selection(**selection), count)), count


@pytest.mark.parametrize("form", FORMATS)
def test_rows_of_a_real_run_are_what_the_format_says(run: Path, form: str) -> None:
    validator = Draft202012Validator(SCHEMAS[form])
    lines, count = exported(run, form)
    rows = [json.loads(line) for line in lines]
    for row in rows:
        validator.validate(row)
    assert count.written == len(rows)
    assert count.written + sum(count.dropped.values()) == 12
    assert count.dropped["failed"] == 2
    if form != "jsonl":
        assert count.dropped["ends with a tool call that nobody answered"] + count.dropped[
            "does not end with an assistant message"
        ] == 2  # fmt: skip
        assert count.dropped["a tool call whose arguments are no JSON object"] == 2
        assert len(rows) == 6
    assert exported(run, form)[0] == lines
    assert all("\n" not in line and "\r" not in line for line in lines)


def test_parallel_calls_are_answered_in_full_and_in_order(run: Path) -> None:
    rows = [json.loads(line) for line in exported(run, "openai-sft")[0]]
    assert [row["parallel_tool_calls"] for row in rows] == [False, False, True, True, False, False]
    for row in rows:
        open_calls: list[str] = []
        for one in row["messages"]:
            if one["role"] == "tool":
                assert one["tool_call_id"] == open_calls.pop(0)
            else:
                assert not open_calls
            open_calls += [made["id"] for made in one.get("tool_calls", ())]
            for made in one.get("tool_calls", ()):
                assert isinstance(json.loads(made["function"]["arguments"]), dict)
    system = rows[2]["messages"][0]
    assert system == {"role": "system", "content": "Use the tool. Gib Zahlen aus – 数字だけ 🙂"}
    assert rows[2]["messages"][1]["content"] == ROWS[1]["question"]
    assert rows[4]["messages"][-1] == {"role": "assistant", "content": "日本語 👩‍🚀"}


def test_trl_rows_name_the_tool_of_each_answer(run: Path) -> None:
    rows = [json.loads(line) for line in exported(run, "trl-sft")[0]]
    assert rows[2]["messages"][2]["tool_calls"][0]["function"] == {"name": "quote", "arguments": {"symbol": "ÄCME"}}
    assert [one["name"] for one in rows[2]["messages"] if one["role"] == "tool"] == ["quote", "quote"]


@pytest.mark.parametrize("form", FORMATS)
def test_content_parts_pass_through(project: Any, form: str) -> None:
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]
    workflow = WORKFLOW.replace('user   = "{{ row.question }}"\n', "").replace(
        'system = "Use the tool. Gib Zahlen aus – 数字だけ 🙂"\n', ""
    )
    rows = [{"id": "p", "how": "plain", "answer": "a dot", "messages": [{"role": "user", "content": parts}]}]
    project.write(rows, workflow)
    (project.folder / "tools.py").write_text(TOOLS)
    lines, count = exported(project.run().folder, form)
    assert count.text() == "2 rows"
    row = json.loads(lines[0])
    Draft202012Validator(SCHEMAS[form]).validate(row)
    assert row["messages"][0] == {"role": "user", "content": parts}


def test_no_arguments_at_all_are_an_empty_object() -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": ""}}
    messages = [
        {"role": "user", "content": "time?"},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
        {"role": "assistant", "content": "noon"},
    ]
    record = {"outcome": "scored", "reward": 1.0, "row": 0, "row_id": "0", "attempt": 0, "messages": messages}
    for form, empty in (("openai-sft", "{}"), ("trl-sft", {})):
        row = json.loads(next(export([record], form, [], Selection(), Count())))
        assert row["messages"][1]["tool_calls"][0]["function"]["arguments"] == empty
        Draft202012Validator(SCHEMAS[form]).validate(row)


def test_what_the_last_command_did_not_ask_for_is_left_out_and_said_so(project: Any) -> None:
    result = project.run()
    project.run("dataset.limit=2", "eval.attempts=1")
    lines, count = exported(result.folder, "jsonl")
    assert [json.loads(line)["row_id"] for line in lines] == ["q0", "q1"]
    assert count.text() == "2 rows; left out: 10 not asked for by the last command"
    told = CliRunner().invoke(command, [str(result.folder), "--format", "jsonl", "-o", str(project.folder / "o.jsonl")])
    assert told.exit_code == 0
    assert (project.folder / "o.jsonl").read_text().splitlines() == lines
    project.run()
    assert len(exported(result.folder, "jsonl")[0]) == 12
