"""`stream = true` and `stream = false`, from the command line to the journal: the same record, token ids included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ANSWER = '''
def answer(request):
    """Thinks, calls two tools at once, then answers with what they said."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if results:
        assert not any("reasoning_content" in message for message in request["messages"])
        return {"content": f"The sums are {' and '.join(results)}.", "reasoning_content": "Both are in."}
    call = lambda a: {"function": {"name": "add", "arguments": '{"a": %d, "b": 1}' % a}}
    return {"content": None, "reasoning_content": "I need two sums.", "tool_calls": [call(1), call(2)]}
'''

TOOLS = '''
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b
'''

FILE = """
schema = 1
[workflow]
name = "parity"
user = "{{ row.question }}"
[model]
id               = "openai/m"
return_token_ids = true
stream           = STREAM
[tools.add]
call = "./tools.py:add"
[graders.answer]
kind   = "contains"
expect = "2 and 3"
[dataset]
path = "rows.jsonl"
[eval]
concurrency = 1
"""

PASSING = {"latency", "timing", "rollout_id", "started", "ended", "seconds", "digests", "created", "start", "end", "id"}
"""What differs between any two runs: times, and the ids that a server gives."""


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in PASSING}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def run(folder: Path, stream: str) -> list[dict[str, Any]]:
    folder.mkdir()
    (folder / "answer.py").write_text(ANSWER)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "workflow.toml").write_text(FILE.replace("STREAM", stream))
    (folder / "rows.jsonl").write_text('{"question": "What is 1 + 1?"}\n{"question": "Was ist 2 + 1? ☃"}\n')
    command = [
        sys.executable,
        "-m",
        "runner.models.double",
        "--port",
        "0",
        "--answer",
        "./answer.py:answer",
        "--token-ids",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as double:
        try:
            assert double.stdout is not None
            url = json.loads(double.stdout.readline())["base_url"]
            script = str(Path(sys.executable).parent / "osmosis-run")
            words = [script, "eval", "--set", f"model.base_url={url}", "--json"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
        finally:
            double.terminate()
    assert done.returncode == 0, done.stderr
    lines = (folder / "runs" / "parity" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if '"rollout/1"' in line]


def test_a_streamed_run_has_the_same_records(tmp_path: Path) -> None:
    whole, streamed = run(tmp_path / "whole", "false"), run(tmp_path / "streamed", "true")
    assert len(whole) == len(streamed) == 2
    assert without_times(streamed) == without_times(whole)
    for record in streamed:
        assert (record["outcome"], record["reward"]) == ("scored", 1.0)
        first, last = record["calls"]
        assert (first["reasoning"], last["reasoning"]) == ("I need two sums.", "Both are in.")
        for made in (first, last):
            assert len(made["prompt_token_ids"]) == made["usage"]["input_tokens"] > 0
            assert len(made["token_ids"]) == len(made["logprobs"]["content"]) == made["usage"]["output_tokens"] > 0
        assert not any("reasoning" in key for message in record["messages"] for key in message)
        called = next(message for message in record["messages"] if message.get("tool_calls"))
        assert (called["content"], len(called["tool_calls"])) == (None, 2)
