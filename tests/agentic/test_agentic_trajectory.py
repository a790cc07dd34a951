"""Trajectories: the data, the files, the view over our record, the client, `osmosis-run show`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.agentic import (
    AgenticRollout,
    StepType,
    Trajectory,
    TrajectoryClient,
    TrajectoryStep,
    load_trajectory,
    save_trajectory,
    trajectory_of,
)
from runner.agentic.steps import log_probs_of
from runner.agentic.told import contents_of
from runner.cli.table import cli
from runner.records.completion import Completion, Usage
from runner.records.message import ToolCall

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
STEPS = st.builds(
    TrajectoryStep,
    step_type=st.sampled_from(StepType),
    content=WORDS,
    metadata=st.dictionaries(st.sampled_from(["turn", "status", "x"]), JSON, max_size=2),
    tool_name=st.none() | WORDS,
    tool_args=st.none() | st.dictionaries(WORDS, JSON, max_size=2),
    tool_result=JSON,
    reward_score=st.none() | st.floats(-5, 5),
    is_correct=st.none() | st.booleans(),
    log_probs=st.none() | st.lists(st.floats(-100, 0), max_size=4),
    attention_mask=st.none() | st.lists(st.integers(0, 1), max_size=4),
)
TRAJECTORIES = st.builds(
    Trajectory,
    request_id=WORDS,
    steps=st.lists(STEPS, max_size=4),
    metadata=st.dictionaries(WORDS, JSON, max_size=2),
    is_completed=st.booleans(),
    final_reward=st.none() | st.floats(-5, 5),
    total_tokens=st.integers(0, 10**6),
    system_prompt=st.none() | WORDS,
)


def tokens(text: str, *logprobs: float) -> Completion:
    return Completion(
        {"role": "assistant", "content": text},
        "stop",
        Usage(7, len(logprobs)),
        token_ids=list(range(len(logprobs))),
        logprobs={"content": [{"token": "t", "logprob": each} for each in logprobs]},
    )


def add(a: int, b: int) -> int:
    return a + b


def played(says: Callable[..., Any], *answers: Any, agent: str = "react", **config: Any) -> Trajectory:
    rollout = AgenticRollout({"agent_type": agent, **config}, says(*answers))
    rollout.tools = {"add": add}
    return asyncio.run(rollout.run_trajectory("2+3?", "sum"))


SUM = (tokens("Thought: I add.\nAction: add(a=2, b=3)", -0.5, -0.25), tokens("Final Answer: 5", -1.0))


@given(TRAJECTORIES)
@settings(max_examples=60, deadline=None)
def test_dictionaries_lose_nothing(trajectory: Trajectory) -> None:
    assert Trajectory.from_dict(trajectory.to_dict()) == trajectory
    assert Trajectory.from_dict(json.loads(json.dumps(trajectory.to_dict()))) == trajectory


@given(TRAJECTORIES)
@settings(max_examples=30, deadline=None)
def test_files_lose_nothing(tmp_path_factory: pytest.TempPathFactory, trajectory: Trajectory) -> None:
    folder = tmp_path_factory.mktemp("saved")
    assert load_trajectory(save_trajectory(trajectory, folder)) == trajectory


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "needs `request_id`"),
        ({"request_id": "x", "stepz": []}, "has no `stepz`"),
        ({"request_id": "x", "schema": "trajectory/9"}, "'trajectory/9'"),
        ({"request_id": "x", "steps": [{"content": "x"}]}, "needs `step_type`"),
        ({"request_id": "x", "steps": [{"content": "x", "step_type": "guess"}]}, "'guess'"),
    ],
)
def test_what_is_no_trajectory(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Trajectory.from_dict(values)


def test_its_questions() -> None:
    trajectory = Trajectory("x")
    assert (trajectory.get_final_response(), trajectory.get_total_reward()) == ("", 0.0)
    trajectory.add_step(TrajectoryStep(StepType.OBSERVATION, "2+3?"))
    trajectory.add_step(TrajectoryStep(StepType.ACTION, "add", tool_name="add", reward_score=0.5))
    trajectory.add_step(TrajectoryStep(StepType.ACTION_RESULT, "5", reward_score=0.25))
    assert trajectory.get_final_response() == "add"
    trajectory.add_step(TrajectoryStep(StepType.FINAL_ANSWER, "5"))
    assert (trajectory.get_final_response(), trajectory.get_total_reward()) == ("5", 0.75)
    assert [step.tool_name for step in trajectory.get_tool_calls()] == ["add"]
    assert [message["role"] for message in trajectory.get_messages()] == ["user", "assistant", "user", "assistant"]
    assert trajectory.is_completed is False


def test_steps_hold_what_the_endpoint_gave(says: Callable[..., Any]) -> None:
    trajectory = played(says, *SUM)
    action, result, answer = trajectory.steps[1:]
    assert (action.log_probs, action.attention_mask, action.metadata["token_ids"]) == ([-0.5, -0.25], [1, 1], [0, 1])
    assert (action.tool_name, action.tool_args, result.tool_result) == ("add", {"a": 2, "b": 3}, 5)
    assert (answer.step_type, answer.content, answer.log_probs) == (StepType.FINAL_ANSWER, "5", [-1.0])
    assert (trajectory.is_completed, trajectory.total_tokens) == (True, 17)
    told = trajectory.statistics()
    assert (told["turns"], told["tool_calls_by_name"], told["failed_tool_calls"]) == (2, {"add": 1}, 0)
    assert (told["input_tokens"], told["output_tokens"], told["stop_reason"]) == (14, 3, "final_answer")


def test_messages_are_those_of_the_wire(says: Callable[..., Any]) -> None:
    function = says("Action: add(a=2, b=3)", "hm", "Final Answer: 5")
    rollout = AgenticRollout({}, function)
    rollout.tools = {"add": add}
    trajectory = asyncio.run(rollout.run_trajectory("2+3?"))
    sent = function.asked[-1]["messages"]
    assert trajectory.get_messages(include_system_prompt=True)[:-1] == sent
    assert trajectory.get_messages()[-1] == {"role": "assistant", "content": "Final Answer: 5"}
    kinds = [step.step_type.value for step in trajectory.steps]
    assert kinds == ["observation", "action", "action_result", "thought", "observation", "final_answer"]


@pytest.mark.parametrize("agent", ["react", "tool"])
def test_the_view_over_a_record_is_the_same(says: Callable[..., Any], agent: str, tmp_path: Path) -> None:
    """A run of a file with the same answers, read back: the same steps, but for what only one of the two measures."""
    answers = {
        "react": ['Action: add(a=1, b=1), add(a=2, b="3")', "hm", "Final Answer: 5"],
        "tool": ["Both:\nTOOL_CALL: add(a=1, b=1)\nTOOL_CALL: add(2, 3)", "5"],
    }[agent]
    live = played(says, *answers, agent=agent)
    rules = "".join(
        f'[[model.rules]]\nwhen = "turn == {turn}"\nreply = {json.dumps(text)}\n' for turn, text in enumerate(answers)
    )
    (tmp_path / "tools.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (tmp_path / "rows.jsonl").write_text('{"user_prompt": "2+3?", "ground_truth": "5"}\n')
    parser = 'parser = { call = "runner.agentic.tool_call_lines:ToolCallLines" }' if agent == "tool" else ""
    (tmp_path / "workflow.toml").write_text(
        f'[workflow]\nname = "sums"\nagent = "{"tools" if agent == "tool" else agent}"\n{parser}\n'
        f'[tools.add]\ncall = "./tools.py:add"\n[model]\nid = "x"\nprovider = "scripted"\n{rules}'
        '[graders.answer]\nkind = "exact"\n'
    )
    subprocess.run(
        [sys.executable, "-m", "runner.cli.main", "eval", "rows.jsonl", "-q"], cwd=tmp_path, check=True, timeout=60,
        capture_output=True,
    )  # fmt: skip
    (seen,) = TrajectoryClient(tmp_path / "runs" / "sums")
    shown = [(step.step_type, step.content, step.tool_name, step.tool_args, step.tool_result) for step in seen.steps]
    assert shown == [
        (step.step_type, step.content, step.tool_name, step.tool_args, step.tool_result) for step in live.steps
    ]
    assert seen.get_messages() == live.get_messages()
    assert (seen.is_completed, seen.final_reward, seen.metadata["label"]) == (True, 1.0, "5")


def record(**more: Any) -> dict[str, Any]:
    return {
        "rollout_id": "r", "outcome": "scored", "stop_reason": "final_answer", "reward": 1.0, "calls": [], "tools": [],
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}], **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "completed"),
    [
        ({}, True),
        ({"stop_reason": "max_turns"}, False),
        ({"stop_reason": "max_tokens"}, False),
        ({"outcome": "failed", "stop_reason": "model_refused"}, False),
        ({"outcome": "cancelled", "stop_reason": "interrupted"}, False),
        ({"outcome": "ungraded", "stop_reason": "grader_error", "failure": {"boundary": "grader"}}, True),
        ({"outcome": "ungraded", "stop_reason": "no_grader", "failure": {"boundary": "config"},
          "messages": [{"role": "user", "content": "?"}]}, False),
    ],
)  # fmt: skip
def test_only_what_has_ended_is_completed(more: dict[str, Any], completed: bool) -> None:
    trajectory = trajectory_of(record(**more))
    assert trajectory.is_completed is completed
    assert (trajectory.steps[-1].step_type is StepType.FINAL_ANSWER) is completed


@pytest.mark.parametrize(
    ("text", "count", "contents"),
    [
        ("Observation: a\n\nb", 1, ["a\n\nb"]),
        ("Observation 1 (f): a\n\nObservation 2 (f): b", 2, ["a", "b"]),
        ("Result of f:\na\n\nResult of f:\n", 2, ["a", ""]),
        ("<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>", 2, ["a", "b"]),
        ("something else", 2, ["something else", ""]),
    ],
)
def test_results_are_taken_out_of_one_message(text: str, count: int, contents: list[str]) -> None:
    assert contents_of(text, [ToolCall(str(number), "f", "{}") for number in range(count)]) == contents


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([-0.5, -1], [-0.5, -1.0]),
        ({"content": [{"logprob": -0.5}]}, [-0.5]),
        ({"token_logprobs": [-0.5]}, [-0.5]),
        ({"token_logprobs": [None, -0.5]}, None),
        ([], None),
        (None, None),
        ({"content": None}, None),
    ],
)
def test_log_probs_in_every_form(given: Any, found: list[float] | None) -> None:
    assert log_probs_of(given) == found


def test_names_of_files_are_stable_and_never_taken_twice(tmp_path: Path) -> None:
    paths = [save_trajectory(Trajectory(name), tmp_path) for name in ("a", "a", "../a", "b" * 300)]
    assert [path.name for path in paths[:2]] == ["a.jsonl", "a-2.jsonl"]
    assert {path.parent for path in paths} == {tmp_path}
    assert [load_trajectory(path).request_id for path in paths] == ["a", "a", "../a", "b" * 300]


CRASHES = """
import os, signal
from runner.agentic import AgenticRollout

def add(a: int, b: int) -> int:
    if a == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    return a + b

answers = iter(["Action: add(a=2, b=3)", "Action: add(a=9, b=3)"])
rollout = AgenticRollout({"save_trajectories": True, "trajectory_save_path": "kept"}, lambda messages: next(answers))
rollout.tools = {"add": add}
import asyncio
asyncio.run(rollout.run_trajectory("2+3?", "crash"))
"""


def test_a_process_that_dies_leaves_what_there_was(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CRASHES], cwd=tmp_path, check=False, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = load_trajectory(tmp_path / "kept" / "crash.jsonl")
    kinds = [step.step_type.value for step in left.steps]
    assert kinds == ["observation", "action", "action_result", "action"]  # the last one is what killed it
    assert (left.is_completed, left.metadata["status"], left.steps[2].tool_result) == (False, "unfinished", 5)
    with (tmp_path / "kept" / "crash.jsonl").open("ab") as file:
        file.write(b'{"type":"step","index":4,"st')  # a write that was torn
    assert load_trajectory(tmp_path / "kept" / "crash.jsonl") == left


def test_a_damaged_file_says_where(tmp_path: Path) -> None:
    path = save_trajectory(Trajectory("x", [TrajectoryStep(StepType.THOUGHT, "t")]), tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"index"', b'"ind'))
    with pytest.raises(ValueError, match=r"x\.jsonl:2: is not JSON"):
        load_trajectory(path)


def test_the_client(says: Callable[..., Any], tmp_path: Path) -> None:
    function = says("Final Answer: 1", "Action: add(a=1, b=1)", "Final Answer: 2", RuntimeError("no"))
    rollout = AgenticRollout({"trajectory_save_path": str(tmp_path), "concurrent_requests": 1}, function)
    rollout.tools = {"add": add}
    played = asyncio.run(rollout.run_batch(["a", "b", "c"], ["one", "two", "three"]))
    rollout.save_trajectories(played)
    client = TrajectoryClient(tmp_path)
    assert {each.request_id for each in client} == {"one", "two", "three"}
    assert client.get("two") == played[1]
    assert client.get("four") is None
    assert [len(client.filter(**wanted)) for wanted in (
        {"is_completed": True}, {"tool": "add"}, {"status": "failed"}, {"stop_reason": "final_answer"},
        {"min_reward": 0.0}, {"where": lambda each: len(each.steps) == 1})] == [2, 1, 1, 2, 0, 1]  # fmt: skip
    told = client.summary()
    assert (told["trajectories"], told["completed"], told["tool_calls_by_name"]) == (3, 2, {"add": 1})
    assert (told["stop_reasons"], told["mean_reward"]) == ({"final_answer": 2, "model_refused": 1}, None)
    assert client.export_messages(tmp_path / "out.jsonl") == 3
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [message["role"] for message in lines[0]["messages"]] == ["system", "user", "assistant"]
    with pytest.raises(ValueError, match="holds no saved trajectories"):
        TrajectoryClient(os.path.dirname(tmp_path))  # noqa: PTH120 (a text, as users give it)


def test_show(says: Callable[..., Any], tmp_path: Path) -> None:
    save_trajectory(played(says, *SUM), tmp_path)
    save_trajectory(played(says, RuntimeError("nobody home")), tmp_path)
    run = CliRunner().invoke(cli, ["show", str(tmp_path)])
    assert run.exit_code == 0
    assert "sum completed · final_answer · no reward · 4 steps · 1 tool calls · 17 tokens" in " ".join(
        run.output.split()
    )
    assert "2 trajectories, 1 completed, 5 steps" in run.output
    one = CliRunner().invoke(cli, ["show", str(tmp_path / "sum.jsonl")])
    assert "→ add(a=2, b=3)" in one.output
    assert "4 final_answer" in one.output
    failed = CliRunner().invoke(cli, ["show", str(tmp_path), "sum"])
    assert "model/model_refused" in failed.output  # the last one of that name
    assert "1 trajectories" in CliRunner().invoke(cli, ["show", str(tmp_path), "--failing"]).output
    as_json = CliRunner().invoke(cli, ["show", str(tmp_path / "sum.jsonl"), "--json"])
    assert Trajectory.from_dict(json.loads(as_json.output)) == load_trajectory(tmp_path / "sum.jsonl")
    assert CliRunner().invoke(cli, ["show", str(tmp_path), "other"]).exit_code != 0
