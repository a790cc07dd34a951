"""The workload: rows that take two model calls, one tool call, one grader, and a line in the journal."""

from __future__ import annotations

import json
from pathlib import Path

WORKFLOW = """\
[workflow]
name = "bench"

[model]
id = "openai/bench"
base_url = "{url}"
timeout = "60s"
return_token_ids = false
concurrency = {in_flight}

[tools.add]
call = "./adding.py:add"

[graders.answer]
kind = "contains"

[eval]
concurrency = {in_flight}
max_failed = 0.0
"""

TOOL = '''\
async def add(a: int = 1, b: int = 1) -> int:
    """Add two numbers."""
    return a + b
'''


def write_workload(folder: Path, url: str, rows: int, in_flight: int) -> Path:
    """A workflow, its tool and its dataset in `folder`; gives the workflow's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adding.py").write_text(TOOL)
    with (folder / "rows.jsonl").open("w") as file:
        for number in range(rows):
            row = {"user_prompt": f"What is {number} plus 1?", "ground_truth": "2"}
            file.write(json.dumps(row) + "\n")
    workflow = folder / "workflow.toml"
    workflow.write_text(WORKFLOW.format(url=url, in_flight=in_flight))
    return workflow
