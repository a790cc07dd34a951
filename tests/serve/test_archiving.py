"""The archive as it comes out of a running server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from runner.records.atif_rules import check
from runner.serve.house import Opening

TOOL = """
    from runner.records.artifacts import artifacts_folder

    def note(text: str) -> str:
        folder = artifacts_folder()
        (folder / "note.txt").write_text(text)
        return "noted"
"""
TOML = '[tools.note]\ncall = "./code.py:note"\ndescription = "note"\n[graders.answer]\nkind = "exact"\n'


def test_trajectory_diagnostics_and_artifacts(stage: Any) -> None:
    stage.write("code.py", TOOL)
    root = stage.folder / "archive"

    def chat(seen: Any) -> Any:
        if seen.body["messages"][-1]["role"] == "tool":
            return "4"
        call = {"name": "note", "arguments": json.dumps({"text": "hello"})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}

    async def main() -> None:
        controller = await stage.controller(chat=chat)
        async with stage.serving(TOML, serve='archive = "archive"') as server:
            await server.start(controller.start_of("r1"))
            await server.start(controller.start_of("a/b", generation=2))
            await controller.until(4)

    stage.run(main)
    folders = sorted(path.name for path in root.iterdir())
    assert len(folders) == 2 and "r1" in folders and all("/" not in name for name in folders)
    for folder in root.iterdir():
        trajectory = json.loads((folder / "trajectory.json").read_text())
        assert check(trajectory) == []
        assert [step["source"] for step in trajectory["steps"]] == ["user", "agent", "agent"]
        assert trajectory["extra"]["osmosis"]["reward"] == 1.0
        diagnostics = json.loads((folder / "diagnostics.json").read_text())
        assert (diagnostics["status"], diagnostics["reward"], diagnostics["model_calls"]) == ("scored", 1.0, 2)
        assert (folder / "artifacts" / "note.txt").read_text() == "hello"


def test_a_failed_rollout_is_archived_too(stage: Any) -> None:
    async def main() -> None:
        controller = await stage.controller(chat=lambda seen: "drop")
        async with stage.serving(serve='archive = "archive"') as server:
            await server.start(controller.start_of("r1"))
            await controller.until(2)

    stage.run(main)
    diagnostics = json.loads((stage.folder / "archive" / "r1" / "diagnostics.json").read_text())
    assert diagnostics["status"] == "failed" and diagnostics["failure"]["boundary"] == "model"


def test_attempts_of_one_id_are_kept_apart(stage: Any) -> None:
    """With `dedupe = "run"`, two that play at once leave two folders, two event logs, and each its own files."""
    stage.write("code.py", TOOL)
    told = iter(["first", "second"])

    def chat(seen: Any) -> Any:
        if seen.body["messages"][-1]["role"] == "tool":
            return asyncio.sleep(0.1, "4")
        call = {"name": "note", "arguments": json.dumps({"text": next(told)})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}

    async def main() -> None:
        controller = await stage.controller(chat=chat)
        opening = Opening(events=stage.folder / "events")
        async with stage.serving(TOML, serve='archive = "archive"\ndedupe = "run"', opening=opening) as server:
            for _ in range(2):
                assert (await server.start(controller.start_of("r"))).status == 202
            await server.quiet()
            assert len(controller.acked) == 4 and {seen.body["rollout_id"] for seen in controller.acked} == {"r"}

    stage.run(main)
    folders = list((stage.folder / "archive").iterdir())
    assert len(folders) == 2 and all(folder.name.startswith("r~") for folder in folders)
    assert {(folder / "artifacts" / "note.txt").read_text() for folder in folders} == {"first", "second"}
    for folder in folders:
        diagnostics = json.loads((folder / "diagnostics.json").read_text())
        assert diagnostics["rollout_id"] == "r" and folder.name == f"r~{diagnostics['attempt_id'][-8:]}"
    logs = [path.read_text().splitlines() for path in (stage.folder / "events").rglob("*.jsonl")]
    assert len(logs) == 2
    for lines in logs:
        events = [json.loads(line) for line in lines]
        assert len({event["rollout_id"] for event in events}) == 1
        assert [event["event"] for event in events].count("rollout_started") == 1
