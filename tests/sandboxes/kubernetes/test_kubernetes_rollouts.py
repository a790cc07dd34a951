"""A workflow of a file with pods for its tools and its grader, run by the command line against the stand-in."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.sandboxes.kubernetes.api_server.server import serving

WORKFLOW = """
[workflow]
user = "{{ row.q }}"

[model]
provider = "scripted"
rules = [
  { when = "turn == 0", tool_calls = [{ name = "bash", arguments = { command = "cd sub; cat *; pwd; echo $WHO" } }] },
  { reply = "{{ messages[-1].content }}" },
]

[tools.bash]
builtin = "bash"

[sandboxes.work]
kind = "kubernetes"
image = "python:3.12-slim"
copy = { "repo" = "." }
setup = ["echo set up >> sub/seed"]
env = { WHO = { env = "TEST_WHO" } }
user = "1000"
max = 2

[sandboxes.work.kubernetes]
kubeconfig = "cluster.yaml"
labels = { team = "rl" }

[graders.shown]
kind = "contains"
expect = ["copied", "set up", "/workspace/sub", "s3cret"]

[graders.tests]
kind = "command"
command = "grep -q copied sub/seed"
patch = false

[dataset]
path = "rows.jsonl"
"""


def test_eval_with_pods(tmp_path: Path) -> None:
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    (tmp_path / "repo" / "sub" / "seed").write_text("copied\n")
    (tmp_path / "workflow.toml").write_text(WORKFLOW)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"q": f"question {n}"}) + "\n" for n in range(3)))

    async def main() -> None:
        async with serving() as (cluster, url):
            cluster.token = "from-the-file"  # noqa: S105
            config = {
                "current-context": "m",
                "contexts": [{"name": "m", "context": {"cluster": "c", "user": "u", "namespace": "rl"}}],
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": cluster.token}}],
            }
            (tmp_path / "cluster.yaml").write_text(json.dumps(config))
            program = str(Path(sys.executable).parent / "osmosis-run")
            pipe = asyncio.subprocess.PIPE
            env = {**os.environ, "TEST_WHO": "s3cret"}
            child = await asyncio.create_subprocess_exec(
                program, "eval", "-w", str(tmp_path), stdout=pipe, stderr=pipe, env=env, cwd=tmp_path
            )
            out, err = await asyncio.wait_for(child.communicate(), 90)
            assert child.returncode == 0, (out + err).decode()
            assert b"network plugin" in err
            summary = json.loads(next((tmp_path / "runs").glob("*/summary.json")).read_text())
            assert summary["outcomes"]["scored"] == 3 and summary["pass_at"]["1"]["value"] == 1.0, summary
            created = [line for line in cluster.requests if line.startswith("POST") and line.endswith("/rl/pods")]
            assert len(created) == 1 + 2 * 3 and not cluster.pods  # the probe's, then one for tools and a fresh one
            assert not [line for line in cluster.requests if "s3cret" in line]

    asyncio.run(main())
