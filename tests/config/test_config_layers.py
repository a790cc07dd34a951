# ruff: noqa: E501 - each expected finding is one line
"""Layers: precedence, places, history, extends, profiles, overrides and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.config.layers import Origins, Setting, Words, leaves, parse_value, put, split_key
from runner.config.load import inspect_file, load
from runner.config.matrix import cells
from runner.diag.diagnostic import ConfigError, Source

CHAIN = {
    "base.toml": '[sampling]\ntemperature = 0.1\ntop_p = 0.5\nmax_tokens = 1\n[tools.a]\ncall = "m:a"\ntimeout = "1s"\n',
    "more/team.toml": 'extends = ["../base.toml"]\n[sampling]\ntop_p = 0.6\n[tools.b]\ncall = "./b.py:b"\n',
}


def test_precedence_and_history(inspect):
    loaded = inspect(
        'extends = ["more/team.toml"]\n[sampling]\nmax_tokens = 2\n[limits]\ntime = "1m"\n'
        '[profiles.ci]\n"sampling.max_tokens" = 3\n[profiles.ci.limits]\nturns = 4\n',
        sets=["sampling.max_tokens=5"],
        profile="ci",
        environ={"OSMOSIS_RUN__SAMPLING__MAX_TOKENS": "4", "OSMOSIS_RUN_OTHER": "x"},
        files=CHAIN,
    )
    assert list(loaded.report) == []
    config = loaded.config
    assert (config.sampling.temperature, config.sampling.top_p, config.sampling.max_tokens) == (0.1, 0.6, 5)
    assert config.limits.turns == 4
    history = [(value, layer) for value, _, layer in loaded.origins.history(("sampling", "max_tokens"))]
    assert [value for value, _ in history] == [1, 2, 3, "4", 5] or [value for value, _ in history] == [1, 2, 3, 4, 5]
    assert [layer.split("/")[-1] for _, layer in history] == [
        "base.toml",
        "workflow.toml",
        "profile ci",
        "environment",
        "command line",
    ]
    places = [str(place).split("/")[-1] for _, place, _ in loaded.origins.history(("sampling", "max_tokens"))]
    assert places == [
        "base.toml:4:14",
        "workflow.toml:3:14",
        "workflow.toml:7:25",
        "environment: OSMOSIS_RUN__SAMPLING__MAX_TOKENS=4",
        "command line: --set sampling.max_tokens=5",
    ]


def test_references_resolve_against_the_file_that_said_them(inspect, tmp_path):
    loaded = inspect(
        'extends = ["more/team.toml"]\n[workflow]\nsystem = { file = "prompt.md" }\n[dataset]\npath = "d.jsonl"\n'
        '[graders.g]\nkind = "exact"\n',
        files={**CHAIN, "prompt.md": "Hello {{ row.x }}", "d.jsonl": "{}\n"},
    )
    assert list(loaded.report) == []
    config = loaded.config
    assert config.tools["b"].call.file == tmp_path / "more" / "b.py"
    assert config.tools["b"].call.folder == tmp_path / "more"
    assert config.tools["a"].call.file is None
    assert config.workflow.system.text == "Hello {{ row.x }}"
    assert config.workflow.system.file.path == tmp_path / "prompt.md"
    assert config.dataset.path.path == tmp_path / "d.jsonl"
    assert config.eval.output.path == tmp_path / "runs"
    assert config.folder == tmp_path
    assert config.name == tmp_path.name
    assert "output" not in config.eval.model_fields_set


def test_errors_in_an_extended_file_point_into_it(inspect, findings):
    loaded = inspect('extends = ["base.toml"]\n', files={"base.toml": "\n[limits]\ntime = 5\nturn = 3\n"})
    assert [line.split(" ")[0] for line in findings(loaded)] == ["base.toml:3:8", "base.toml:4:1"]


def test_arrays_are_replaced_whole_and_choices_are_not_mixed(inspect):
    base = '[sampling]\nstop = ["a", "b"]\n[graders.g]\nkind = "exact"\nextract = { regex = "x", take = "first" }\n'
    loaded = inspect(
        'extends = ["base.toml"]\n[sampling]\nstop = ["c"]\n[graders.g]\nextract = { boxed = true }\n',
        files={"base.toml": base},
    )
    assert list(loaded.report) == []
    assert loaded.config.sampling.stop == ("c",)
    extract = loaded.config.graders["g"].extract
    assert (extract.boxed, extract.regex, extract.take) == (True, None, "last")


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        (
            'extends = ["nope.toml"]',
            {},
            ["1:12 extends-missing: `DIR/nope.toml`, which `DIR/workflow.toml` extends, is not there"],
        ),
        (
            'extends = ["bse.toml"]',
            {"base.toml": ""},
            [
                "1:12 extends-missing: `DIR/bse.toml`, which `DIR/workflow.toml` extends, is not there | did you mean `base.toml`?"
            ],
        ),
        ('extends = ["workflow.toml"]', {}, ["1:12 extends-cycle: `DIR/workflow.toml` extends itself"]),
        (
            'extends = ["a.toml"]',
            {"a.toml": 'extends = ["b.toml"]', "b.toml": 'extends = ["a.toml"]'},
            ["b.toml:1:12 extends-cycle: `DIR/b.toml` extends itself"],
        ),
    ],
)
def test_extends_findings(text, files, expected, inspect, findings, tmp_path):
    loaded = inspect(text, files=files)
    assert [line.replace(str(tmp_path), "DIR") for line in findings(loaded)] == expected
    assert loaded.config is None


def test_a_diamond_is_no_cycle(inspect):
    files = {"a.toml": 'extends = ["c.toml"]', "b.toml": 'extends = ["c.toml"]', "c.toml": "[limits]\nturns = 9\n"}
    loaded = inspect('extends = ["a.toml", "b.toml"]', files=files)
    assert list(loaded.report) == []
    assert loaded.config.limits.turns == 9


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            "sampling.temprature=1",
            [
                "command line: --set sampling.temprature=1 unknown-key: `[sampling]` has no key `temprature` | did you mean `temperature`?"
            ],
        ),
        (
            "sampling.temperature=20",
            [
                "command line: --set sampling.temperature=20 out-of-range: `sampling.temperature` must be at most 2, found 20 | at most 2"
            ],
        ),
        (
            "sampling.temperature",
            [
                "command line: --set sampling.temperature bad-override: `sampling.temperature` is given no value | write `KEY=VALUE`"
            ],
        ),
        (
            "sampling..x=1",
            [
                "command line: --set sampling..x=1 bad-override: this is no key | keys are dotted: `sampling.temperature`"
            ],
        ),
        (
            'workflow.user="x',
            [
                'command line: --set workflow.user="x bad-override: the value of `workflow.user` is no TOML'
                " | a bracket or a quote is not closed"
            ],
        ),
        (
            "eval.gates.0=1",
            [
                "command line: --set eval.gates.0=1 bad-override: `eval.gates` is an array, and arrays are replaced whole"
                " | set the whole array: `eval.gates = […]`"
            ],
        ),
    ],
)
def test_override_findings(word, expected, inspect, findings):
    text = '[graders.g]\nkind = "exact"\n[eval]\ngates = [{ metric = "reward", min = 0.1 }]\n'
    assert findings(inspect(text, sets=[word])) == expected


def test_overrides_set_what_they_say(inspect):
    loaded = inspect(
        '[tools."a-b"]\ncall = "m:f"\n',
        sets=[
            'tools."a-b".timeout=5s',
            "workflow.name=bare word",
            "model.id=openai/x",
            'sampling.stop=["a", "b"]',
            "graders.g.kind=exact",
            "graders.g.ignore_case=true",
            "workflow.description==",
        ],
    )
    assert list(loaded.report) == []
    config = loaded.config
    assert config.tools["a-b"].timeout == 5.0
    assert (config.workflow.name, config.model.id, config.workflow.description) == ("bare word", "openai/x", "=")
    assert config.sampling.stop == ("a", "b")
    assert config.graders["g"].ignore_case is True


def test_an_override_with_a_table_is_merged_like_one(inspect):
    loaded = inspect("[limits]\nturns = 3\n", sets=["limits={ tool_calls = 4 }", "limits.time=1m"])
    limits = loaded.config.limits
    assert (limits.turns, limits.tool_calls, limits.time) == (3, 4, 60.0)
    assert str(loaded.origins.value_place(("limits", "tool_calls"))) == "command line: --set limits={ tool_calls = 4 }"


def test_environment_matches_names_whatever_their_case(inspect):
    loaded = inspect(
        '[tools.SearchAll]\ncall = "m:f"\n',
        environ={"OSMOSIS_RUN__TOOLS__SEARCHALL__MAX_OUTPUT": "7", "OSMOSIS_RUN__EVAL__ATTEMPTS": "3"},
    )
    assert loaded.config.tools["SearchAll"].max_output == 7
    assert loaded.config.eval.attempts == 3


def test_a_secret_in_the_environment_is_not_shown(inspect, findings):
    loaded = inspect('[model]\nid = "openai/x"\n', environ={"OSMOSIS_RUN__MODEL__API_KEY": "sk-1"})
    (line,) = findings(loaded)
    assert "secret-in-file" in line
    assert "sk-1" not in line


def test_unknown_profile(inspect, findings):
    loaded = inspect("[profiles.fast]\n'eval.attempts' = 1\n", profile="fats")
    assert findings(loaded) == [
        "command line: --profile fats unknown-profile: no profile is called `fats` | did you mean `fast`?"
    ]


def test_a_profile_in_force_is_told_once_where_it_stands(inspect, findings):
    text = '[profiles.ci]\n"sampling.top_p" = 3\n"eval.attempt" = 1\n'
    expected = [
        "2:20 out-of-range: `sampling.top_p` must be at most 1, found 3 | at most 1",
        "3:1 unknown-key: `[eval]` has no key `attempt` | did you mean `attempts`?",
    ]
    assert findings(inspect(text, profile="ci")) == expected
    assert findings(inspect(text)) == expected


def test_matrix_cells_are_stable_and_placed(inspect, tmp_path):
    text = '[matrix]\naxes = { "sampling.temperature" = [0.0, 0.7], "limits.turns" = [1, 2] }\n'
    loaded = inspect(text)
    names = [cell.name for cell in cells(loaded.tree)]
    assert names == [
        "sampling.temperature=0.0,limits.turns=1",
        "sampling.temperature=0.0,limits.turns=2",
        "sampling.temperature=0.7,limits.turns=1",
        "sampling.temperature=0.7,limits.turns=2",
    ]
    inside = inspect_file(tmp_path / "workflow.toml", cell=cells(loaded.tree)[3], environ={})
    assert inside.config.sampling.temperature == 0.7
    assert inside.config.limits.turns == 2
    place = inside.origins.value_place(("sampling", "temperature"))
    assert (place.line, place.column) == (2, 41)
    assert cells({}) == []


def test_load_raises_with_every_finding(tmp_path):
    file = tmp_path / "workflow.toml"
    file.write_text('[limits]\nturns = 0\ntime = 1\n[graders.g]\nkind = "exact"\n[reward]\nweights = { h = 1 }\n')
    with pytest.raises(ConfigError) as caught:
        load(file, environ={})
    assert caught.value.report.errors == 3


def test_load_of_a_small_file(tmp_path):
    file = tmp_path / "workflow.toml"
    file.write_text('[model]\nid = "openai/gpt-5-mini"\n[graders.answer]\nkind = "exact"\n')
    config = load(file, environ={})
    assert config.agent == "chat"
    assert config.model.effective_provider == "openai"
    assert config.origins.key_place(("graders", "answer")).line == 3
    assert config.file == file


@pytest.mark.parametrize(
    ("write", "word"),
    [
        (lambda path: None, "not-found"),
        (lambda path: path.mkdir(), "not-"),
        (lambda path: path.write_bytes(b"\0\1"), "bad-encoding"),
        (lambda path: path.write_text("x ="), "syntax"),
    ],
)
def test_a_file_that_cannot_be_read(write, word, tmp_path):
    path = tmp_path / "w.toml"
    write(path)
    loaded = inspect_file(path, environ={})
    assert loaded.config is None
    assert [one.code.startswith(word) for one in loaded.report] == [True]


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a.b", ("a", "b")),
        ('a."b.c".d', ("a", "b.c", "d")),
        ("a-b", ("a-b",)),
        ("", None),
        ("a b", None),
        ("a = 1\nb", None),
        ("a=1", None),
    ],
)
def test_split_key(key, path):
    assert split_key(key) == path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0.5", 0.5),
        ("true", True),
        ('"x"', "x"),
        ("x", "x"),
        ("", ""),
        ("[1, 2]", [1, 2]),
        ("{a = 1}", {"a": 1}),
        ("90s", "90s"),
        ("1\nb = 2", "1\nb = 2"),
    ],
)
def test_parse_value(text, value):
    assert parse_value(text) == value


_NAMES = st.sampled_from(["a", "b", "c"])
_TREES = st.recursive(
    st.integers(0, 9) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
).map(lambda tree: tree if isinstance(tree, dict) else {"a": tree})


def _merge(under, over):
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


@settings(max_examples=80, deadline=None)
@given(st.lists(_TREES, min_size=1, max_size=4))
def test_merging_is_deep_and_every_leaf_knows_its_layer(trees):
    tree, origins, expected = {}, Origins(Path()), {}
    words = Words(Source("command line", "x", "command line"), "x", "x")
    for index, layer in enumerate(trees):
        expected = _merge(expected, layer)
        for path, value in leaves(layer):
            put(tree, origins, path, Setting(value, str(index), Path(), words, path))
    assert tree == expected
    for path, value in leaves(tree):
        if value != {}:
            found = origins.setting(path)
            assert found is not None
            assert found[0] == path
            assert found[1].value == value
