"""`build` and `Plan`: what a plan is made of, what its facts count, and how it opens."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.build.plan import Plan, build
from runner.config.load import load
from runner.datasets.dataset import DatasetError, Row
from runner.diag.diagnostic import ConfigError
from runner.runtime.rollout import run_rollout

SCRIPTED = 'provider = "scripted"\n[[model.rules]]\nreply = "4"'
REPLAY = 'provider = "replay"\nrecording = "r.jsonl"'

FILE = """
[workflow]
name = "test"
user = "{{ row.question }}"

[model]
id = "x"
provider = "scripted"
[[model.rules]]
reply = "4"

[tools.find]
call = "./tools.py:find"

[graders.mine]
kind = "python"
call = "./graders.py:mine"

[eval]
concurrency = 4
"""


class Site:
    """A folder with a workflow, a tool and a grader."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("tools.py", "def find(key: str) -> str:\n    return key\n")
        self.write("graders.py", "def mine(solution_str, ground_truth, extra_info):\n    return 1.0\n")
        self.write("workflow.toml", FILE)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(textwrap.dedent(text))

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def plan(self, environ: Mapping[str, str] = os.environ) -> Plan:
        return build(load(self.folder / "workflow.toml", environ=environ))

    def changes(self, name: str, old: str, new: str) -> set[str]:
        """Which digests an edit changes."""
        before = self.plan()
        self.edit(name, old, new)
        after = self.plan()
        return {part for part in ("result", "grade") if before.digests[part] != after.digests[part]}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new", "changed"),
    [
        ("tools.py", "return key", "return key + key", {"result"}),
        ("graders.py", "return 1.0", "return 0.5", {"grade"}),
        ("workflow.toml", 'reply = "4"', 'reply = "5"', {"result"}),
        ("workflow.toml", "{{ row.question }}", "{{ row.question }}!", {"result"}),
        ("workflow.toml", "[eval]", "[reward]\nrange = [0.0, 0.5]\n[eval]", {"grade"}),
        ("workflow.toml", "[eval]", '[limits]\non_limit = "ungraded"\n[eval]', {"grade"}),
        ("workflow.toml", "[eval]", "[limits]\nturns = 2\n[eval]", {"result"}),
        ("workflow.toml", "concurrency = 4", "concurrency = 8", set()),
        ("workflow.toml", "[eval]", '[limits]\ntime = "1s"\n[eval]', set()),
        ("workflow.toml", 'id = "x"', 'id = "x"\nconcurrency = 3', set()),
        ("workflow.toml", "[eval]", "# a comment\n[eval]", set()),
    ],
)
def test_what_a_change_costs(site: Site, name: str, old: str, new: str, changed: set[str]) -> None:
    assert site.changes(name, old, new) == changed


def test_facts_name_the_files_of_user_code(site: Site) -> None:
    facts = site.plan().facts
    assert "tools.find.call (tools.py)" in facts["result"]
    assert "graders.mine.call (graders.py)" in facts["grade"]
    assert "tools.find.call (tools.py)" not in facts["grade"]
    json.dumps(facts)


def test_code_of_libraries_is_no_fact(site: Site) -> None:
    site.edit("workflow.toml", "./tools.py:find", "textwrap:dedent")
    assert not [key for key in site.plan().facts["result"] if "textwrap" in key]


def test_the_code_of_an_agent_and_of_a_resource_is_part_of_the_result(site: Site) -> None:
    site.write("agent.py", "async def run(ctx):\n    return None\n")
    site.write("res.py", "from contextlib import contextmanager\n@contextmanager\ndef opened():\n    yield 1\n")
    site.edit("workflow.toml", 'name = "test"', 'name = "test"\nagent = "./agent.py:run"')
    site.edit("workflow.toml", "[eval]", '[resources.db]\nopen = "./res.py:opened"\n[eval]')
    assert site.changes("agent.py", "return None", "return []") == {"result"}
    assert site.changes("res.py", "yield 1", "yield 2") == {"result"}


def test_what_a_recording_holds_is_part_of_the_result(site: Site) -> None:
    site.edit("workflow.toml", SCRIPTED, REPLAY)
    site.write("r.jsonl", "{}\n")
    assert any(key.startswith("model.recording (r.jsonl)") for key in site.plan().facts["result"])
    assert site.changes("r.jsonl", "{}\n", "{}\n{}\n") == {"result"}


def test_a_roles_recording_is_part_of_the_grade(site: Site) -> None:
    site.write("r.jsonl", "{}\n")
    site.edit("workflow.toml", "[eval]", '[roles.judge]\nprovider = "replay"\nrecording = "r.jsonl"\n[eval]')
    assert site.changes("r.jsonl", "{}\n", "{}\n{}\n") == {"grade"}


def test_secrets_are_in_no_fact(site: Site) -> None:
    site.edit(
        "workflow.toml",
        SCRIPTED,
        'provider = "openai"\nbase_url = "http://localhost:1/v1"\napi_key = { env = "TEST_KEY" }\n'
        'headers = { "x-key" = { env = "TEST_KEY" } }\n[secrets]\nrequired = ["TEST_KEY"]',
    )
    plan = site.plan({**os.environ, "TEST_KEY": "hush-hush"})
    assert "hush-hush" not in json.dumps(plan.facts)
    assert "hush-hush" not in repr(plan.config)


def test_the_environment_is_set_before_user_code_is_imported_and_overrides_nothing(site: Site) -> None:
    seen = "import os\nSEEN = (os.environ['T_NEW'], os.environ['T_OLD'])\n"
    site.write("tools.py", seen + "def find() -> str:\n    return ' '.join(SEEN)\n")
    site.edit("workflow.toml", "[eval]", '[env]\nT_NEW = "ours"\nT_OLD = "ours"\n[eval]')
    code = (
        "import sys; from pathlib import Path\n"
        "from runner.build.plan import build; from runner.config.load import load\n"
        "plan = build(load(Path(sys.argv[1])))\n"
        "print(plan.tools['find']._function())"
    )
    environ = {**os.environ, "T_OLD": "theirs"}
    environ.pop("T_NEW", None)
    ran = subprocess.run(
        [sys.executable, "-c", code, str(site.folder / "workflow.toml")],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == ("ours theirs\n", "")


def test_every_finding_at_once(site: Site) -> None:
    site.edit("workflow.toml", "./tools.py:find", "./tools.py:fnd")
    site.edit("workflow.toml", "./graders.py:mine", "./nothing.py:mine")
    with pytest.raises(ConfigError) as caught:
        site.plan()
    assert len(caught.value.report) == 2


def test_requests_of_a_row(site: Site) -> None:
    plan = site.plan()
    row = Row(3, "r3", {"question": "2+2?", "ground_truth": "4"}, "d")
    first, second = plan.request(row, 0), plan.request(row, 1)
    assert first.prompt == ({"role": "user", "content": "2+2?"},)
    assert (first.label, first.row_index, first.row_id, first.attempt) == ("4", 3, "r3", 0)
    assert first.rollout_id != second.rollout_id
    assert first.prompt is second.prompt


def test_another_row_in_the_same_place_is_another_row(site: Site) -> None:
    plan = site.plan()
    for question in ("a", "b"):
        request = plan.request(Row(0, "r0", {"question": question}, question), 0)
        assert request.prompt[0]["content"] == question


def test_a_row_that_lacks_a_column(site: Site) -> None:
    with pytest.raises(DatasetError, match="question"):
        site.plan().request(Row(0, "r0", {"user_prompt": "a"}, "d"), 0)


def test_a_file_without_a_model_cannot_open(site: Site) -> None:
    site.edit("workflow.toml", '[model]\nid = "x"\n' + SCRIPTED, "")
    plan = site.plan()

    async def main() -> None:
        async with plan.open():
            pass

    with pytest.raises(ConfigError) as caught:
        asyncio.run(main())
    assert "no [model]" in next(iter(caught.value.report)).message


class Bare:
    """A model without anything but the protocol."""

    def __init__(self) -> None:
        self.closed = 0

    async def complete(self, messages: Any, tools: Any, sampling: Any, caller: Any) -> Any:
        from runner.records.completion import Completion

        return Completion({"role": "assistant", "content": caller.rollout_id})

    async def aclose(self) -> None:
        self.closed += 1


def test_a_model_is_closed_once_whatever_happens(site: Site) -> None:
    plan, model = site.plan(), Bare()

    async def main(fails: bool) -> None:
        async with plan.open(model=model):
            if fails:
                raise ArithmeticError

    asyncio.run(main(False))
    assert model.closed == 1
    with pytest.raises(ArithmeticError):
        asyncio.run(main(True))
    assert model.closed == 2


def test_a_recorded_run_can_be_replayed(site: Site) -> None:
    path = site.folder / "r.jsonl"
    row = Row(0, "r0", {"question": "2+2?", "ground_truth": "4"}, "d")

    async def main(plan: Plan, record: Path | None) -> Any:
        async with plan.open(record=record) as live:
            return await run_rollout(live, plan.request(row, 0))

    first = asyncio.run(main(site.plan(), path))
    site.edit("workflow.toml", SCRIPTED, REPLAY)
    again = asyncio.run(main(site.plan(), None))
    assert (again.status, again.reward) == ("scored", 1.0)
    assert again.sample.messages == first.sample.messages
    missing = Row(1, "r1", {"question": "3+3?"}, "d")

    async def miss(plan: Plan) -> Any:
        async with plan.open() as live:
            return await run_rollout(live, plan.request(missing, 0))

    outcome = asyncio.run(miss(site.plan()))
    assert (outcome.status, outcome.stop_reason) == ("failed", "replay_miss")


def test_a_plan_can_be_opened_in_loop_after_loop(site: Site) -> None:
    plan = site.plan()
    row = Row(0, "r0", {"question": "2+2?", "ground_truth": "4"}, "d")

    async def main() -> Any:
        async with plan.open() as live:
            return await run_rollout(live, plan.request(row, 0))

    assert [asyncio.run(main()).reward for _ in range(3)] == [1.0] * 3
