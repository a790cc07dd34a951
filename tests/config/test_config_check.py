# ruff: noqa: E501 - each expected finding is one line
"""Semantic findings: what one table cannot know alone. Each case is the whole list of findings of a file."""

from __future__ import annotations

import pytest

A = '[tools.search]\ncall = "m:search"\n[graders.g]\nkind = "exact"\n'
"""A sound beginning: one tool, one grader; four lines."""

CASES = [
    ('[workflow]\ntools = ["serch"]\n', ["6:10 unknown-tool: no tool is called `serch` | did you mean `search`?"]),
    ('[workflow]\ntools = ["x/*"]\n', ["6:10 unknown-tool: `x/*` matches no tool"]),
    (
        '[workflow]\ntools = ["s*", "search", "search"]\n',
        ["W 6:26 duplicate-name: `search` is listed twice | remove one"],
    ),
    ('[workflow]\nstop_when = ["tool:finish"]\n', ["6:14 unknown-tool: no tool is called `finish`"]),
    (
        '[workflow]\nstop_when = ["search"]\n',
        ["6:14 bad-choice: `search` is nothing to stop at | did you mean `tool:search`?"],
    ),
    ('[workflow]\nagent = "chat"\n', ["W 6:9 no-effect: the agent `chat` calls no tools | `tools` does"]),
    (
        '[tools."a b"]\ncall = "m:f"\n',
        ["5:8 bad-value: models cannot call a tool named `a b` | letters, digits, `_` and `-`, at most 64"],
    ),
    (
        '[tools.t]\ncall = "m:f"\ninject = { db = "resource:bd" }\n[resources.db]\nopen = "m:o"\n',
        ["7:17 unknown-resource: no resource is called `bd` | did you mean `db`?"],
    ),
    (
        '[tools.t]\ncall = "m:f"\ninject = { db = "db" }\n[resources.db]\nopen = "m:o"\n',
        ["7:17 bad-choice: `db` cannot be injected | did you mean `resource:db`?"],
    ),
    (
        '[graders.r]\nkind = "rubric"\nrole = "jugde"\ncriteria = [{ id = "a", text = "t" }]\n'
        '[roles.judge]\nprovider = "scripted"\nrules = [{ reply = "x" }]\n',
        [
            "7:8 unknown-role: no role is called `jugde` | did you mean `judge`?",
        ],
    ),
    (
        '[graders.r]\nkind = "rubric"\ncriteria = [{ id = "a", text = "t" }, { id = "a", text = "u", levels = 3 }]\n',
        [
            "5:10 unknown-role: the rubric is judged by `judge`, and there is no such role | add `[roles.judge]`",
            "7:46 duplicate-name: two of the criteria are `a` | second use",
            "7:63 misplaced-key: `levels` goes with `likert` only, and `a` is `binary` | remove it",
        ],
    ),
    (
        '[graders.p]\nkind = "trajectory"\nexpect = [{ tool = "serach" }]\n',
        ["7:20 unknown-tool: no tool is called `serach` | did you mean `search`?"],
    ),
    ("[reward]\nweights = { gg = 1.0 }\n", ["6:13 unknown-grader: no grader is called `gg` | did you mean `g`?"]),
    (
        "[reward]\nweights = { g = 0 }\n",
        ["6:11 unused-weight: all weights are zero, so nothing makes a reward | give one more than 0"],
    ),
    (
        '[reward]\nmeasured = ["g"]\n',
        ["6:12 unused-weight: every grader is only measured, so nothing makes a reward"],
    ),
    (
        '[graders.h]\nkind = "math"\n[reward]\nweights = { h = 1 }\nmeasured = ["h"]\n',
        ["8:13 unused-weight: `h` is only measured, so its weight counts for nothing | remove one of the two"],
    ),
    (
        '[reward]\ncombine = "min"\nweights = { g = 1 }\n',
        ['W 7:1 unused-weight: `combine = "min"` has no use for weights | remove them'],
    ),
    (
        '[reward]\ngates = [{ grader = "g", below = 0.0 }]\n',
        ["6:34 gate-never: no score is below 0, so this gate never closes | scores of `g` are 0 to 1"],
    ),
    (
        '[reward]\ngates = [{ grader = "g", above = 1 }]\n',
        ["6:34 gate-never: no score is above 1, so this gate never closes | scores of `g` are 0 to 1"],
    ),
    (
        '[reward]\ngates = [{ grader = "g" }]\n',
        ["6:10 one-of: `reward.gates[0]` takes exactly one of `below`, `above` | add one"],
    ),
    (
        "[reward]\nrange = [1, 0]\n",
        ["6:9 out-of-range: `reward.range` begins at 1 and ends at 0 | the lower bound comes first"],
    ),
    (
        "[reward]\nrange = [0, 1]\n[limits]\non_limit = { reward = -1 }\n",
        ["8:12 out-of-range: the reward -1 is outside `reward.range` | 0 to 1"],
    ),
    (
        '[eval]\ngates = [{ metric = "pass@2", min = 0.5 }]\n',
        ["6:21 gate-never: `pass@2` needs 2 attempts, and `eval.attempts` is 1 | set `eval.attempts = 2`, or more"],
    ),
    (
        '[eval]\ngates = [{ metric = "pass@1", min = 1.5 }]\n',
        ["6:37 gate-never: `pass@1` is never 1.5 or more, so this gate never holds | at most 1"],
    ),
    (
        '[eval]\ngates = [{ metric = "rewrad", min = 1.5 }, { metric = "reward" }, { metric = "reward", min = 2, max = 1 }]\n',
        [
            "6:21 bad-choice: no metric is called `rewrad` | did you mean `reward`?",
            "6:44 one-of: `eval.gates[1]` takes `min`, `max` or both | add one",
            "6:67 gate-never: nothing is at least 2 and at most 1 | lower `min`",
        ],
    ),
    (
        '[model]\nid = "openai/x"\napi_key = { env = "K" }\n[secrets]\nrequired = ["K", "L"]\n',
        [
            "9:13 secret-missing: the environment variable `K` is not set | `export K=…`",
            "9:18 secret-missing: the environment variable `L` is not set | `export L=…`",
        ],
    ),
    (
        '[model]\nprovider = "scripted"\napi_key = { env = "K" }\nrules = [{ reply = "x" }]\n',
        ["W 7:1 no-effect: a model that is `scripted` never uses `api_key` | remove it"],
    ),
    (
        '[model]\nid = "openai/x"\nheaders = { Authorization = "Bearer x" }\n',
        [
            "7:29 secret-in-file: the header `Authorization` holds a secret in the file"
            ' | name the variable instead: `{ env = "NAME" }`'
        ],
    ),
    (
        '[model]\nprovider = "scripted"\n',
        ["5:2 missing-key: `model` is scripted and has no rules | add `[[model.rules]]`"],
    ),
    (
        '[model]\nprovider = "replay"\n',
        ['5:2 missing-key: `model` is a replay and has no recording | add `recording = "FILE"`'],
    ),
    ("[model]\nstream = true\n", ['5:2 missing-key: `model` has no `id` | add `id = "provider/model"`']),
    (
        '[model]\nid = "gpt-5"\n',
        ["6:6 bad-value: `gpt-5` does not say which provider serves it | write `openai/gpt-5`, or set `base_url`"],
    ),
    (
        '[model]\nid = "openai/x"\nrules = [{ reply = "x" }]\n',
        [
            "7:1 misplaced-key: only a scripted model reads `rules`, and `model` is `openai`"
            ' | add `provider = "scripted"`, or remove them'
        ],
    ),
    (
        '[model]\nid = "openai/x"\nconcurrency = { min = 9, start = 4 }\n',
        ["7:15 out-of-range: `min` 9, `start` 4 and `max` 1024 are not in order | min ≤ start ≤ max"],
    ),
    (
        '[model]\nid = "openai/x"\nconcurrency = { mode = "fixed", max = 3, min = 1 }\n',
        ["W 7:42 no-effect: a fixed concurrency has no `min` | remove it"],
    ),
    (
        '[limits]\ntime = "10s"\ntool_time = "20s"\n',
        ["7:13 limits-conflict: `limits.tool_time` is 20s, and `limits.time` ends the rollout after 10s | at most 10s"],
    ),
    ('[limits]\ntime = "10s"\n', []),
    (
        '[env]\nFINE = "a=b"\n"A=B" = "x"\nNUL = "a\\u0000b"\n',
        [
            "7:1 bad-value: `'A=B'` cannot name a variable: no system takes one that is empty or holds `=` or a zero "
            "byte | give it another name",
            "8:7 bad-value: the value of `NUL` holds a zero byte, and no variable can | take it out",
        ],
    ),
    ('[limits]\ngrader_time = "10m"\n', []),  # graders begin when the agent has ended: they have time of their own
    (
        "[limits]\ntotal_tokens = 100\n[sampling]\nmax_tokens = 200\n",
        [
            "8:14 limits-conflict: one answer may take 200 tokens, and `limits.total_tokens` ends the rollout at 100 | at most 100"
        ],
    ),
    (
        "[graders.x]\nkind = \"regex\"\npattern = 'a(b'\n",
        [
            "7:13 bad-regex: `a(b` is not a regular expression: a group is never closed"
            " | add `)`, or write `\\(` for the character"
        ],
    ),
    (
        "[graders.x]\nkind = \"exact\"\nextract = { regex = '(a)', group = 2 }\n",
        ["7:36 bad-regex: the pattern has no group `2` | groups: 0 to 1"],
    ),
    (
        '[graders.x]\nkind = "choice"\nchoices = ["A"]\n',
        ["7:11 out-of-range: `graders.x.choices` must have 2 to 26 values, found 1 | 2 to 26"],
    ),
    (
        '[[graders.g.tests]]\nlabel = "x"\nexpect = 1\n',
        ["5:1 one-of: a grader test takes exactly one of `output`, `messages` | add one"],
    ),
    ('[dataset]\npath = "nope.jsonl"\n', ["6:8 dataset-missing: there is no dataset `nope.jsonl`"]),
    ('[dataset]\npath = "."\n', ["6:8 dataset-missing: the dataset `.` is a folder | name a file in it"]),
    (
        '[tools.t]\ncall = "m:f"\nparameters = { type = "object", properties = { q = { type = "strng" } } }\n',
        [
            "7:61 bad-json-schema: not a valid JSON Schema (draft 2020-12)"
            " | `strng` is not a JSON type; did you mean `string`?"
        ],
    ),
    (
        '[tools.t]\ncall = "m:f"\nparameters = { type = "object", requried = ["q"], properties = { q = { "$ref" = "#/$defs/x" } } }\n',
        [
            "W 7:33 bad-json-schema: `requried` is no keyword of JSON Schema, so it checks nothing | did you mean `required`?",
            "7:81 bad-json-schema: `#/$defs/x` is nowhere in this schema | only `#/…` within the schema is followed",
        ],
    ),
    (
        '[tools.t]\ncall = "m:f"\nparameters = { type = "string" }\n',
        [
            '7:23 bad-json-schema: `tools.t.parameters` must describe an object: a tool\'s arguments have names | write `"object"`'
        ],
    ),
    (
        '[graders.j]\nkind = "json_schema"\nschema = { minLength = -1 }\n',
        [
            "7:24 bad-json-schema: not a valid JSON Schema (draft 2020-12): `minLength` cannot have this value"
            " | must be a whole number from 0"
        ],
    ),
    (
        '[matrix]\naxes = { "sampling.temp" = [1] }\n',
        ["6:10 unknown-axis: the axis `sampling.temp` names no key of the file"],
    ),
    (
        '[matrix]\naxes = { "sampling.temperatur" = [1] }\n',
        [
            "6:10 unknown-axis: the axis `sampling.temperatur` names no key of the file"
            " | did you mean `sampling.temperature`?"
        ],
    ),
    (
        '[matrix]\naxes = { "sampling.temperature" = [1, 9] }\n',
        ["6:39 out-of-range: `sampling.temperature` must be at most 2, found 9 | at most 2"],
    ),
    (
        '[matrix]\nmax_cells = 2\naxes = { "limits.turns" = [1, 2, 3] }\n',
        [
            "7:1 out-of-range: the axes make 3 cells, and `matrix.max_cells` is 2 | take values away, or raise `max_cells`"
        ],
    ),
    (
        '[profiles.ci]\n"eval.attempt" = 1\n[profiles.ci.sampling]\ntop_p = "x"\n',
        [
            "6:1 unknown-key: `[eval]` has no key `attempt` | did you mean `attempts`?",
            "8:9 wrong-type: `sampling.top_p` must be a number, found a string | expected a number",
        ],
    ),
    (
        '[env]\nMY_TOKEN = "x"\n',
        [
            "W 6:1 secret-in-file: `MY_TOKEN` in `[env]` looks like a secret in the file | set it in the environment and name it in `[secrets] required`"
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0].replace("\n", " ")[:60] for case in CASES])
def test_semantic_findings(text, expected, inspect, findings):
    assert findings(inspect(A + text)) == expected


def test_a_set_secret_is_no_finding(inspect):
    text = A + '[model]\nid = "openai/x"\napi_key = { env = "K" }\n[secrets]\nrequired = ["K"]\n'
    assert list(inspect(text, environ={"K": "v"}).report) == []


def test_an_empty_table_sets_nothing(inspect):
    assert list(inspect('[graders.g]\nkind = "exact"\n[workflow]\n[limits]\n[eval]\n').report) == []


def test_jsonschema_is_imported_for_a_schema_only(inspect):
    import subprocess
    import sys
    from pathlib import Path

    inspect(A)
    code = (
        "import sys; from pathlib import Path; from runner.config.load import inspect_file; from runner.config.check import check;"
        "l = inspect_file(Path(sys.argv[1]), environ={}); check(l); assert l.config and not l.report.errors;"
        "print(sorted({'jsonschema','jinja2','asyncio','litellm','httpx','aiohttp','rich','difflib','inspect'} & set(sys.modules)))"
    )
    folder = Path(inspect(A).path)
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert "jsonschema" not in done.stdout
    assert not {"jinja2", "asyncio", "litellm", "httpx", "aiohttp", "rich"} & set(
        done.stdout.strip("[]\n'").split("', '")
    )
