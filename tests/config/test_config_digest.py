"""Digests: what a changed key costs a finished run."""

from __future__ import annotations

import re

import pytest

from runner.config.digest import changed, digest, facts

FILE = """
[workflow]
system = { file = "p.md" }
[model]
id = "openai/x"
[tools.t]
call = "m:t"
parameters = { type = "object" }
[graders.g]
kind = "exact"
[graders.r]
kind = "rubric"
criteria = [{ id = "a", text = "t" }]
[roles.judge]
id = "openai/j"
[matrix]
axes = { "limits.turns" = [1, 2] }
"""


def parts(inspect, text=FILE, sets=(), prompt="hi"):
    return facts(inspect(text, sets=list(sets), files={"p.md": prompt}, checks=False).config)


@pytest.mark.parametrize(
    ("word", "part", "key"),
    [
        ("workflow.user=hello", "result", "workflow.user"),
        ("sampling.temperature=0.5", "result", "sampling.temperature"),
        ("model.id=openai/y", "result", "model.id"),
        ("limits.turns=3", "result", "limits.turns"),
        ("tools.t.description=x", "result", "tools.t.description"),
        ("tools.t.parameters.required=['a']", "result", "tools.t.parameters"),
        ("workflow.config.a=1", "result", "workflow.config"),
        ("graders.g.ignore_case=true", "grade", "graders.g.ignore_case"),
        ("reward.weights.g=2", "grade", "reward.weights.g"),
        ("workflow.label=x", "grade", "workflow.label"),
        ("roles.judge.id=openai/k", "grade", "roles.judge.id"),
        ("roles.judge.sampling.temperature=0", "grade", "roles.judge.sampling.temperature"),
        ("limits.on_limit=ungraded", "grade", "limits.on_limit.action"),
        ("eval.attempts=4", "operation", "eval.attempts"),
        ("eval.concurrency=4", "operation", "eval.concurrency"),
        ("eval.pass_threshold=0.5", "operation", "eval.pass_threshold"),
        ("model.timeout=5s", "operation", "model.timeout"),
        ("model.retries.attempts=1", "operation", "model.retries.attempts"),
        ("roles.judge.timeout=5s", "operation", "roles.judge.timeout"),
        ("model.price={input = 1, output = 2}", "operation", "model.price.input"),
        ("tools.t.timeout=1s", "operation", "tools.t.timeout"),
        ("tools.t.tests=[{expect = 1}]", "operation", "tools.t.tests"),
        ("graders.g.tests=[{output = 'x', expect = 1}]", "operation", "graders.g.tests"),
        ("dataset.limit=5", "operation", "dataset.limit"),
        ("workflow.name=n", "operation", "workflow.name"),
    ],
)
def test_what_a_change_affects(word, part, key, inspect):
    old, new = parts(inspect), parts(inspect, sets=[word])
    for name in ("result", "grade", "operation"):
        differ = changed(old[name], new[name])
        assert (digest(old[name]) != digest(new[name])) == (name == part), name
        assert (key in differ) == (name == part), differ


def test_the_content_of_a_file_counts_not_its_name(inspect):
    old, new = parts(inspect), parts(inspect, prompt="other")
    assert changed(old["result"], new["result"]) == ["workflow.system"]
    inline = parts(inspect, text=FILE.replace('{ file = "p.md" }', '"hi"'))
    assert digest(inline["result"]) == digest(old["result"])


def test_the_order_of_keys_does_not_count_and_defaults_do(inspect):
    turned = "\n".join(["[graders.g]", 'kind = "exact"', "ignore_case = false", *FILE.split("\n")]).replace(
        '[graders.g]\nkind = "exact"\n[graders.r]', "[graders.r]"
    )
    assert digest(parts(inspect, text=turned)["grade"]) == digest(parts(inspect)["grade"])
    assert parts(inspect)["result"]["limits.turns"] == 12
    assert parts(inspect)["result"]["workflow.agent"] == "tools"


def test_a_digest_is_short_hex_and_a_number_is_not_its_text(inspect):
    assert re.fullmatch("[0-9a-f]{16}", digest({"a": 1}))
    assert digest({"a": 1}) != digest({"a": "1"})
    assert changed({"a": None}, {}) == ["a"]
    assert changed({"a": 1, "b": True}, {"a": 1.0, "b": 1}) == ["a", "b"]
