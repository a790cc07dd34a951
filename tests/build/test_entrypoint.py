"""`agent = "./main.py"`: what an entrypoint holds is found, and what it does not is told with file and line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.build.check import check_build
from runner.build.plan import build
from runner.config.check import check
from runner.config.load import inspect_file, load
from runner.diag.diagnostic import ConfigError

HEAD = """from runner import (
    AgentWorkflow, AgentWorkflowConfig, ConcurrencyConfig, Grader, GraderConfig, RolloutAgentLoop)
"""
WORKFLOW = """
class MyConfig(AgentWorkflowConfig):
    name: str = "mine"
    steps: int = 3

settings = MyConfig(steps=5)

class Mine(AgentWorkflow[MyConfig]):
    async def run(self, ctx):
        assert ctx.config.steps == 5
        return [*ctx.prompt, (await ctx.chat(ctx.prompt)).message]
"""
GRADER = """
class JudgeConfig(GraderConfig):
    worth: float = 1.0

judging = JudgeConfig(worth=0.5, concurrency=ConcurrencyConfig(max_concurrent=1))

class Judge(Grader[JudgeConfig]):
    async def grade(self, ctx):
        ctx.set_reward(self.config.worth if ctx.label in ctx.output else 0.0)
"""
FILE = """
[workflow]
agent = "{agent}"
[model]
provider = "scripted"
rules = [{{ reply = "it is 4" }}]
[dataset]
path = "rows.jsonl"
"""


def project(folder: Path, code: str, *, agent: str = "./main.py", more: str = "") -> Path:
    (folder / "main.py").write_text(HEAD + code)
    (folder / "rows.jsonl").write_text('{"user_prompt": "2+2?", "ground_truth": "4"}\n')
    (folder / "workflow.toml").write_text(FILE.format(agent=agent) + more)
    return folder / "workflow.toml"


def findings(file: Path) -> list[tuple[str, str, str]]:
    loaded = inspect_file(file)
    check(loaded)
    check_build(loaded)
    return [(one.code, one.message, one.label) for one in loaded.report]


def test_the_one_workflow_plays_and_its_grader_grades(tmp_path: Path) -> None:
    file = project(tmp_path, WORKFLOW + GRADER)
    plan = build(load(file))
    assert plan.make_workflow().config.steps == 5
    assert [(part.name, type(part.grader).__name__) for part in plan.graders] == [("grader", "PythonGrader")]
    assert plan.required == {"grader"}
    assert plan.config.graders["grader"].call.text == "./main.py:Judge"  # type: ignore[union-attr]
    assert any("main.py" in key for key in plan.facts["result"]), "a changed entrypoint is another agent"

    def run(*words: str) -> str:
        script = str(Path(sys.executable).parent / "osmosis-run")
        done = subprocess.run([script, *words], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True)
        return done.stdout + done.stderr

    assert "0.500" in run("eval")
    told = run("validate")
    assert "1 grader" in told
    assert "`Judge` of main.py:20 grades, since `[graders]` is empty" in told
    assert "from main.py:20:1" in run("explain", "graders.grader.call")


def test_a_module_by_its_dotted_name(tmp_path: Path) -> None:
    package = tmp_path / "entry_of_test"
    package.mkdir()
    (package / "flow.py").write_text(HEAD + WORKFLOW)
    file = project(tmp_path, "", agent="entry_of_test.flow")
    plan = build(load(file))
    assert plan.name == tmp_path.name
    assert plan.graders == ()


def test_graders_of_the_file_come_first(tmp_path: Path) -> None:
    file = project(tmp_path, WORKFLOW + GRADER, more='[graders.same]\nkind = "exact"\n')
    assert [part.name for part in build(load(file)).graders] == ["same"]


@pytest.mark.parametrize(
    ("code", "message", "label"),
    [
        ("", "`main.py` holds no `AgentWorkflow`", "define a class below `AgentWorkflow` there, or import it"),
        (
            "class Half(AgentWorkflow):\n    pass\n",
            "`Half` ({main}:3) of `main.py` is abstract: it does not define `run`",
            "define it: `async def run(self, ctx)`",
        ),
        (
            WORKFLOW + "\nclass Other(Mine):\n    pass\n",
            "`main.py` holds 2 `AgentWorkflow` classes: `Mine` ({main}:10), `Other` ({main}:15)",
            'name one: `agent = "./main.py:Mine"`',
        ),
        (
            WORKFLOW + "other = MyConfig()\n",
            "`main.py` holds 2 `AgentWorkflowConfig` instances: `settings` ({main}:8), `other` ({main}:14)",
            "leave one in the entrypoint",
        ),
        (
            WORKFLOW + GRADER + "\nclass Second(Judge):\n    pass\n",
            "`main.py` holds 2 `Grader` classes: `Judge` ({main}:20), `Second` ({main}:24)",
            "leave one in the entrypoint, or name one in `[graders.NAME] call`",
        ),
        (
            "class Loop(RolloutAgentLoop):\n    name = 'l'\n    def get_tools(self, r):\n        return []\n"
            "    async def run(self, ctx):\n        pass\n\nloop = Loop()\n",
            "`main.py` holds no `AgentWorkflow`; it holds the agent loop `loop` ({main}:10)",
            'name one: `agent = "./main.py:loop"`',
        ),
    ],
)
def test_none_or_several_are_named_with_their_lines(code: str, message: str, label: str, tmp_path: Path) -> None:
    ((found, said, cure),) = findings(project(tmp_path, code))
    assert found == "unfit-code"
    assert said == message.replace("{main}", str(tmp_path / "main.py"))
    assert label in cure


def test_what_the_found_grader_cannot_do_is_told_at_its_class(tmp_path: Path) -> None:
    file = project(tmp_path, WORKFLOW + GRADER.replace("    async def grade", "    def grade"))
    with pytest.raises(ConfigError) as caught:
        build(load(file))
    (finding,) = caught.value.report
    assert str(finding.place).endswith("main.py:20:1")
    assert "`async def grade(self, ctx)`" in finding.message


@pytest.mark.parametrize("agent", ["main.py", "./main", "main", "planner.Planner", "./main.py:"])
def test_what_is_no_entrypoint_stays_a_finding_of_its_own(agent: str, tmp_path: Path) -> None:
    code, _, label = findings(project(tmp_path, WORKFLOW, agent=agent))[0]
    assert code in ("bad-reference", "unknown-kind")
    assert agent != "main.py" or label == "begin with `./`: `./main.py`"


def test_a_limit_of_the_config_holds(tmp_path: Path) -> None:
    import asyncio

    from runner.workflows.configs import AgentWorkflowConfig, ConcurrencyConfig
    from runner.workflows.custom import prepare_made
    from runner.workflows.workflow import AgentWorkflow

    running, most = [0], [0]

    class Slow(AgentWorkflow[AgentWorkflowConfig]):
        async def run(self, ctx: Any) -> None:
            running[0] += 1
            most[0] = max(most[0], running[0])
            await asyncio.sleep(0.01)
            running[0] -= 1

    async def play() -> None:
        prepared = prepare_made(Slow, AgentWorkflowConfig(concurrency=ConcurrencyConfig(max_concurrent=2)))
        await asyncio.gather(*(prepared().run(None) for _ in range(6)))  # type: ignore[arg-type]

    asyncio.run(play())
    assert most == [2]
