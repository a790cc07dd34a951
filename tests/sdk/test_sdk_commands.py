"""Code brought unchanged: the first generation's command line, over real HTTP, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

M = ("-m", "server:agent_loop")


def test_validate_says_what_the_agent_offers_and_what_is_wrong_with_one(osmosis: Any, folder: Path) -> None:
    done = osmosis("validate", *M, "-v")
    assert done.returncode == 0, done.stderr
    assert "server:agent_loop: ok (1 tool, 0 graders)" in done.stderr
    assert "tools     add" in done.stderr
    assert not list(folder.glob("*.toml"))
    assert not (folder / "runs").exists()

    with (folder / "server.py").open("a") as server:
        server.write("class Slow(Calculator):\n    def run(self, ctx):\n        pass\n")
    done = osmosis("validate", "-m", "server:Slow")
    assert done.returncode == 1
    assert "command line: -m server:Slow error[unfit-code]" in done.stdout
    assert "put `async` before its `def`" in done.stdout


def test_eval_scores_with_functions_and_writes_that_generations_report(osmosis: Any, model: Any, folder: Path) -> None:
    words = ("--model", "strong", "--base-url", model.base_url, "-d", "data.jsonl", "--n", "2", "-o", "out.json")
    functions = ("--eval-fn", "rewards:compute_reward", "--eval-fn", "rewards:full")
    sampling = ("--temperature", "0.3", "--max-tokens", "64", "--batch-size", "4", "--pass-threshold", "0.5")
    done = osmosis("eval", *M, *words, *functions, *sampling, "--api-key", "sk-of-mine")
    assert done.returncode == 0, done.stderr
    assert "calculator  3 rows × 2 attempts" in done.stdout

    report = json.loads((folder / "out.json").read_text())
    assert report["config"] == {
        "model": "strong", "n_runs": 2, "pass_threshold": 0.5, "eval_fns": ["rewards:compute_reward", "rewards:full"],
    }  # fmt: skip
    summary = report["summary"]
    assert (summary["total_rows"], summary["total_runs"], summary["stopped_early"]) == (3, 6, False)
    assert summary["eval_fns"]["rewards:compute_reward"] == {
        "mean": 1.0, "std": 0.0, "min": 1.0, "max": 1.0, "pass_at_1": 1.0,
    }  # fmt: skip
    assert summary["eval_fns"]["rewards:full"]["mean"] == 0.5  # system, user, call, result, answer
    assert [row["row_index"] for row in report["rows"]] == [0, 1, 2]
    assert [run["run_index"] for run in report["rows"][0]["runs"]] == [0, 1]

    asked = model.asked[0]
    assert (asked["model"], asked["temperature"], asked["messages"][0]) == (
        "strong", 0.3, {"role": "system", "content": "Add."},
    )  # fmt: skip
    assert asked.get("max_tokens") == 64
    assert asked["tools"][0]["function"]["name"] == "add"
    assert set(model.keys) == {"Bearer sk-of-mine"}
    written = "".join(file.read_text() for file in (folder / "runs").rglob("*.json*"))
    assert "sk-of-mine" not in written, "no key of a command line is in a manifest"
    assert "--api-key" in written


def test_a_baseline_is_a_second_run_and_a_comparison(osmosis: Any, model: Any, folder: Path) -> None:
    words = ("--model", "strong", "--base-url", model.base_url, "-d", "data.jsonl", "--limit", "2", "--offset", "1")
    other = ("--baseline-model", "weak", "--baseline-base-url", model.base_url, "--output", "out.json", "--json")
    done = osmosis("eval", *M, *words, "--eval-fn", "rewards:compute_reward", *other)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["comparison"]["reward"] | {"a": 0.0, "b": 1.0} == found["comparison"]["reward"]
    assert {path.name for path in (folder / "runs").iterdir() if path.is_dir()} >= {"calculator", "calculator-baseline"}

    report = json.loads((folder / "out.json").read_text())
    assert [row["row_index"] for row in report["rows"]] == [1, 2], "row indices are absolute"
    assert [run["model_tag"] for run in report["rows"][0]["runs"]] == ["primary", "baseline"]
    assert report["summary"]["eval_fns"]["rewards:compute_reward"]["mean"] == 1.0, "the summary is the first model's"
    means = {each["model"]: each["eval_fns"]["rewards:compute_reward"]["mean"] for each in report["model_summaries"]}
    assert means == {"strong": 1.0, "weak": 0.0}


def test_test_plays_rows_and_fails_when_one_did(osmosis: Any, model: Any, folder: Path) -> None:
    done = osmosis("test", *M, "-d", "data.jsonl", "--base-url", model.base_url, "-o", "t.json", "--max-turns", "4")
    assert done.returncode == 0, done.stderr
    assert "3 passed" in done.stdout
    report = json.loads((folder / "t.json").read_text())
    assert report["summary"] | {"total": 3, "passed": 3, "failed": 0} == report["summary"]
    assert report["results"][0]["token_usage"]["num_llm_calls"] == 2
    assert [result["finish_reason"] for result in report["results"]] == ["stop"] * 3
    assert model.asked[0]["model"] == "gpt-5-mini"

    model.say = lambda request: {"content": None, "tool_calls": "nonsense"}
    done = osmosis("test", *M, "-d", "data.jsonl", "--base-url", model.base_url, "--limit", "1", "--offset", "2")
    assert done.returncode == 1
    assert "✗ row 2" in done.stdout


def test_interactive_steps_through_the_row_that_was_asked_for(osmosis: Any, model: Any) -> None:
    words = ("-d", "data.jsonl", "--base-url", model.base_url, "--interactive", "--row", "1")
    done = osmosis("test", *M, *words, typed="n\nn\nc\nq\n")
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert "row 1, attempt 0" in told
    assert "2+2?" in told
    assert "add(a=2, b=2)" in told
    assert "the answer is 4" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("eval", *M, "-d", "data.jsonl", "--model", "gpt-x"), "error[secret-missing] the environment variable"),
        (("eval", *M, "-d", "data.jsonl", "--model", "a/b", "--eval-fn", "rewards:neither"),
         "command line: --eval-fn rewards:neither error[unfit-code]"),
        (("eval", *M, "-d", "data.jsonl", "--model", "a/b", "--eval-fn", "rewards:nope"), "`rewards` has no `nope`"),
        (("eval", *M, "-d", "data.jsonl", "--eval-fn", "r:f", "--eval-fn", "r:f"), "`--eval-fn r:f` is given twice"),
        (("eval", *M, "-d", "data.jsonl", "--model", "a/b", "--offset", "9"), "`--offset 9` leaves no row"),
        (("eval", *M, "-d", "data.jsonl", "--temperature", "-1"), "command line: --temperature -1"),
        (("eval", *M, "-d", "none.jsonl", "--model", "a/b"), "none.jsonl"),
        (("eval", *M, "--baseline-api-key", "k"), "add `--baseline-model ID`"),
        (("eval", "--mcp", "tools", "-d", "data.jsonl"), "`--mcp tools`: there is no `tools/main.py`"),
        (("test", *M), "`test -m server:agent_loop` needs rows to play"),
        (("test", *M, "-d", "data.jsonl", "--row", "1"), "`--row` is for `--interactive`"),
        (("test", "--model", "m"), "`--model` is for `test -m MODULE:NAME`"),
        (("validate", "-m", "server:agent_lop"), "did you mean `agent_loop`?"),
        (("validate", "-m", "serve:agent_loop"), "did you mean `server`?"),
        (("validate", "-m", "server"), "it holds the agent loop `agent_loop` (server.py:"),
        (("serve", *M, "--local", "--api-key", "k"), "`--local` asks for no key, and `--api-key` for one"),
        (("serve", *M, "other.toml"), "`-m server:agent_loop` reads no file, and `other.toml` is one"),
        (("serve", "--local"), "`--local` is for `-m`"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_with_the_flag_that_asked_for_it(
    osmosis: Any, words: tuple[str, ...], message: str
) -> None:
    done = osmosis(*words)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr


def test_explain_says_which_flag_or_default_set_a_key(osmosis: Any) -> None:
    assert "from the default of `-m`" in osmosis("explain", "limits.turns", *M).stdout
    said = osmosis("explain", "limits.turns", *M, "--max-turns", "4", OSMOSIS_RUN__limits__turns="6").stdout
    assert "from command line: --max-turns 4" in said
    assert "overrode 6" in said
    assert "overrode 10 (the default of `-m`)" in said


def test_a_server_of_tools_is_an_agent_that_calls_them(osmosis: Any, model: Any, folder: Path) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "numbers.py").write_text("def plus(a: int, b: int) -> int:\n    return a + b\n")
    (folder / "tools" / "main.py").write_text(
        "from mcp.server.mcpserver import MCPServer\nfrom numbers_of_mine import plus\nprint('not the protocol')\n"
        "server = MCPServer('adds')\n@server.tool()\ndef add(a: int, b: int) -> int:\n"
        "    'Add two numbers.'\n    return plus(a, b)\n"
    )
    (folder / "tools" / "numbers.py").rename(folder / "tools" / "numbers_of_mine.py")

    wanted = model.say

    def add(request: dict[str, Any]) -> Any:
        said = wanted(request)
        if isinstance(said, dict):
            said["tool_calls"][0]["function"]["name"] = request["tools"][0]["function"]["name"]
        return said

    model.say = add
    words = ("--model", "m", "--base-url", model.base_url, "-d", "data.jsonl", "--eval-fn", "rewards:compute_reward")
    done = osmosis("eval", "--mcp", "tools", *words, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["reward"]["mean"] == 1.0
    assert "add" in model.asked[0]["tools"][0]["function"]["name"]

    (folder / "tools" / "main.py").write_text("")
    done = osmosis("eval", "--mcp", "tools", *words, "--fresh")
    assert "main.py must hold one FastMCP or MCPServer, found none" in done.stderr + done.stdout
