"""validate, explain, render, schema, test and model-server, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).parents[2]
ARITHMETIC = ROOT / "configs" / "arithmetic"

TYPO = """\
[workflow]
user = "{{ row.q }}"
label = "{{ row.a }}"
[model]
provider = "scripted"
rules = [{ reply = "1" }]
[sampling]
temprature = 0.7
[graders.answer]
kind = "exact"
"""


@pytest.fixture
def typo(tmp_path: Path) -> Path:
    (tmp_path / "workflow.toml").write_text(TYPO)
    (tmp_path / "sound.toml").write_text(TYPO.replace("temprature", "temperature"))
    return tmp_path


def test_findings_are_data_on_stdout_and_the_hint_is_talk(osmosis: Run, typo: Path) -> None:
    done = osmosis("validate")
    assert done.returncode == 1
    assert done.stdout == (
        "workflow.toml:8:1 error[unknown-key] `[sampling]` has no key `temprature`\n"
        "  |\n"
        "8 | temprature = 0.7\n"
        "  | ^^^^^^^^^^ did you mean `temperature`?\n"
        "\n"
        "workflow.toml: 1 error\n"
    )
    assert done.stderr == (
        "\nhint: `osmosis-run validate --fix` can repair 1; `osmosis-run validate --explain unknown-key` says more\n"
    )


def test_fix_repairs_the_file_and_checks_it_again(osmosis: Run, typo: Path) -> None:
    done = osmosis("validate", "--fix")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "repaired workflow.toml\nworkflow.toml: ok (0 tools, 1 grader)\n"
    assert (typo / "workflow.toml").read_text() == (typo / "sound.toml").read_text()


def test_several_files_and_one_that_is_not_there(osmosis: Run, typo: Path) -> None:
    done = osmosis("validate", "sound.toml", "nothing.toml", ".", "sound.toml")
    assert done.returncode == 1
    assert done.stdout.count("error[") == 1
    assert done.stderr.count("sound.toml: ok") == 1
    assert "there is no file `nothing.toml`" in done.stderr


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_formats_for_programs(form: str, osmosis: Run, typo: Path) -> None:
    done = osmosis("validate", "--format", form)
    assert done.returncode == 1
    assert done.stderr == ""
    if form == "json":
        (line,) = done.stdout.splitlines()
        found = json.loads(line)
        assert (found["code"], found["file"], found["line"], found["column"]) == ("unknown-key", "workflow.toml", 8, 1)
        assert found["fix"]["text"] == "temperature"
    elif form == "github":
        assert done.stdout.startswith("::error file=workflow.toml,line=8,")
    else:
        (result,) = json.loads(done.stdout)["runs"][0]["results"]
        assert result["ruleId"] == "unknown-key"


def test_a_sound_file_has_empty_reports(osmosis: Run, typo: Path) -> None:
    assert osmosis("validate", "--format", "json", "sound.toml").stdout == ""
    assert json.loads(osmosis("validate", "--format", "sarif", "sound.toml").stdout)["runs"][0]["results"] == []


def test_no_import_runs_no_code_of_the_file(osmosis: Run, typo: Path) -> None:
    text = TYPO.replace("temprature", "temperature") + '[tools.boom]\ncall = "./boom.py:boom"\n'
    (typo / "boom.toml").write_text(text)
    (typo / "boom.py").write_text("from pathlib import Path\nPath('ran').touch()\ndef boom(): 'Boom.'\n")
    assert osmosis("validate", "--no-import", "boom.toml").returncode == 0
    assert not (typo / "ran").exists()
    assert osmosis("validate", "boom.toml").returncode == 0
    assert (typo / "ran").exists()


def test_a_dotenv_file_is_not_read(osmosis: Run, typo: Path) -> None:
    sound = TYPO.replace("temprature", "temperature")
    (typo / "key.toml").write_text(sound + '[secrets]\nrequired = ["MY_VARIABLE"]\n')
    (typo / ".env").write_text("MY_VARIABLE=1\n")
    assert "MY_VARIABLE" in osmosis("validate", "key.toml").stdout
    assert osmosis("validate", "key.toml", MY_VARIABLE="1").returncode == 0


def test_explain_names_the_layer_that_is_wrong(osmosis: Run, typo: Path) -> None:
    (typo / ".env").write_text("OSMOSIS_ROLLOUT_LOG_LEVEL=chatty\n")
    done = osmosis("explain", "serve.port", "-w", "sound.toml")
    assert done.returncode == 0 and "there is 1 error in `" in done.stderr and ".env`" in done.stderr


def test_explain_says_where_a_value_came_from(osmosis: Run) -> None:
    done = osmosis("explain", "limits.turns", "-w", ARITHMETIC, "--set", "limits.turns=9", "--json")
    found = json.loads(done.stdout)
    assert (found["value"], found["origin"]) == ("9", "command line: --set limits.turns=9")
    assert [layer["value"] for layer in found["layers"]] == ["12", "6", "9"]
    text = osmosis("explain", "limits.turns", "-w", ARITHMETIC).stdout
    assert text.startswith("limits.turns = 6\n")
    assert "overrode 12 (default)" in text
    assert "limits" in osmosis("explain", "-w", ARITHMETIC).stdout


def test_render_prints_the_request_and_sends_nothing(osmosis: Run) -> None:
    words = ["-w", ARITHMETIC, "--set", "model.provider=openai", "--set", "model.base_url=http://127.0.0.1:9/v1"]
    done = osmosis("render", "--row", "5", *words, "--set", "model.rules=[]", "--json")
    body = json.loads(done.stdout)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "3.2 km" in body["messages"][1]["content"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["calculator", "convert_units"]
    assert (body["temperature"], body["max_tokens"]) == (0.7, 512)
    text = osmosis("render", "--row", "5", *words, "--set", "model.rules=[]").stdout
    assert text.startswith("POST http://127.0.0.1:9/v1/chat/completions\nrow 5 (units-01), attempt 0\n")
    assert text.endswith("label, which the model does not see: 1350\n")


def test_render_shows_what_an_agent_of_ones_own_asks_first(osmosis: Run, tmp_path: Path) -> None:
    assert osmosis("init", "own", "--template", "python").returncode == 0
    body = json.loads(osmosis("render", "--row", "1", "--json", folder=tmp_path / "own").stdout)
    assert body["messages"][-1]["content"] == "Describe The lamp in at most 8 words."


def test_schemas_are_the_ones_that_are_checked_in(osmosis: Run, tmp_path: Path) -> None:
    assert osmosis("schema").stdout.split() == ["workflow", "rollout", "summary"]
    assert osmosis("schema", "--write", "out").returncode == 0
    for path in (tmp_path / "out").iterdir():
        same = path.read_text() == (ROOT / "schemas" / path.name).read_text()
        assert same, "run `osmosis-run schema --write schemas`"
    printed = json.loads(osmosis("schema", "workflow").stdout)
    assert printed == json.loads((ROOT / "schemas" / "workflow.schema.json").read_text())
    assert "there is no schema `wrkflow`" in osmosis("schema", "wrkflow").stderr


def test_a_failing_test_is_told_with_its_place(osmosis: Run, typo: Path) -> None:
    tests = '[[graders.answer.tests]]\noutput = "1"\nlabel = "2"\nexpect = 1.0\n'
    (typo / "failing.toml").write_text(TYPO.replace("temprature", "temperature") + tests)
    done = osmosis("test", "failing.toml")
    assert done.returncode == 1
    assert "✗ graders.answer  1 of 1 failed\n    failing.toml:" in done.stdout
    assert "test 1: expected a score of 1, found 0" in done.stdout
    assert done.stdout.endswith("0 passed, 1 failed\n")
    (result,) = json.loads(osmosis("test", "failing.toml", "--json").stdout)["tests"]
    assert (result["part"], result["number"], result["passed"]) == ("graders.answer", 1, False)


def test_a_file_that_tests_nothing_says_so(osmosis: Run, typo: Path) -> None:
    done = osmosis("test", "sound.toml")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "no tests: graders.answer"
    assert done.stdout.splitlines()[1].startswith("nothing is tested: add ")


def test_the_model_server_plays_the_rules_of_a_file_over_http(osmosis: Run) -> None:
    rendered = json.loads(osmosis("render", "--row", "5", "-w", ARITHMETIC, "--json").stdout)
    command = [str(Path(sys.executable).parent / "osmosis-run"), "model-server", str(ARITHMETIC), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip() + "/chat/completions"
        try:
            request = urllib.request.Request(url, json.dumps(rendered).encode())
            with urllib.request.urlopen(request, timeout=10) as answer:
                message = json.load(answer)["choices"][0]["message"]
            stranger = json.dumps({"messages": [{"role": "user", "content": "Who are you?"}]}).encode()
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url, stranger), timeout=10)
            refused.value.close()
        finally:
            server.terminate()
    assert message["role"] == "assistant"
    assert message.get("tool_calls") or message["content"]


def test_a_model_that_is_not_scripted_cannot_be_served(osmosis: Run) -> None:
    done = osmosis("model-server", ROOT / "configs" / "gsm8k", "--port", "0")
    assert done.returncode == 1
    assert "has no scripted model to serve" in done.stderr
