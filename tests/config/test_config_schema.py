"""The published schemas: up to date, valid, and of one mind with the models."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from runner.config.document import describe, markdown
from runner.config.schema import schemas, text, workflow_schema
from runner.records.completion import Usage
from runner.records.failure import Failure
from runner.records.rollout import Outcome, RolloutRequest, Sample, ScoreRecord
from runner.store.record import to_record

ROOT = Path(__file__).parents[2]

WHOLE = r"""
#:schema ../schemas/workflow.schema.json
schema  = 1
extends = []
[workflow]
name = "support-triage"
version = "1.0.0"
description = "Resolve a ticket."
agent = "tools"
system = { file = "prompts/system.md" }
user = "{{ row.user_prompt }}"
label = "{{ row.ground_truth }}"
tools = ["search", "lookup_*"]
stop_when = ["no_tool_call", "tool:lookup_order"]
[model]
id = "openai/gpt-5-mini"
base_url = "http://localhost:8001/v1"
api_key = { env = "OPENAI_API_KEY" }
timeout = "120s"
retries = { attempts = 5, max_wait = "60s" }
concurrency = { mode = "adaptive", min = 4, start = 32, max = 1024 }
price = { input = 0.25, output = 2.00 }
return_token_ids = "auto"
headers = { X-Team = "a", X-Key = { env = "X" } }
[roles.judge]
id = "openai/gpt-5-mini"
concurrency = 8
sampling = { temperature = 0.0, max_tokens = 600 }
[roles.robot]
provider = "scripted"
rules = [
  { when = "turn == 0", reply = "hi", delay = "0s" },
  { tool_calls = [{ name = "search", arguments = { q = "{{ row.q }}" } }, { name = "b", arguments = "{}" }] },
  { error = "down" },
]
[sampling]
temperature = 1
top_p = 1.0
max_tokens = 2048
stop = []
seed = "per-attempt"
extra = { top_k = 5 }
[limits]
turns = 12
tool_calls = 40
total_tokens = 32768
time = "5m"
tool_time = "30s"
grader_time = "60s"
cost = "0.25 USD"
on_limit = { reward = 0.0 }
[tools.search]
call = "support.tools:search"
description = "Full-text search."
concurrency = 16
timeout = "10s"
retry = { attempts = 2, on = ["TimeoutError"] }
max_output = 8000
[tools.search.parameters]
type = "object"
required = ["query"]
additionalProperties = false
[tools.search.parameters.properties]
query = { type = "string", minLength = 2 }
[tools.lookup_order]
call = "./tools.py:lookup_order"
parameters = "signature"
inject = { db = "resource:orders", row = "row" }
[[tools.search.tests]]
args = { query = "refund policy" }
expect = { contains = "30 days" }
[[tools.search.tests]]
expect = 5
[resources.orders]
open = "support.db:open_orders"
scope = "rollout"
[graders.answer]
kind = "math"
extract = { regex = '####\s*(.+)', take = "last" }
expect = "{{ label }}"
[graders.resolved]
kind = "python"
call = "support.grade:resolved"
[graders.tone]
kind = "rubric"
votes = 3
criteria = [{ id = "polite", text = "Polite." }, { id = "c", text = "All.", type = "likert", levels = 5 }]
[graders.path]
kind = "trajectory"
expect = [{ tool = "search" }, { tool = "lookup_order", args = { a = 1 } }]
[graders.words]
kind = "contains"
expect = ["a", "b"]
[graders.shape]
kind = "json_schema"
schema = { type = "object" }
[graders.letter]
kind = "choice"
choices = ["A", "B"]
[graders.form]
kind = "regex"
pattern = "^x"
[[graders.answer.tests]]
output = "so #### 42"
label = "42"
expect = { min = 0.5 }
[reward]
combine = "weighted_mean"
weights = { answer = 0.6 }
measured = ["path"]
gates = [{ grader = "answer", below = 0.5, reward = 0.0 }]
range = [0.0, 1.0]
[dataset]
path = "data/tickets.jsonl"
id = "ticket_id"
columns = { user_prompt = "question" }
shuffle = { seed = 7 }
limit = 1000
rows = "3,7,10-20"
[eval]
attempts = 8
concurrency = 256
pass_threshold = 1.0
group_by = ["category"]
budget = { cost = "25 USD", time = "2h" }
breaker = 8
max_failed = 0.05
gates = [{ metric = "pass@1", bound = "lower", min = 0.55 }]
[[tests]]
name = "finds it"
row = 3
messages = [{ role = "user", content = "Where?" }]
label = "here"
attempt = 1
rules = [{ when = "turn == 0", tool_calls = [{ name = "search" }] }, { reply = "here" }]
[tests.expect]
stop_reason = "final_answer"
reward = { min = 0.5 }
tool_calls = ["search", { tool = "search", args = {} }]
contains = "h"
matches = "e$"
[[tests]]
row = { user_prompt = "Where?" }
rules = [{ reply = "there" }]
expect = { reward = 0 }
[env]
LOG_LEVEL = "info"
[secrets]
required = ["OPENAI_API_KEY"]
[matrix]
axes = { "sampling.temperature" = [0.0, 0.7, 1.0] }
[profiles.ci]
"eval.attempts" = 1
"""

BAD = [
    "schema = 2",
    "[nope]\na = 1",
    'model = "x"',
    '[model]\napi_key = "sk"',
    '[model]\nbase_url = "localhost"',
    "[model]\nconcurrency = 0",
    "[model]\nreturn_token_ids = 1",
    "[model]\nheaders = { a = 1 }",
    '[model]\nrules = [{ delay = 5 }]',
    '[workflow]\nagent = "tols"',
    "[workflow]\nuser = { fil = 'x' }",
    "[sampling]\ntemperature = 3",
    "[sampling]\ntop_p = 0",
    '[sampling]\ntop_p = "1"',
    '[sampling]\nseed = "x"',
    "[limits]\ntime = 90",
    '[limits]\ntime = "90"',
    "[limits]\ncost = 1",
    '[limits]\non_limit = "fail"',
    "[limits]\non_limit = { reward = 'x' }",
    "[limits]\nturns = 0",
    "[tools.a]\n",
    '[tools.a]\ncall = "a.b"',
    '[tools.a]\ncall = "a.py:b"',
    '[tools.a]\ncall = "a:b"\nparameters = "sig"',
    '[tools.a]\ncall = "a:b"\ntests = [{ expect = { contians = "x" } }]',
    '[tools.a]\ncall = "a:b"\ntests = [{ expect = { contains = "x", error = "y" } }]',
    '[tools.a]\ncall = "a:b"\ntests = [{ args = {} }]',
    '[graders.a]\nkind = "exat"',
    "[graders.a]\nignore_case = true",
    '[graders.a]\nkind = "exact"\ntolerance = 1.0',
    '[graders.a]\nkind = "exact"\nextract = { boxed = false }',
    '[graders.a]\nkind = "exact"\nextract = { boxed = true, tag = "x" }',
    '[graders.a]\nkind = "exact"\nextract = {}',
    '[graders.a]\nkind = "contains"\nexpect = []',
    '[graders.a]\nkind = "rubric"\ncriteria = []',
    '[graders.a]\nkind = "python"',
    '[graders.a]\nkind = "exact"\ntests = [{ output = "x", expect = "y" }]',
    "[reward]\nrange = [0.0]",
    "[reward]\nweights = { a = -1 }",
    '[dataset]\nrows = "a"',
    "[eval]\nattempts = 0",
    "[env]\nA = 1",
    '[secrets]\nrequired = ["a b"]',
    "[matrix]\naxes = { a = [] }",
    "[profiles]\nci = 1",
]  # fmt: skip


@pytest.fixture(scope="module")
def validator():
    return Draft202012Validator(workflow_schema())


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_checked_in_schemas_are_up_to_date(name):
    schema = schemas()[name]
    Draft202012Validator.check_schema(schema)
    assert (ROOT / "schemas" / name).read_text("utf-8") == text(schema), "run `osmosis-run schema --write schemas`"


def test_both_engines_accept_a_file_with_every_section(validator, inspect):
    assert list(validator.iter_errors(tomllib.loads(WHOLE))) == []
    loaded = inspect(
        WHOLE, files={"prompts/system.md": "x", "data/tickets.jsonl": ""}, environ={"OPENAI_API_KEY": "k", "X": "k"}
    )
    assert [one.message for one in loaded.report if one.severity == "error"] == []


@pytest.mark.parametrize("bad", BAD, ids=[bad.replace("\n", " ")[:50] for bad in BAD])
def test_both_engines_refuse(bad, validator, inspect):
    assert list(validator.iter_errors(tomllib.loads(bad)))
    assert inspect(bad, checks=False).report.errors


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("*/*.toml")), ids=str)
def test_our_own_configs_fit_the_schema(file, validator):
    data = tomllib.loads(file.read_text("utf-8"))
    if "project" not in data:
        assert [(list(one.absolute_path), one.message) for one in validator.iter_errors(data)] == []


def test_every_key_is_documented_and_tagged():
    entries = describe()
    assert len(entries) > 150
    for entry in entries:
        assert entry.doc, entry.key
        assert entry.affects in ("result", "grade", "operation")
        assert "None" not in entry.default, entry.key
        assert "class" not in entry.type, (entry.key, entry.type)


def test_every_property_of_the_schema_has_a_description():
    schema = workflow_schema()
    for name, definition in {"": schema, **schema["$defs"]}.items():
        assert definition.get("description"), name
        for key, value in definition["properties"].items():
            assert value.get("description"), (name, key)
            assert {"type": "null"} not in value.get("anyOf", []), (name, key)


def test_the_format_page_is_up_to_date():
    assert (ROOT / "docs" / "format.md").read_text("utf-8") == markdown()


def test_a_journal_line_fits_its_schema():
    validator = Draft202012Validator(schemas()["rollout.schema.json"])
    request = RolloutRequest("r-1", ({"role": "user", "content": "q"},), row_id="7", label="42")
    sample = Sample(messages=({"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}))
    scored = Outcome(
        request, "scored", "final_answer", 1.0, {"g": ScoreRecord(1.0, "ok")}, sample=sample, usage=Usage(3, 4)
    )
    failure = Failure("model", "model_unavailable", "no answer")
    failed = Outcome(
        request, "failed", "model_unavailable", failure=failure, scores={"g": ScoreRecord(None, "", failure)}
    )
    digests = {"result": "0" * 16, "grade": "1" * 16}
    for outcome in (scored, failed):
        line = json.loads(json.dumps(to_record(outcome, digests)))
        assert [one.message for one in validator.iter_errors(line)] == []
        assert list(validator.iter_errors({**line, "reward": None if line["reward"] else 0.0}))
        assert list(validator.iter_errors({key: value for key, value in line.items() if key != "digests"}))


def test_the_summary_schema_refuses_an_unknown_outcome():
    validator = Draft202012Validator(schemas()["summary.schema.json"])
    mean = {"mean": 0.5, "low": 0.1, "high": 0.9, "n": 2}
    usage = {"input_tokens": 1, "output_tokens": 2}
    summary = {
        "schema": "summary/1", "rows": 2, "attempts": 1, "outcomes": {"scored": 2}, "reward": mean,
        "pass_at": {"1": {"value": 0.5, "low": 0.1, "high": 0.9}}, "graders": {}, "usage": usage, "cost": None,
        "wall_seconds": 1.5,
    }  # fmt: skip
    assert list(validator.iter_errors(summary)) == []
    assert list(validator.iter_errors({**summary, "outcomes": {"passed": 2}}))
