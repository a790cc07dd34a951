"""When a report comes: a slow grader lets the completion be acknowledged long before there is a verdict."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from runner.records.rollout import Outcome, RolloutRequest, Sample
from runner.serve.archive.archive import Archive
from runner.serve.archive.archiving import Archiving
from runner.serve.delivery.posting import Posted
from runner.serve.dialects.single_sample import SingleSample
from runner.serve.played import Played

BODY = {
    "rollout_id": "r",
    "initial_messages": [{"role": "user", "content": "2+2?"}],
    "chat_completions_url": "http://trainer/v1",
    "completion_callback_url": "http://trainer/completion",
    "grader_callback_url": "http://trainer/grader",
}


def posted(attempt_id: str, channel: str, *tokens: int) -> Posted:
    calls = [{"prompt_tokens": 9, "completion_token_ids": [each]} for each in tokens]
    report = json.dumps({"trajectory": {"samples": {"main": {"llm_call_metrics": calls}}}}).encode() if tokens else b""
    return Posted(attempt_id, "r", channel, "http://trainer:80", 1, 200, "", 0.01, "acknowledged", report)


def trajectory(folder: Path, *said: Any) -> str:
    """What is archived after the posts before the verdict (None) and those after it."""

    async def test() -> None:
        archiving = Archiving(Archive(folder, "osmosis-run", "1"), ())
        start = SingleSample().parse(BODY, "ours")
        messages = ({"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"})
        request = RolloutRequest("r", messages[:1])
        sample = Sample(messages, ({"turn": 0, "usage": None},), (), {}, {})
        outcome = Outcome(request, "scored", "answered", reward=1.0, sample=sample)
        for each in said:
            if each is None:
                archiving.ended(Played("a", SingleSample(), start, request, 0.0), outcome)
            else:
                archiving.posted(each)
        await archiving.aclose()

    asyncio.run(test())
    return (folder / "r" / "trajectory.json").read_text()


def test_a_report_that_comes_before_the_verdict_is_kept(tmp_path: Path) -> None:
    text = trajectory(tmp_path, posted("a", "completion", 71), None, posted("a", "grader"))
    assert json.loads(text)["steps"][1]["metrics"]["completion_token_ids"] == [71]


def test_a_later_report_replaces_an_early_one_and_others_are_not_ours(tmp_path: Path) -> None:
    early = posted("a", "completion", 71), posted("b", "completion", 5)
    text = trajectory(tmp_path, *early, None, posted("a", "grader", 72))
    assert json.loads(text)["steps"][1]["metrics"]["completion_token_ids"] == [72]
