"""What a rollout leaves on disk: ATIF that keeps its rules whatever was said, facts, and plain files."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.records.artifacts import artifacts_at, artifacts_folder
from runner.records.completion import ToolSpec
from runner.records.failure import Failure
from runner.records.rollout import Outcome, RolloutRequest, Sample
from runner.serve.archive.ack_report import Report, SampleReport
from runner.serve.archive.archive import Archive, report_of
from runner.serve.archive.atif import check, dump, plain, steps_of
from runner.serve.archive.trajectory import trajectory_of
from runner.serve.delivery.reading import MAX_ACK
from runner.serve.start import Chat, Start
from runner.workflows.workflow import AgentWorkflowContext

AGENT = {"name": "osmosis-run", "version": "1"}
TOOL = ToolSpec("add", "Adds.", {"type": "object"})
MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2+2?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}},
            {"id": "c2", "type": "function", "function": {"name": "add", "arguments": "[1"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "4"},
    {"role": "tool", "tool_call_id": "zz", "content": "lost"},
    {"role": "assistant", "content": "Ünd 4"},
)
CALLS = (
    {"turn": 0, "usage": {"input_tokens": 9, "output_tokens": 3, "cached_tokens": 0}, "reasoning": "hm", "model": "m"},
    {"turn": 1, "error": {"kind": "model_unavailable"}},
    {"turn": 1, "usage": None, "token_ids": [7, 8], "logprobs": {"content": [{"token": "x", "logprob": -0.5}]}},
)


def start(rollout_id: str = "r1", **more: Any) -> Start:
    chat = Chat("http://trainer/chat", "sk-secret", "policy")
    return Start("single-sample", rollout_id, rollout_id, (), MESSAGES[:2], chat, "http://trainer/done", **more)


def outcome(messages: tuple[dict[str, Any], ...] = MESSAGES, **more: Any) -> Outcome:
    sample = Sample(messages, CALLS, (), {"turns": 2.0}, {"note": float("nan")})
    request = RolloutRequest("a1", MESSAGES[:2])
    return Outcome(request, **{"status": "scored", "stop_reason": "answered", "reward": 1.0, "sample": sample, **more})


def document(*reports: Report, **more: Any) -> dict[str, Any]:
    found = trajectory_of(AGENT, start(label="4", metadata={"k": 1}), outcome(**more), [TOOL], reports)
    assert found is not None
    assert check(found) == []
    return found


def report(*samples: int, **entry: Any) -> bytes:
    calls = [{"prompt_tokens": number, "completion_token_ids": [number], "unknown": 1} for number in range(samples[0])]
    named = {f"s{place}": {"llm_call_metrics": calls, **entry} for place in range(len(samples))}
    return json.dumps({"ok": 1, "trajectory": {"model_name": "policy-7", "samples": named}}).encode()


def read(body: bytes) -> Report:
    found = report_of(body)
    assert found is not None
    return found


def test_a_conversation_becomes_steps() -> None:
    found = document()
    system, user, first, last = found["steps"]
    assert (system["source"], user["source"], first["source"], last["source"]) == ("system", "user", "agent", "agent")
    assert first["tool_calls"] == [
        {"tool_call_id": "c1", "function_name": "add", "arguments": {"a": 2, "b": 2}},
        {"tool_call_id": "c2", "function_name": "add", "arguments": {"_raw": "[1"}},
    ]
    assert first["observation"]["results"] == [
        {"content": "4", "source_call_id": "c1"},
        {"content": "lost", "extra": {"tool_call_id": "zz"}},
    ]
    assert first["metrics"] == {"prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 0}
    assert (first["reasoning_content"], first["model_name"], first["llm_call_count"]) == ("hm", "m", 1)
    assert last["metrics"] == {"completion_token_ids": [7, 8], "logprobs": [-0.5]}
    assert found["final_metrics"] == {
        "total_prompt_tokens": 9,
        "total_completion_tokens": 3,
        "total_cached_tokens": 0,
        "total_steps": 4,
    }
    assert found["agent"] == {**AGENT, "model_name": "policy", "tool_definitions": [TOOL.wire()]}
    assert found["session_id"] == found["trajectory_id"] == found["extra"]["osmosis"]["rollout_id"] == "r1"
    assert found["extra"]["osmosis"] == {
        "rollout_id": "r1",
        "label": "4",
        "reward": 1.0,
        "status": "scored",
        "stop_reason": "answered",
        "sample_metrics": {"turns": 2.0},
        "sample_extra_fields": {"note": "nan"},
        "request_metadata": {"k": 1},
    }


def test_trap_8_a_report_is_laid_on_the_steps_only_if_the_counts_match() -> None:
    found = document(read(report(2, model_name="best", final_metrics={"total_prompt_tokens": 99})))
    assert [step["metrics"] for step in found["steps"] if step["source"] == "agent"] == [
        {"prompt_tokens": 0, "completion_token_ids": [0]},
        {"prompt_tokens": 1, "completion_token_ids": [1]},
    ]
    assert found["agent"]["model_name"] == "best"
    assert found["final_metrics"] == {"total_prompt_tokens": 99, "total_steps": 4}
    unmatched = document(read(report(3)))
    assert len(unmatched["extra"]["osmosis"]["unmatched_llm_call_metrics"]) == 3
    assert unmatched["steps"][2]["metrics"]["prompt_tokens"] == 9  # our own record stays
    several = document(read(report(2, 2)))
    assert set(several["extra"]["osmosis"]["unmatched_sample_reports"]) == {"s0", "s1"}


def test_trap_9_the_later_report_replaces_the_earlier_one_as_a_whole() -> None:
    found = document(read(report(2, final_metrics={"total_prompt_tokens": 99})), read(report(2)))
    assert found["final_metrics"]["total_prompt_tokens"] == 1


def test_our_own_calls_are_not_guessed_onto_steps() -> None:
    found = document(sample=Sample(MESSAGES[:3], CALLS))
    assert "metrics" not in found["steps"][2]
    assert len(found["extra"]["osmosis"]["unmatched_llm_call_metrics"]) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"ok",
        b'{"trajectory"',
        b'{"trajectory": null}',
        b'{"trajectory": 3}',
        b'{"trajectory": {"samples": []}}',
        b'{"trajectory": {"samples": {"a": 1}}}',
        b'{"trajectory": {"samples": {"a": {"llm_call_metrics": {}}}}}',
        b'{"trajectory": {"samples": {"a": {"llm_call_metrics": [{"prompt_tokens": -1}]}}}}',
        b'{"trajectory": {"samples": {"a": {"llm_call_metrics": [{"logprobs": [NaN]}]}}}}',
        b'{"trajectory": {"samples": {"a": {"final_metrics": {"total_cost_usd": 1e999}}}}}',
        b'{"trajectory": {"model_name": 3}}',
        b'{"trajectory": ' + b"[" * 100_000,
        b"\xff\xfe" + b'"trajectory"',
        b'{"trajectory": {"samples": {}}, "x": "' + b"x" * MAX_ACK + b'"}',
    ],
)
def test_an_acknowledgement_without_a_good_report(body: bytes) -> None:
    assert report_of(body) is None


def test_an_empty_report_is_one() -> None:
    assert read(b'{"trajectory": {}}') == Report(None, {})
    assert read(b'{"trajectory": {"samples": {"a": {}}}}') == Report(None, {"a": SampleReport(None, (), {})})


TEXT = st.text(st.characters(), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "critic"])
IDS = st.sampled_from(["c1", "c2", "step_1_call_0", ""])
TOOL_CALLS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"id": IDS | JSON, "function": st.fixed_dictionaries({"name": JSON, "arguments": JSON}) | JSON}
    )
    | JSON,
    max_size=3,
)
ANY_MESSAGE = st.fixed_dictionaries(
    {"role": ROLES | JSON},
    optional={
        "content": TEXT | JSON | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=2),
        "tool_calls": TOOL_CALLS | JSON,
        "tool_call_id": IDS | JSON,
        "reasoning_content": JSON,
        "reasoning_effort": JSON,
        "thinking": JSON,
        "model_name": JSON,
        "metrics": JSON,
        "timestamp": JSON | st.just("2025-01-02T03:04:05Z"),
        "created_at": JSON,
        "usage": JSON | st.dictionaries(st.sampled_from(["prompt_tokens", "output_tokens"]), JSON),
        "extra": JSON | st.fixed_dictionaries({"response": st.fixed_dictionaries({"usage": JSON})}),
    },
)


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY_MESSAGE, min_size=1, max_size=6))
def test_any_conversation_makes_a_document_that_keeps_the_rules(messages: list[dict[str, Any]]) -> None:
    before = repr(messages)
    found = document(sample=Sample(tuple(messages), CALLS, (), {}, {"any": messages}))
    assert repr(messages) == before
    written = dump(found)
    assert written.isascii()
    assert json.loads(written) == found
    agents = sum(1 for message in messages if message["role"] == "assistant")
    assert sum(1 for step in found["steps"] if step["source"] == "agent") == agents


def test_other_roles_times_and_strange_fields() -> None:
    odd, tool, said = steps_of(
        [
            {"role": "critic", "content": [{"type": "image_url", "image_url": {"url": "x"}}], "created_at": 0},
            {"role": "tool", "tool_call_id": "c", "content": "early"},
            {"role": "assistant", "content": "x", "thinking": {"a": 1}, "usage": {"prompt_tokens": 0}, "name": "bo"},
        ]
    )
    assert odd["extra"] == {"original_role": "critic"}
    assert odd["message"] == [{"type": "text", "text": '{"type": "image_url", "image_url": {"url": "x"}}'}]
    assert odd["timestamp"] == "1970-01-01T00:00:00+00:00"
    assert (tool["source"], tool["message"]) == ("system", "")
    assert tool["observation"]["results"] == [{"content": "early", "extra": {"tool_call_id": "c"}}]
    assert (said["reasoning_content"], said["metrics"]) == ('{"a": 1}', {"prompt_tokens": 0})
    assert said["extra"] == {"usage": {"prompt_tokens": 0}, "name": "bo"}


def test_trap_75_calls_without_an_id_get_their_own() -> None:
    call = {"function": {"name": "f", "arguments": ""}}
    (step,) = steps_of([{"role": "assistant", "tool_calls": [call, call, {**call, "id": "a"}, {**call, "id": "a"}]}])
    names = [one["tool_call_id"] for one in step["tool_calls"]]
    assert len(set(names)) == 4
    assert names[2] == "a"
    assert step["tool_calls"][3]["extra"] == {"original_id": "a"}
    assert step["tool_calls"][0]["arguments"] == {"_raw": ""}


@pytest.mark.parametrize(
    ("change", "breach"),
    [
        ({"schema_version": "ATIF-v1.8"}, "schema_version: is not what it must be"),
        ({"steps": []}, "steps: is not what it must be"),
        ({"colour": 1}, "colour: is not a field of this object"),
        ({"agent": {"name": "x"}}, "agent.version: is missing"),
        ({"extra": {"a": [float("inf")]}}, "extra: holds a number that is not finite"),
        ({"final_metrics": {"total_steps": -1}}, "final_metrics.total_steps: is not what it must be"),
        ({"subagent_trajectories": [{}]}, "subagent_trajectories: need ids that differ"),
        ({"steps.0.step_id": 2}, "steps[0].step_id: must be 1"),
        ({"steps.0.metrics": {}}, "steps[0].metrics: only an agent's step has one"),
        ({"steps.2.llm_call_count": 0}, "steps[2].metrics: no model was called"),
        ({"steps.2.message": [{"type": "image", "source": {}}]}, "steps[2].message: is not what it must be"),
        ({"steps.3.timestamp": "noon"}, "steps[3].timestamp: is not what it must be"),
        (
            {"steps.3.observation": {"results": [{"source_call_id": "c1"}]}},
            "steps[3].observation.results[0].source_call_id: names no tool call of this step",
        ),
        (
            {"steps.3.observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_id": "s"}]}]}},
            "steps[3].observation.results[0].subagent_trajectory_ref[0].trajectory_id: names no embedded trajectory",
        ),
    ],
)
def test_each_rule_is_checked(change: dict[str, Any], breach: str) -> None:
    found = json.loads(dump(document()))
    for path, value in change.items():
        if path.startswith("steps."):
            _, place, name = path.split(".")
            found["steps"][int(place)][name] = value
        else:
            found[path] = value
    assert breach in check(found)


@pytest.mark.parametrize("value", [None, 3, [], "x", {"steps": {"a": 1}, "agent": []}, {"steps": [None, 3]}])
def test_the_check_never_raises(value: Any) -> None:
    assert check(value) != []


def test_a_folder_for_each_rollout(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "root", "osmosis-run", "1")
    facts = {"deliveries": {"completion": {"tries": 2, "status": 200}}}
    asyncio.run(archive.write(start("Row 7.a"), outcome(), [TOOL], [], facts))
    folder = tmp_path / "root" / "Row 7.a"
    assert sorted(path.name for path in folder.iterdir()) == ["diagnostics.json", "trajectory.json"]
    text = (folder / "trajectory.json").read_text()
    assert check(json.loads(text)) == []
    assert '"completion_token_ids": [7, 8]' in text
    assert "\\u00dcnd" in text
    told = json.loads((folder / "diagnostics.json").read_text())
    assert (told["status"], told["deliveries"], told["model_failures"]) == (
        "scored",
        facts["deliveries"],
        [{"kind": "model_unavailable"}],
    )
    assert b"sk-secret" not in b"".join(path.read_bytes() for path in folder.iterdir())


def test_trap_99_a_failure_is_archived_with_what_was_said(tmp_path: Path) -> None:
    archive = Archive(tmp_path, "osmosis-run", "1")
    failure = Failure("workflow", "rollout_timeout", "took too long")
    late = outcome(status="failed", stop_reason="rollout_timeout", reward=None, failure=failure)
    asyncio.run(archive.write(start(), late, [], [], {}))
    kept = json.loads((tmp_path / "r1" / "trajectory.json").read_text())
    assert kept["extra"]["osmosis"]["status"] == "failed"
    assert len(kept["steps"]) == 4
    asyncio.run(archive.write(start(), replace(late, sample=Sample()), [], [], {}))
    assert [path.name for path in (tmp_path / "r1").iterdir()] == ["diagnostics.json"]
    assert json.loads((tmp_path / "r1" / "diagnostics.json").read_text())["failure"] == failure.to_json()


@pytest.mark.parametrize(
    "rollout_id", ["", ".", "..", "a/b", "../../x", "a\\b", "a\0b", "x" * 300, "\ud800", "é" * 200]
)
def test_traps_42_43_an_id_never_leads_out_of_the_root(tmp_path: Path, rollout_id: str) -> None:
    archive = Archive(tmp_path / "root", "osmosis-run", "1")
    asyncio.run(archive.write(start(rollout_id), outcome(), [], [], {}))
    (folder,) = (tmp_path / "root").iterdir()
    assert folder == archive.folder(rollout_id)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    assert len(list(folder.iterdir())) == 2
    assert json.loads((folder / "trajectory.json").read_text())["session_id"] == rollout_id


def test_trap_88_only_plain_files_are_kept(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "root", "osmosis-run", "1")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "passwd").write_text("root")
    token = artifacts_at.set(archive.artifacts("r1"))
    folder = artifacts_folder()
    artifacts_at.reset(token)
    assert folder == tmp_path / "root" / "r1" / "artifacts"
    (folder / "deep").mkdir()
    (folder / "deep" / "plot.svg").write_text("<svg/>")
    (folder / "deep" / "link").symlink_to(secret / "passwd")
    (folder / "away").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    asyncio.run(archive.write(start(), outcome(), [], [], {}))
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == ["deep", "deep/plot.svg"]
    assert (secret / "passwd").read_text() == "root"
    assert artifacts_folder() is None


def test_trap_87_an_archive_that_cannot_be_written_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "root").write_text("a file")
    archive = Archive(tmp_path / "root", "osmosis-run", "1")
    asyncio.run(archive.write(start(), outcome(), [], [], {}))
    assert "rollout r1 is not archived" in caplog.text
    assert plain({1: {float("-inf")}}) == {"1": ["-inf"]}


def test_a_workflow_finds_its_folder(tmp_path: Path) -> None:
    class Idle:
        tools = ()

    ctx = AgentWorkflowContext(
        prompt=[], config=None, metadata={}, rollout_id="r", attempt=0, driver=cast("Any", Idle()), resources={}
    )
    assert ctx.artifacts_dir is None
    token = artifacts_at.set(tmp_path / "r" / "artifacts")
    assert not (tmp_path / "r").exists()
    assert ctx.artifacts_dir == tmp_path / "r" / "artifacts"
    assert (tmp_path / "r" / "artifacts").is_dir()
    artifacts_at.reset(token)
