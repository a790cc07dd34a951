"""The same command again, after a change: what is re-used, graded again or played again, counted at the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TOOLED = """\

[tools.twice]
call = "./tools.py:twice"
"""
TWICE = "def twice(n: int) -> int:\n    'Two times n.'\n    return 2 * n\n"


@pytest.fixture
def played(project: Any, double: Any) -> Any:
    """A finished run of 20 rows over HTTP, with a tool that is offered; `.server` is the double."""
    server = double()
    with (project.folder / "workflow.toml").open("a") as file:
        file.write(TOOLED)
    project.write("tools.py", TWICE)
    project.run("eval", "-q")
    project.server = server
    assert server.stats()["requests"] == 20
    return project


def edit(project: Any, name: str, old: str, new: str) -> None:
    text = (project.folder / name).read_text()
    assert old in text
    project.write(name, text.replace(old, new))


def asked(project: Any) -> int:
    count: int = project.server.stats()["requests"] - 20
    return count


def test_nothing_changed(played: Any) -> None:
    before = played.journal().read_bytes()
    assert "20 re-used, 0 to run." in played.run("eval").err
    assert (asked(played), played.journal().read_bytes()) == (0, before)


def test_operational_keys_change_nothing(played: Any) -> None:
    settings = [
        "eval.concurrency=2",
        'model.timeout="9s"',
        "model.retries.attempts=1",
        "model.concurrency=3",
        'tools.twice.timeout="2s"',
        'limits.grader_time="3s"',
        "eval.breaker=3",
        "eval.max_failed=0.5",
    ]
    done = played.run("eval", *(word for setting in settings for word in ("--set", setting)))
    assert "20 re-used, 0 to run." in done.err, done.err
    assert asked(played) == 0


def test_a_changed_prompt_plays_again_and_names_its_line(played: Any) -> None:
    edit(played, "workflow.toml", '"{{ row.q }}"', '"0{{ row.q }}"')
    said = "20 to run. Re-run because workflow.user changed (workflow.toml:3:9)."
    assert said in played.run("plan").out
    assert asked(played) == 0
    assert said in played.run("eval").err
    assert asked(played) == 20 and len(played.lines()) == 40 and len(played.last()) == 20
    assert played.summary()["outcomes"]["scored"] == 20
    edit(played, "workflow.toml", '"0{{ row.q }}"', '"{{ row.q }}"')
    assert "20 to run" in played.run("plan").out, "the latest line counts, not the best one"


def test_a_changed_grader_grades_again_without_a_call(played: Any) -> None:
    before = {key: line["reward"] for key, line in played.last().items()}
    with (played.folder / "workflow.toml").open("a") as file:
        file.write('[graders.short]\nkind = "regex"\npattern = "^.$"\n')
    done = played.run("eval")
    assert "20 re-graded, 0 to run. Re-graded because graders.short" in done.err, done.err
    assert "workflow.toml:" in done.err
    assert asked(played) == 0
    after = played.last()
    assert all(set(line["scores"]) == {"answer", "short"} for line in after.values())
    assert {key: line["reward"] for key, line in after.items()} != before


def test_changed_code_of_a_tool_plays_again(played: Any) -> None:
    edit(played, "tools.py", "2 * n", "n + n")
    done = played.run("eval")
    assert "20 to run. Re-run because tools.twice" in done.err
    assert asked(played) == 20


def test_one_changed_row_is_one_rollout(played: Any) -> None:
    edit(played, "rows.jsonl", '"q": "3?", "a": "4"', '"q": "3?", "a": "5"')
    done = played.run("eval")
    assert "19 re-used, 1 to run. Re-run because the content of row q3 changed." in done.err
    assert asked(played) == 1
    assert played.last()["q3", 0]["reward"] == 0.0


def test_rows_that_come_and_go_and_move(played: Any) -> None:
    lines = (played.folder / "rows.jsonl").read_text().splitlines()
    played.write("rows.jsonl", "\n".join([*reversed(lines[5:]), json.dumps({"id": "new", "q": "70?", "a": "71"})]))
    assert "16 rows x 1 attempt: 15 re-used, 1 to run." in played.run("eval").err
    assert asked(played) == 1
    assert (played.summary()["rows"], played.summary()["reward"]["n"]) == (16, 16)


def test_more_attempts_only_add(played: Any) -> None:
    assert "20 re-used, 20 to run." in played.run("eval", "--attempts", "2").err
    assert asked(played) == 20
    assert "20 re-used, 0 to run." in played.run("eval").err
    assert played.summary()["attempts"] == 1 and played.summary()["rollouts"]["recorded"] == 20


def test_regrade_asks_nobody(played: Any) -> None:
    played.server.close()
    done = played.run("regrade", "runs/it", "--set", 'graders.answer.expect="2"')
    assert "20 graded again" in done.err
    assert sum(line["reward"] for line in played.last().values()) == 1.0
    assert len(played.lines()) == 40


def test_fresh_moves_the_old_run_aside(played: Any) -> None:
    before = played.journal().read_bytes()
    assert "20 to run." in played.run("eval", "--fresh").err
    archives = [path for path in (played.folder / "runs").iterdir() if path.name != "it"]
    assert len(archives) == 1 and archives[0].name.startswith("it.")
    assert (archives[0] / "rollouts.jsonl").read_bytes() == before
    assert played.run("show", archives[0]).out
    played.run("eval", "-q", "--fresh")
    assert len(list((played.folder / "runs").iterdir())) == 3


def test_fresh_is_the_way_out_of_a_damaged_run(played: Any) -> None:
    played.journal().with_name("manifest.json").write_text("{")
    done = played.run("eval", code=1)
    assert "manifest.json" in done.err and "--fresh" in done.err
    played.run("eval", "-q", "--fresh")
    played.journal().with_name("manifest.json").unlink()
    done = played.run("eval", code=1)
    assert "--fresh" in done.err
    played.run("eval", "-q", "--fresh")
    assert len(played.last()) == 20


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ('{ cost = "0.001 USD" }', "budget of $0.001"),
        ("{ tokens = 200 }", "budget of 200 tokens"),
        ('{ time = "300ms" }', "time budget"),
    ],
    ids=["cost", "tokens", "time"],
)
def test_a_budget_stops_the_run_resumably(project: Any, double: Any, budget: str, said: str) -> None:
    double("--latency", "0.05")
    project.rows(200)
    price = ("--set", "model.price={ input = 10.0, output = 10.0 }", "--concurrency", "4")
    done = project.run("eval", *price, "--set", f"eval.budget={budget}", code=3)
    assert f"stopping: the {said}" in done.err and "the same command goes on" in done.err
    kept = len(project.lines())
    assert 0 < kept < 200
    assert {line["outcome"] for line in project.lines()} == {"scored"}
    if "time" not in budget:
        again = project.run("eval", *price, "--set", f"eval.budget={budget}", code=3)
        assert said in again.err and len(project.lines()) == kept, "what was spent stays spent"
    done = project.run("eval", *price[:2], "--concurrency", "64")
    assert f"{kept} re-used, {200 - kept} to run." in done.err
    assert len(project.last()) == len(project.lines()) == 200


def test_gates_decide_the_exit_code(project: Any) -> None:
    project.run("eval", "-q", "--set", 'eval.gates=[{ metric = "reward", min = 0.5 }]')
    done = project.run("eval", "--set", 'eval.gates=[{ metric = "pass@1", bound = "lower", min = 0.999 }]', code=2)
    assert "pass@1" in done.out + done.err
    summary = json.loads(project.run("eval", "--json", "--set", 'eval.gates=[{ metric = "cost", max = -1 }]',
                                     code=None).out or "{}")  # fmt: skip
    assert summary.get("exit_code", 1) in (1, 2)


def test_a_recording_replays_exactly_and_misses_clearly(project: Any, double: Any) -> None:
    server = double("--token-ids")
    project.run("eval", "-q", "--attempts", "2", "--record", "calls.jsonl")
    before = project.last()
    server.close()
    replay = ("--set", "model.provider=replay", "--set", "model.recording=calls.jsonl", "--attempts", "2")
    project.run("eval", "-q", *replay, "--name", "again")
    after = project.last("again")
    assert after.keys() == before.keys() and len(after) == 40
    for key, line in after.items():
        for field in ("outcome", "reward", "messages", "usage"):
            assert line[field] == before[key][field], (key, field)
        assert [call.get("token_ids") for call in line["calls"]] == [
            call.get("token_ids") for call in before[key]["calls"]
        ]
    edit(project, "workflow.toml", '"{{ row.q }}"', '"{{ row.q }}!"')
    done = project.run("eval", *replay, "--name", "changed", code=3)
    assert "model/replay_miss" in done.err and "calls.jsonl" in done.err
    assert {line["reward"] for line in project.last("changed").values()} == {None}


def test_a_recording_survives_a_kill_and_a_torn_end(project: Any, double: Any, until: Any) -> None:
    double("--latency", "0.02")
    project.rows(60)
    record = ("eval", "-q", "--concurrency", "4", "--record", "calls.jsonl")
    process = project.start(*record)
    until(lambda: project.journal().exists() and project.journal().read_bytes().count(b"\n") > 20)
    process.kill()
    process.communicate()
    recording: Path = project.folder / "calls.jsonl"
    recording.write_bytes(recording.read_bytes() + b'{"torn')
    project.run(*record)
    project.run("eval", "-q", "--name", "again", "--set", "model.provider=replay", "--set",
                "model.recording=calls.jsonl")  # fmt: skip
    assert {key: line["reward"] for key, line in project.last("again").items()} == {
        key: line["reward"] for key, line in project.last().items()
    }
