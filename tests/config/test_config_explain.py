"""`explain`: value, origin, what it overrode, what the format says."""

from __future__ import annotations

from runner.config.explain import explain

FILE = """extends = ["base.toml"]
[model]
id = "openai/x"
concurrency = 16
api_key = { env = "K" }
[tools.search]
call = "m:s"
timeout = "10s"
[graders.g]
kind = "exact"
extract = { boxed = true }
[profiles.ci]
"eval.attempts" = 4
"""
BASE = {"base.toml": "[limits]\nturns = 3\n[eval]\nattempts = 2\n"}


def test_a_key_with_its_whole_history(inspect, tmp_path):
    loaded = inspect(FILE, files=BASE, profile="ci", sets=["eval.attempts=8"])
    found = explain(loaded, "eval.attempts")
    assert (found.known, found.value, found.affects, found.type, found.default) == (
        True,
        "8",
        "operation",
        "whole number",
        "1",
    )
    assert found.doc.startswith("Rollouts of each row.")
    assert found.origin == "command line: --set eval.attempts=8"
    said = [(one.value, one.layer.split("/")[-1], str(one.place).split("/")[-1]) for one in found.overrode]
    assert said == [
        ("4", "profile ci", "workflow.toml:13:19"),
        ("2", "base.toml", "base.toml:4:12"),
        ("1", "default", "None"),
    ]


def test_defaults_and_keyed_tables(inspect):
    loaded = inspect(FILE, files=BASE)
    assert explain(loaded, "limits.time").origin == "default"
    assert explain(loaded, "limits.time").value == '"5m"'
    assert explain(loaded, "tools.search.timeout").value == '"10s"'
    assert explain(loaded, "tools.search.max_output").value == "16000"
    assert explain(loaded, "model.concurrency").value == "16"
    assert explain(loaded, "graders.g.extract.boxed").value == "true"
    assert explain(loaded, "graders.g.expect").value == '"{{ label }}"'
    assert explain(loaded, "graders.g.expect").affects == "grade"
    assert explain(loaded, "workflow.label").affects == "grade"
    assert explain(loaded, "sampling.temperature").value == ""


def test_tables_list_their_keys(inspect):
    loaded = inspect(FILE, files=BASE)
    assert "sampling.top_p" in explain(loaded, "sampling").keys
    assert explain(loaded, "tools").keys == ("tools.search",)
    assert "workflow" in explain(loaded, "").keys
    assert "graders.g.ignore_case" in explain(loaded, "graders.g").keys
    assert "graders.g.tolerance" not in explain(loaded, "graders.g").keys


def test_unknown_keys_have_near_names(inspect):
    loaded = inspect(FILE, files=BASE)
    for key, near in [
        ("sampling.temprature", ("sampling.temperature",)),
        ("tools.serch.timeout", ("tools.search.timeout",)),
        ("samplin.top_p", ("sampling.top_p",)),
        ("temperature", ("sampling.temperature", "roles.NAME.sampling.temperature")),
    ]:
        found = explain(loaded, key)
        assert not found.known
        assert set(near) <= set(found.near), key
    assert explain(loaded, "a b").known is False
    assert explain(loaded, "zzzz").near == ()


def test_secrets_are_not_shown(inspect):
    loaded = inspect('[model]\nid = "openai/x"\napi_key = "sk-1"\n')
    assert "sk-1" not in str(explain(loaded, "model.api_key").value)


def test_a_table_of_named_tables_has_keys_where_it_has_some_and_a_default_where_not(inspect):
    loaded = inspect(FILE, files=BASE)
    tools, servers = explain(loaded, "tools"), explain(loaded, "mcp")
    assert (tools.value, tools.origin, tools.keys) == ("", "", ("tools.search",))
    assert (servers.value, servers.origin, servers.keys) == ("{}", "default", ())
