# ruff: noqa: E501 - each expected finding is one line
"""Structural findings: our words, the exact place, the cure, and no cascade."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic_core import core_schema

from runner.config.words import _FINDINGS

CASES = [
    ("schema = 2", ["1:10 schema-version: this osmosis-run reads format 1, the file says `schema = 2` | must be `1`"]),
    ('model = "openai/x"', ["1:9 wrong-type: `model` must be a table, found a string | expected a table"]),
    ("max_turns = 5", ["1:1 renamed-key: the file has no key `max_turns` | write `turns` in `[limits]`"]),
    ("[samplng]\ntop_p = 1", ["1:2 unknown-key: there is no section `[samplng]` | did you mean `sampling`?"]),
    ('[workflow]\nagent = "tols"', ["2:9 unknown-kind: no agent is called `tols` | did you mean `tools`?"]),
    (
        '[workflow]\nagent = "a.b.Agent"',
        [
            "2:9 bad-reference: `workflow.agent` must name code as `package.module:name` or `./file.py:name`, found `a.b.Agent`"
            " | put a colon before the name: `a.b:Agent`"
        ],
    ),
    (
        "[workflow]\ntemperature = 1",
        ["2:1 misplaced-key: `temperature` does not belong to `[workflow]` | it belongs to `[sampling]`"],
    ),
    ("[workflow]\nsytem = 'x'", ["2:1 unknown-key: `[workflow]` has no key `sytem` | did you mean `system`?"]),
    (
        "[workflow]\nuser = { fil = 'x' }",
        ["2:10 unknown-key: `[workflow.user]` has no key `fil` | did you mean `file`?"],
    ),
    (
        '[sampling]\ntop_p = "0.95"',
        ["2:9 wrong-type: `sampling.top_p` must be a number, found a string | remove the quotes: `0.95`"],
    ),
    (
        "[sampling]\ntemperature = 20",
        ["2:15 out-of-range: `sampling.temperature` must be at most 2, found 20 | at most 2"],
    ),
    ("[sampling]\ntop_p = 0", ["2:9 out-of-range: `sampling.top_p` must be more than 0, found 0 | more than 0"]),
    (
        "[sampling]\ntop_p = nan",
        ["2:9 wrong-type: `sampling.top_p` must be a finite number, found the number nan | expected a finite number"],
    ),
    (
        "[sampling]\nmax_tokens = 5.0",
        ["2:14 wrong-type: `sampling.max_tokens` must be a whole number, found the number 5.0 | write `5`"],
    ),
    (
        '[sampling]\nstop = "x"',
        ['2:8 wrong-type: `sampling.stop` must be an array, found a string | put it in brackets: `["x"]`'],
    ),
    (
        '[sampling]\nseed = "random"',
        [
            '2:8 wrong-type: `sampling.seed` must be a whole number or `"per-attempt"`, found `random`'
            ' | expected a whole number or `"per-attempt"`'
        ],
    ),
    (
        "[sampling]\nstop = [1]",
        ['2:9 wrong-type: `sampling.stop[0]` must be a string, found a number | add quotes: `"1"`'],
    ),
    ("[sampling]\nn = 4", ["2:1 renamed-key: `[sampling]` has no key `n` | write `attempts` in `[eval]`"]),
    (
        "[limits]\ntime = 90",
        ['2:8 bad-duration: `limits.time` must be a duration with a unit, found the number 90 | write a unit: `"90s"`'],
    ),
    (
        '[limits]\ntime = "90"',
        ['2:8 bad-duration: `limits.time` must be a duration with a unit, found `90` | write a unit: `"90s"`'],
    ),
    (
        '[limits]\ntime = "9 s"',
        ['2:8 bad-duration: `limits.time` must be a duration with a unit, found `9 s` | write a unit: `"9s"`'],
    ),
    ('[limits]\ntime = "0s"', ["2:8 out-of-range: `limits.time` must be longer than 0s, found `0s` | longer than 0s"]),
    (
        "[limits]\ncost = 0.25",
        [
            '2:8 bad-money: `limits.cost` must be an amount of money in USD, found the number 0.25 | write a unit: `"0.25 USD"`'
        ],
    ),
    (
        "[limits]\nturns = true",
        ["2:9 wrong-type: `limits.turns` must be a whole number, found `true` | expected a whole number"],
    ),
    (
        '[limits]\non_limit = "fail"',
        [
            '2:12 wrong-type: `limits.on_limit` must be `"score"`, `"ungraded"` or `{ reward = 0.0 }`, found `fail`'
            ' | expected `"score"`, `"ungraded"` or `{ reward = 0.0 }`'
        ],
    ),
    ('[tools.a]\nfn = "a:b"', ["2:1 renamed-key: `[tools.a]` has no key `fn` | it is called `call`"]),
    ('[tools.a]\ncal = "a:b"', ["2:1 unknown-key: `[tools.a]` has no key `cal` | did you mean `call`?"]),
    (
        "[tools.a]\n",
        ['1:8 missing-key: `tools.a` needs `call` | add `call = "module:name"`, or `builtin = "bash"`'],
    ),
    (
        '[tools.a]\ncall = "a.b.c"',
        [
            "2:8 bad-reference: `tools.a.call` must name code as `package.module:name` or `./file.py:name`, found `a.b.c`"
            " | put a colon before the name: `a.b:c`"
        ],
    ),
    (
        '[tools.a]\ncall = "a.py:f"',
        [
            "2:8 bad-reference: `tools.a.call` must name code as `package.module:name` or `./file.py:name`, found `a.py:f`"
            " | begin with `./`: `./a.py:f`"
        ],
    ),
    (
        '[tools.a]\ncall = "a:b"\ntests = [{ expect = { contians = "x" } }]',
        ["3:23 unknown-key: `[tools.a.tests[0].expect]` has no key `contians` | did you mean `contains`?"],
    ),
    ('[graders.a]\nkind = "exat"', ["2:8 unknown-kind: no grader kind is called `exat` | did you mean `exact`?"]),
    ("[graders.a]\nkind = 5", ["2:8 wrong-type: `graders.a.kind` must be a string, found the number 5"]),
    ('[graders.a]\nexpect = "x"', ['1:10 missing-key: `graders.a` needs `kind` | add `kind = "exact"`']),
    (
        '[graders.a]\nkind = "exact"\nextract = { boxed = true, tag = "x" }',
        [
            "3:11 one-of: `graders.a.extract` takes exactly one of `regex`, `after`, `tag`, `boxed`, `json`, `last_line`,"
            " `number` | found `boxed` and `tag`"
        ],
    ),
    (
        '[graders.a]\nkind = "exact"\nextract = { boxed = false }',
        ["3:21 wrong-type: `graders.a.extract.boxed` must be `true`, found `false` | write `true`, or remove the key"],
    ),
    (
        '[graders.a]\nkind = "exact"\nweight = 2',
        ["3:1 renamed-key: `[graders.a]` has no key `weight` | write `a` in `[reward.weights]`"],
    ),
    (
        '[graders.a]\nkind = "json_schema"\nschema = { file = "nope.json" }',
        [
            "3:19 not-found: `graders.a.schema`: there is no file `nope.json`"
            " | looked in `FOLDER`, the folder of the file that says so"
        ],
    ),
    (
        '[roles.judge]\napi_key = "sk-123"',
        [
            '2:11 secret-in-file: `roles.judge.api_key` holds a secret in the file | name the variable instead: `{ env = "NAME" }`'
        ],
    ),
    (
        '[model]\nid = "openai/x"\nbase_url = "localhost"',
        [
            "3:12 bad-value: `model.base_url` must be an address that begins with `http://` or `https://`, found `localhost`"
            ' | for example `"http://localhost:8000/v1"`'
        ],
    ),
    (
        '[dataset]\nrows = "a-b"',
        [
            "2:8 bad-value: `dataset.rows` must be numbers of rows, counted from 0, found `a-b`"
            ' | for example `"3,7,10-20"`'
        ],
    ),
    ("[reward]\nrange = [0.0]", ["2:9 wrong-type: `reward.range` must hold two numbers | write `[low, high]`"]),
    ("[env]\nPORT = 8080", ['2:8 wrong-type: `env.PORT` must be a string, found a number | add quotes: `"8080"`']),
    (
        "[env]\nDAY = 2026-01-01",
        ["2:7 wrong-type: `env.DAY` must be a string, found a date or time | expected a string"],
    ),
    (
        "[matrix]\naxes = { a = [] }",
        ["2:14 out-of-range: `matrix.axes.a` must have at least one value | at least one value"],
    ),
    (
        '[graders.a]\nkind = "rubric"\ncriteria = [{ id = "a b", text = "t" }]',
        [
            "3:20 bad-value: `graders.a.criteria[0].id` must be a name of letters, digits, `_`, `.` and `-`, found `a b`"
            " | no spaces"
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0].replace("\n", " ")[:50] for case in CASES])
def test_structural_findings(text, expected, inspect, findings, tmp_path):
    loaded = inspect(text, checks=False)
    assert [line.replace(f"`{tmp_path.name}`", "`FOLDER`") for line in findings(loaded)] == expected


def test_all_findings_at_once_and_the_rest_is_a_config(inspect, findings):
    loaded = inspect(
        """
[sampling]
temprature = 1
top_p = "0.9"
max_tokens = 7

[tools.good]
call = "a:b"
[tools.bad]
call = 5

[graders.g]
kind = "exact"
ignore_case = "yes"
""",
        checks=False,
    )
    assert [line.split(" ")[1] for line in findings(loaded)] == [
        "unknown-key:",
        "wrong-type:",
        "wrong-type:",
        "wrong-type:",
    ]
    assert loaded.config is not None
    assert loaded.config.sampling.max_tokens == 7
    assert loaded.config.sampling.top_p is None
    assert list(loaded.config.tools) == ["good"]
    assert loaded.config.graders["g"].kind == "exact"
    assert loaded.is_broken(("tools", "bad", "call"))
    assert loaded.is_broken(("sampling",))
    assert not loaded.is_broken(("limits",))


def test_broken_names_cause_no_second_finding(inspect, findings):
    """A weight for a grader whose table is broken, a use of a tool that is broken: told once, at the cause."""
    loaded = inspect(
        """
[workflow]
tools = ["t"]
[tools.t]
call = 5
[graders.g]
kind = "exat"
[reward]
weights = { g = 1.0 }
"""
    )
    assert [line.split(" ")[1] for line in findings(loaded)] == ["wrong-type:", "unknown-kind:"]


def test_fixes_are_mechanical_and_repair_the_file(inspect):
    text = (
        '[sampling]\ntemprature = 0.7\ntop_p = "0.95"\n[limits]\ntime = 90\ncost = 1\n'
        '[tools.a]\nfn = "m:f"\nmax_output = "5"\n[graders.g]\nkind = "exat"\n[env]\nA = 1\n'
    )
    loaded = inspect(text, checks=False)
    fixes = sorted((one.fix for one in loaded.report if one.fix), key=lambda fix: fix.place.start, reverse=True)
    assert len(fixes) == 8
    for fix in fixes:
        text = text[: fix.place.start] + fix.text + text[fix.place.end :]
    again = inspect(text, checks=False)
    assert list(again.report) == []
    assert again.config.sampling.temperature == 0.7
    assert again.config.env == {"A": "1"}


def test_no_words_of_the_validator_reach_a_user():
    """Every kind of refusal the models can make has a finding of ours."""
    known = set(get_args(core_schema.ErrorType))
    ours = {"quantity", "choice_type", "exactly_one", "secret_in_file", "text_or_file", "reference", "too_small"}
    assert set(_FINDINGS) - known <= ours | {"unknown_kind", "empty", "missing", "extra_forbidden"}


def test_secrets_are_never_echoed(inspect, findings):
    loaded = inspect('[model]\nid = "openai/x"\napi_key = "sk-very-secret"\n[env]\nMY_TOKEN = 12345\n', checks=False)
    text = "\n".join(findings(loaded))
    assert "sk-very-secret" not in text
    assert "12345" not in text
