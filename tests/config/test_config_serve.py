"""`[serve]`: its keys, its checks, and what reaches it from the environment and from `.env`."""

from __future__ import annotations

import tomllib

import pytest
from hypercorn.config import Config as HypercornConfig
from hypothesis import given
from hypothesis import strategies as st

from runner.config import hypercorn
from runner.config.check import check
from runner.config.checks.serve import is_loopback
from runner.config.digest import facts
from runner.config.document import describe
from runner.config.dotenv import read_dotenv
from runner.config.explain import explain
from runner.config.first_generation import all_settings
from runner.config.hypercorn import hypercorn_settings
from runner.config.load import load
from runner.config.pages import SERVE
from runner.diag.diagnostic import ConfigError, Report

REFERENCE = """
[serve]
host           = "127.0.0.1"
port           = 9000
max_concurrent = 256
max_queue      = 4096                   # then 429 with Retry-After
api_key        = { env = "ROLLOUT_API_KEY" }
dialect        = "auto"                 # auto | agent-loop | multi-sample | single-sample
drain          = "30s"
record_ttl     = "1h"
allow_callbacks = ["http://*", "https://*"]
state          = "state/rollouts.db"    # accepted rollouts and undelivered callbacks survive a restart
"""


def any_name(name: str) -> bool:
    return True


KEY = {"ROLLOUT_API_KEY": "k"}
MODEL = '[model]\nid = "openai/x"\napi_key = { env = "MODEL_KEY" }\n'


def test_the_reference_block_is_sound_and_says_the_defaults(inspect, findings, tmp_path):
    loaded = inspect(REFERENCE, environ=KEY)
    assert findings(loaded) == []
    serve = loaded.config.serve
    assert (serve.drain, serve.record_ttl, serve.max_body, serve.max_metadata) == (30.0, 3600.0, 64 * 2**20, 2**20)
    assert (serve.api_key.env, serve.state.path) == ("ROLLOUT_API_KEY", tmp_path / "state" / "rollouts.db")
    bare = inspect("").config.serve
    differ = [name for name in type(serve).model_fields if getattr(serve, name) != getattr(bare, name)]
    assert differ == ["api_key"]


def test_the_example_of_the_docs_has_every_key_and_is_sound(inspect, findings):
    assert findings(inspect(SERVE, environ=KEY)) == []
    tree = tomllib.loads(SERVE)
    for entry in describe():
        if entry.key.startswith("serve."):
            node = tree
            for part in entry.key.split("."):
                assert part in node, entry.key
                node = node[part]


def test_every_key_is_operational(inspect):
    assert {entry.affects for entry in describe() if entry.key.startswith("serve")} == {"operation"}
    plain, served = facts(inspect("").config), facts(inspect(SERVE).config)
    assert (plain["result"], plain["grade"]) == (served["result"], served["grade"])
    assert plain["operation"] != served["operation"]


# Every variable of the first generation with a value, and what the keys it sets come to.
VARIABLES = {
    "OSMOSIS_ROLLOUT_CLIENT_TIMEOUT_SECONDS": ("120", ['"2m"']),
    "OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES": ("3", ["4"]),
    "OSMOSIS_ROLLOUT_CLIENT_COMPLETE_ROLLOUT_RETRIES": ("0", ["1"]),
    "OSMOSIS_ROLLOUT_CLIENT_RETRY_BASE_DELAY": ("0.25", ['"250ms"', '"250ms"']),
    "OSMOSIS_ROLLOUT_CLIENT_RETRY_MAX_DELAY": ("20.0", ['"20s"', '"20s"']),
    "OSMOSIS_ROLLOUT_CLIENT_MAX_CONNECTIONS": ("100", ["100"]),
    "OSMOSIS_ROLLOUT_CLIENT_MAX_KEEPALIVE_CONNECTIONS": ("20", ["20"]),
    "OSMOSIS_ROLLOUT_SERVER_MAX_CONCURRENT_ROLLOUTS": ("10000", ["10000"]),
    "OSMOSIS_ROLLOUT_SERVER_RECORD_TTL_SECONDS": ("86400", ['"24h"']),
    "OSMOSIS_ROLLOUT_SERVER_CLEANUP_INTERVAL_SECONDS": ("10.125", ['"10.125s"']),
    "OSMOSIS_ROLLOUT_SERVER_REQUEST_TIMEOUT_SECONDS": ("600", ['"10m"']),
    "OSMOSIS_ROLLOUT_MAX_METADATA_SIZE_BYTES": ("1048577", ['"1048577B"']),
    "OSMOSIS_ROLLOUT_LOG_LEVEL": ("WARNING", ['"warning"']),
    "OSMOSIS_ROLLOUT_LOG_FORMAT": ("json", ['"json"']),
    "OSMOSIS_ROLLOUT_LOG_INCLUDE_TIMESTAMP": ("False", ["false"]),
    "OSMOSIS_ROLLOUT_LOG_INCLUDE_CALLER": ("1", ["true"]),
    "OSMOSIS_ROLLOUT_TRACE_ENABLED": ("yes", ["true"]),
    "OSMOSIS_ROLLOUT_TRACE_SERVICE_NAME": ("my trainer", ['"my trainer"']),
    "OSMOSIS_ROLLOUT_TRACE_EXPORTER": ("Zipkin", ['"zipkin"']),
    "OSMOSIS_ROLLOUT_TRACE_ENDPOINT": ("http://z:9411/spans", ['"http://z:9411/spans"']),
    "OSMOSIS_ROLLOUT_TRACE_SAMPLE_RATE": (".5", ["0.5"]),
    "OSMOSIS_ROLLOUT_TRACE_PROPAGATORS": ('["b3", "baggage"]', ['["b3", "baggage"]']),
    "OSMOSIS_ROLLOUT_METRICS_ENABLED": ("off", ["false"]),
    "OSMOSIS_ROLLOUT_METRICS_PREFIX": ("mine", ['"mine"']),
    "OSMOSIS_ROLLOUT_METRICS_INCLUDE_DEFAULT_LABELS": ("0", ["false"]),
    "OSMOSIS_ROLLOUT_METRICS_EXPOSE_ENDPOINT": ("no", ["false"]),
    "_OSMOSIS_ROLLOUT_PORT": ("8000", ["8000"]),
    "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT": ("/data/out", ['"/data/out"']),
}


@pytest.mark.parametrize("name", sorted(all_settings()))
def test_each_variable_sets_its_keys_and_explain_says_so(name, inspect, findings):
    value, expected = VARIABLES[name]
    loaded = inspect("", environ={name: value})
    assert findings(loaded) == []
    found = [explain(loaded, f"serve.{key}") for key in all_settings()[name].keys]
    assert [one.value for one in found] == expected
    assert {one.origin for one in found} == {f"environment: {name}={value}"}
    plain = facts(inspect("").config)
    assert {part: facts(loaded.config)[part] == plain[part] for part in ("result", "grade")} == {
        "result": True,
        "grade": True,
    }


def test_precedence_from_the_file_to_set(inspect):
    name = "OSMOSIS_ROLLOUT_SERVER_MAX_CONCURRENT_ROLLOUTS"
    text = '[serve]\nmax_concurrent = 1\n[profiles.p]\n"serve.max_concurrent" = 2\n'
    loaded = inspect(
        text,
        profile="p",
        files={".env": f"{name}=3\n"},
        environ={name.lower(): "4", "OSMOSIS_RUN__SERVE__MAX_CONCURRENT": "6"},
        sets=["serve.max_concurrent=7"],
    )
    found = explain(loaded, "serve.max_concurrent")
    said = [f"{one.value} {str(one.place).rpartition('/')[2]}" for one in found.layers]
    assert said == [
        "256 None",
        "1 workflow.toml:2:18",
        "2 workflow.toml:4:26",
        f"3 .env:1:{len(name) + 2}",
        f"4 environment: {name.lower()}=4",
        "6 environment: OSMOSIS_RUN__SERVE__MAX_CONCURRENT=6",
        "7 command line: --set serve.max_concurrent=7",
    ]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("OSMOSIS_ROLLOUT_CLIENT_TIMEOUT_SECONDS", ["0", "0.99", "3601", "-5", "inf", "1e2", "5m", "1_0"]),
        ("OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES", ["-1", "11", "1.5", "²", "9" * 5000]),
        ("OSMOSIS_ROLLOUT_SERVER_MAX_CONCURRENT_ROLLOUTS", ["0", "10001"]),
        ("OSMOSIS_ROLLOUT_MAX_METADATA_SIZE_BYTES", ["1023", "104857601", "1KiB"]),
        ("OSMOSIS_ROLLOUT_TRACE_SAMPLE_RATE", ["1.01", "-0.1", "nan"]),
        ("_OSMOSIS_ROLLOUT_PORT", ["65536", "-1"]),
    ],
)
def test_out_of_range_is_an_error_that_names_the_variable(name, values, inspect):
    for value in values:
        [finding] = inspect("", environ={name: value}).report
        assert (finding.code, finding.severity) == ("bad-variable", "error")
        assert name in finding.message


def test_an_empty_variable_sets_nothing_and_others_are_left_alone(inspect, findings):
    others = {"OSMOSIS_ROLLOUT_ID": "r", "OSMOSIS_API_KEY": "k", "_OSMOSIS_ROLLOUT_INSTANCE_ID": "i"}
    loaded = inspect("", environ={"OSMOSIS_ROLLOUT_TRACE_ENDPOINT": " ", **others})
    assert (findings(loaded), loaded.config.serve.trace.endpoint) == ([], None)


def test_of_dotenv_only_the_settings_are_read(inspect, findings, tmp_path):
    """No key, no secret, no `OSMOSIS_RUN__` and nothing for user code comes out of it."""
    dotenv = (
        "MODEL_KEY=sk-1\n_OSMOSIS_ROLLOUT_ARTIFACT_ROOT=out # here\nROLLOUT_API_KEY=k\nOSMOSIS_RUN__EVAL__ATTEMPTS=4\n"
    )
    loaded = inspect(MODEL + '[serve]\napi_key = { env = "ROLLOUT_API_KEY" }\n', files={".env": dotenv})
    assert [(one.code, one.severity) for one in loaded.report] == [
        ("secret-missing", "error"),
        ("secret-missing", "warning"),
    ]
    assert loaded.config.serve.archive.path == tmp_path / "out"
    assert loaded.config.eval.attempts == 1
    assert set(loaded.config.dotenv) == {"_OSMOSIS_ROLLOUT_ARTIFACT_ROOT"}
    check(loaded, serving=True)
    assert [one.severity for one in loaded.report if "ROLLOUT_API_KEY" in one.message] == ["warning", "error"]


def test_a_broken_line_is_an_error_only_where_it_may_cost_a_setting(inspect, findings):
    for text, severity in [
        ("TOKEN\n", "warning"),
        ("export OSMOSIS_ROLLOUT_LOG_LEVEL info\n", "error"),
        ("A='x\nOSMOSIS_ROLLOUT_LOG_LEVEL=info\n", "error"),
        ("A='x\nB=1\n", "warning"),
        ("OSMOSIS_ROLLOUT_TRACE_ENDPOINT=http://${NOWHERE}:4317\n", "error"),
    ]:
        assert [(one.code, one.severity) for one in inspect("", files={".env": text}).report] == [
            ("dotenv-syntax", severity)
        ]
    assert findings(inspect("", files={".env": "URL=http://${NOWHERE}\n"})) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\n\n # c\nB = 2 # c\nexport C=3#4\r\nD=\nE=#\n", {"A": "1", "B": "2", "C": "3#4", "D": "", "E": ""}),
        ('A=\'x\\n ${B} #\'\nB="x\\n\\t\\"\\$\\\\"', {"A": "x\\n ${B} #", "B": 'x\n\t"$\\'}),
        ('KEY="-----BEGIN\r\nabc\r\n-----END" # pem\nB=1', {"KEY": "-----BEGIN\nabc\n-----END", "B": "1"}),
        ("A=1\nB=${A}${H}${X:-d e}\nC=$A\nA.b-c=2", {"A": "1", "B": "1homed e", "C": "$A", "A.b-c": "2"}),
        ("\ufeffA=1", {"A": "1"}),
        ("A=1\nA=2", {"A": "2"}),
    ],
)
def test_dotenv_values(text, expected, tmp_path):
    file, report = tmp_path / ".env", Report()
    file.write_bytes(text.encode())
    assert {one.name: one.value for one in read_dotenv(file, ".env", report, {"H": "home"}, any_name)} == expected
    assert len(report) == 0


def test_a_folder_called_dotenv_is_somebody_elses(inspect, findings):
    assert findings(inspect("", files={".env/bin/activate": ""})) == []


def test_a_dotenv_that_is_no_text(inspect, tmp_path):
    for raw in (b"A=\xff\n", b"A=1\0", "A=1".encode("utf-16")):
        (tmp_path / ".env").write_bytes(raw)
        assert [(one.code, one.severity) for one in inspect("").report] == [("bad-encoding", "warning")]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_dotenv_never_raises_and_never_shows_a_value(tmp_path_factory, text):
    file, report = tmp_path_factory.mktemp("env") / ".env", Report()
    file.write_bytes(text.encode())
    for entry in read_dotenv(file, ".env", report, {}, any_name):
        place = entry.spot.key
        assert place.source.text[place.start : place.end] == entry.name
    for finding in report:
        assert finding.place is not None
        line = finding.place.source.line_text(finding.place.line)
        shown = line.partition("=")[2] if "=" in line else line
        assert not set(shown) - set("…\"'") or finding.message.startswith("the variable"), shown


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0'\r")))
def test_single_quotes_keep_a_value_as_it_is(tmp_path_factory, value):
    file, report = tmp_path_factory.mktemp("env") / ".env", Report()
    file.write_bytes(f"A='{value}'\nB=1\n".encode())
    assert [one.value for one in read_dotenv(file, ".env", report, {}, any_name)] == [value, "1"]


def test_serving_needs_its_own_key_and_not_the_policys(inspect, tmp_path):
    text = MODEL + '[serve]\nhost = "0.0.0.0"\napi_key = { env = "ROLLOUT_API_KEY" }\n'
    told = {}
    for serving in (False, True):
        loaded = inspect(text, checks=False)
        check(loaded, serving=serving)
        told[serving] = [(one.severity, one.message.split("`")[1]) for one in loaded.report]
    assert told[False] == [("error", "MODEL_KEY"), ("warning", "ROLLOUT_API_KEY")]
    assert told[True] == [("error", "ROLLOUT_API_KEY")]
    assert load(tmp_path / "workflow.toml", environ=KEY, serving=True).serve.api_key.env in KEY
    with pytest.raises(ConfigError):
        load(tmp_path / "workflow.toml", environ={"ROLLOUT_API_KEY": "", "MODEL_KEY": "k"}, serving=True)


def test_certificates_are_looked_for_when_serving(inspect, findings, tmp_path):
    text = '[serve.hypercorn]\ncertfile = "tls/cert.pem"\nkeyfile = "tls/key.pem"\n'
    loaded = inspect(text, files={"tls/cert.pem": ""})
    assert findings(loaded) == []
    check(loaded, serving=True)
    assert findings(loaded) == ["3:11 not-found: there is no file `tls/key.pem` | relative to the file that says so"]


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.nip.io", False),
        ("::ffff:10.0.0.1", False),
    ],
)
def test_loopback(host, local, inspect):
    assert is_loopback(host) is local
    codes = [one.code for one in inspect(f'[serve]\nhost = "{host}"\n').report]
    assert codes == ([] if local else ["open-server"])
    for more in ("allow_anonymous = true", 'api_key = { env = "ROLLOUT_API_KEY" }'):
        assert len(inspect(f'[serve]\nhost = "{host}"\n{more}\n', environ=KEY).report) == 0


@pytest.mark.parametrize(
    ("pattern", "fine"),
    [
        ("*://*", True),
        ("http*://10.0.0.*:*/v1/*", True),
        ("https://[2001:db8::1]:8443/*", True),
        ("https://trainer.example", True),
        ("*", False),
        ("ws://*", False),
        ("https://", False),
        ("https://user@host/*", False),
        ("https://[2001:db8::zz]/*", False),
        ("https:/trainer.example/*", False),
    ],
)
def test_patterns_of_callbacks(pattern, fine, inspect):
    report = inspect(f'[serve]\nallow_callbacks = ["{pattern}"]\n').report
    assert [one.code for one in report] == ([] if fine else ["bad-value"])


def test_no_pattern_at_all_is_refused(inspect):
    assert [one.code for one in inspect("[serve]\nallow_callbacks = []\n").report] == ["out-of-range"]


def test_the_lists_of_hypercorns_settings_are_its_own():
    names = {name for name in (*vars(HypercornConfig), *HypercornConfig.__annotations__) if not name.startswith("_")}
    settable = set()
    for name in names:
        kind = vars(HypercornConfig).get(name)
        is_property = isinstance(kind, property)
        if (is_property and kind.fset is not None) or not (
            is_property or (callable(kind) and not isinstance(kind, type)) or isinstance(kind, classmethod)
        ):
            settable.add(name)
    assert settable == {*hypercorn.SETTINGS, *hypercorn.OURS}
    assert not set(hypercorn.SETTINGS) & set(hypercorn.OURS)


def test_hypercorn_settings_reach_hypercorn(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "tls.toml").write_text('[serve.hypercorn]\ncertfile = "c.pem"\nkeyfile = "k.pem"\n', "utf-8")
    (tmp_path / "workflow.toml").write_text(
        'extends = ["part/tls.toml"]\n[serve.hypercorn]\nbacklog = 7\nverify_mode = "CERT_REQUIRED"\naccesslog = "-"\n'
        'keyfile_password = { env = "PW" }\nalpn_protocols = ["h2"]\nkeep_alive_timeout = 2.5\n',
        "utf-8",
    )
    config = load(tmp_path / "workflow.toml", environ={})
    settings = hypercorn_settings(config, {"PW": "secret"})
    assert settings == {
        "certfile": str(tmp_path / "part" / "c.pem"),
        "keyfile": str(tmp_path / "part" / "k.pem"),
        "backlog": 7,
        "verify_mode": 2,
        "accesslog": "-",
        "keyfile_password": "secret",
        "alpn_protocols": ["h2"],
        "keep_alive_timeout": 2.5,
    }
    assert HypercornConfig.from_mapping(settings).backlog == 7


def test_explain_knows_tables_and_keys(inspect):
    loaded = inspect(SERVE, environ=KEY)
    assert "serve.chat.retries" in explain(loaded, "serve.chat").keys
    assert explain(loaded, "serve.max_body").type == "size"
    assert explain(loaded, "serve.max_body").default == '"64MiB"'
    assert explain(loaded, "serve.api_key.env").value == '"ROLLOUT_API_KEY"'
    assert explain(loaded, "serve.hypercorn.backlog").value == "1024"
    assert explain(loaded, "serve.chat.stream").type == '"auto", true or false'
    assert explain(loaded, "serve.max_concurent").near == ("serve.max_concurrent",)


def test_one_layer_replaces_the_key_of_another_whole(inspect):
    loaded = inspect('[serve]\napi_key = { env = "A" }\n', sets=['serve.api_key={env="B"}'], environ={"B": "k"})
    assert (loaded.report.errors, loaded.config.serve.api_key.env) == (0, "B")
