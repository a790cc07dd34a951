"""Whatever a file holds, inspecting and checking it ends, raises nothing, and says where it is wrong."""

from __future__ import annotations

import tempfile
import tomllib
from copy import deepcopy
from pathlib import Path

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.config.check import check
from runner.config.digest import digest, facts
from runner.config.explain import explain
from runner.config.layers import Override
from runner.config.load import inspect_file

SOUND = tomllib.loads(
    """
extends = []
[workflow]
agent = "tools"
tools = ["a", "b*"]
stop_when = ["tool:a"]
user = "x"
[model]
id = "openai/x"
concurrency = { min = 1, start = 2, max = 3 }
retries = { attempts = 1 }
price = { input = 1, output = 2 }
[[model.rules]]
reply = "x"
tool_calls = [{ name = "a", arguments = { q = 1 } }]
[roles.judge]
id = "openai/y"
sampling = { top_p = 0.5 }
[sampling]
stop = ["x"]
seed = 3
[limits]
time = "5m"
on_limit = { reward = 0.5 }
[tools.a]
call = "m:a"
retry = { on = ["E"] }
inject = { row = "row" }
tests = [{ args = { q = 1 }, expect = { contains = "x" } }]
[tools.a.parameters]
type = "object"
properties = { q = { type = "integer" } }
[tools.b]
call = "./b.py:b"
[graders.g]
kind = "math"
extract = { regex = "(x)", group = 1 }
tests = [{ output = "x", expect = { min = 0.5 } }]
[graders.r]
kind = "rubric"
criteria = [{ id = "a", text = "t", type = "likert", levels = 3 }]
[graders.p]
kind = "trajectory"
expect = [{ tool = "a" }]
[graders.j]
kind = "json_schema"
schema = { type = "object" }
[reward]
weights = { g = 1.0 }
measured = ["p"]
gates = [{ grader = "g", below = 0.5 }]
range = [0, 1]
[dataset]
rows = "1"
columns = { a = "b" }
[eval]
budget = { time = "1h" }
gates = [{ metric = "reward", min = 0.5 }]
[matrix]
axes = { "limits.turns" = [1, 2] }
[profiles.ci]
"eval.attempts" = 1
[profiles.ci.limits]
turns = 3
"""
)

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3) | st.just(10**30),
    st.floats(),
    st.sampled_from(
        ["", "a", "tool:", "resource:", "x:y", "{{", "(", "90s", "row.", "\0", "é\n", "a.b:c", "../x.py:f"]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.integers() | st.just({}), max_size=2),
    st.dictionaries(
        st.sampled_from(["a", "file", "env", "kind", "", "a.b", "type", "$ref"]), st.integers() | st.just("x")
    ),
)


def _paths(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _paths(value, (*path, key))


PATHS = list(_paths(SOUND))


def _change(tree, path, value):
    """Put `value` at `path`, or take out what is there for None; nothing where an earlier change left no such path."""
    node = tree
    for key in path[:-1]:
        node = _child(node, key)
    if _child(node, path[-1]) is None:
        return
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value


def _child(node, key):
    if isinstance(node, dict):
        return node.get(key)
    return node[key] if isinstance(node, list) and isinstance(key, int) and key < len(node) else None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PATHS), JUNK), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(["1", "x", "[]", "{}", '""', "{ a = 1 }"])), max_size=2),
    st.sampled_from([None, "ci", "zz"]),
)
def test_any_change_of_a_sound_file(changes, sets, profile):
    tree = deepcopy(SOUND)
    for path, value in changes:
        _change(tree, path, deepcopy(value))
    overrides = [Override.from_set(f"{'.'.join(map(str, path))}={text}") for path, text in sets]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workflow.toml"
        file.write_text(tomli_w.dumps(tree), "utf-8")
        loaded = inspect_file(file, overrides=overrides, profile=profile, environ={})
        check(loaded)
    for finding in loaded.report:
        assert finding.place is not None, finding
        assert finding.message
    if loaded.config is not None and not loaded.report.errors:
        assert all(len(digest(part)) == 16 for part in facts(loaded.config).values())
    for path in PATHS[::7]:
        explain(loaded, ".".join(map(str, path)))


def test_the_unchanged_file_is_sound():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workflow.toml"
        file.write_text(tomli_w.dumps({**SOUND, "model": {**SOUND["model"], "provider": "scripted"}}), "utf-8")
        loaded = inspect_file(file, environ={})
        check(loaded)
    assert list(loaded.report) == []
