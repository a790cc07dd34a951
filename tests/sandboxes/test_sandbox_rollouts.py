"""Sandboxes in rollouts of a file: shared by one rollout, fresh for graders, and never a score when they are lost."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.build.live import Live
from runner.build.plan import build
from runner.config.load import load
from runner.datasets.dataset import Row
from runner.records.event import Event, Logged
from runner.records.rollout import Outcome
from runner.runtime.grading import grade_outcome
from runner.runtime.rollout import run_rollout
from tests.sandboxes.conftest import needs_bubblewrap

pytestmark = needs_bubblewrap

_HEAD = """
[workflow]
agent = "./agent.py:Agent"
user = "fix it"
[model]
provider = "scripted"
rules = [{ reply = "done" }]
"""

_AGENT = """
import asyncio, os, signal
from runner import AgentWorkflow, AgentWorkflowOutput
from runner.sandboxes.sandbox import Command

SEEN = []

def sh(text, **more):
    return Command(["/bin/sh", "-c", text], **more)

class Agent(AgentWorkflow):
    async def run(self, ctx):
        await ctx.chat(ctx.prompt)
        info = await globals()[ctx.metadata["do"]](ctx)
        return AgentWorkflowOutput(messages=[*ctx.prompt, {"role": "assistant", "content": "done"}], info=info or {})

async def nothing(ctx):
    assert not ctx.sandboxes["work"].started

async def shared(ctx):
    boxes = await asyncio.gather(*(ctx.sandboxes["work"].get() for _ in range(4)))
    assert all(box is boxes[0] for box in boxes)
    before = (await boxes[0].exec(sh("cat left 2>/dev/null; cat f; cat done"))).stdout.decode()
    await boxes[0].exec(sh("echo changed > f; echo x > left"))
    return {"before": before}

async def swallowed(ctx):
    box = await ctx.sandboxes["work"].get()
    inner = box._inner
    task = asyncio.ensure_future(box.exec(sh("sleep 60", timeout=90)))
    await asyncio.sleep(0.3)
    for process in inner._running:
        os.kill(process.pid, signal.SIGKILL)
    try:
        await task
    except Exception:
        pass  # a framework that carries on whatever happens

async def patched(ctx):
    box = await ctx.sandboxes["work"].get()
    git = "git -c user.name=a -c user.email=a "
    await box.exec(sh(f"{git} init -q; {git} add -A; {git} commit -qm base; " + ctx.metadata["edit"]))
    ran = await box.exec(sh(f"{git} add -A; {git} diff --cached --binary HEAD"))
    return {"patch": ran.stdout.decode()}
"""

_TESTS = """
import unittest
from calc import add
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(_AGENT)
    (tmp_path / "repos" / "calc" / "tests").mkdir(parents=True)
    (tmp_path / "repos" / "calc" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "repos" / "calc" / "tests" / "__init__.py").write_text("")
    (tmp_path / "repos" / "calc" / "tests" / "test_calc.py").write_text(_TESTS)
    (tmp_path / "repos" / "calc" / "f").write_text("original\n")
    return tmp_path


def play(project: Path, toml: str, work: Callable[[Live], Awaitable[None]]) -> None:
    (project / "workflow.toml").write_text(_HEAD + textwrap.dedent(toml))

    async def main() -> None:
        async with build(load(project / "workflow.toml")).open() as live:
            await work(live)

    asyncio.run(main())


async def rollout(live: Live, events: list[Event] | None = None, **row: Any) -> Outcome:
    request = live.plan.request(Row(0, "r0", {"repo": "calc", **row}, "digest"), 0)
    return await run_rollout(live, request, (lambda event: None) if events is None else events.append)


WORK = """
[sandboxes.work]
copy = { "repos/{{ row.repo }}" = "." }
setup = ["echo set up > done"]
"""


def test_one_sandbox_a_rollout_each_from_the_copy(project: Path) -> None:
    async def work(live: Live) -> None:
        events: list[Event] = []
        for _ in range(2):
            outcome = await rollout(live, events, do="shared")
            assert outcome.failure is None or outcome.failure.kind == "no_grader"
            assert outcome.sample.info["before"] == "original\nset up\n"
        assert [event.name for event in events if isinstance(event, Logged)] == ["sandbox_started"] * 2
        assert (project / "repos" / "calc" / "f").read_text() == "original\n"
        await rollout(live, do="nothing")

    play(project, WORK, work)


def test_with_the_scope_of_the_run_the_next_sees_what_was_left(project: Path) -> None:
    async def work(live: Live) -> None:
        assert (await rollout(live, do="shared")).sample.info["before"] == "original\n"
        assert (await rollout(live, do="shared")).sample.info["before"] == "x\nchanged\n"

    play(project, '[sandboxes.work]\nscope = "run"\ncopy = { "repos/calc" = "." }', work)


def test_a_sandbox_that_was_killed_fails_the_rollout_even_if_nobody_says_so(project: Path) -> None:
    async def work(live: Live) -> None:
        outcome = await rollout(live, do="swallowed")
        assert outcome.failure is not None and outcome.status == "failed"
        assert (outcome.failure.boundary, outcome.failure.kind) == ("sandbox", "sandbox_lost")
        assert "killed by signal 9" in outcome.failure.message and outcome.timing["total"] < 5

    play(project, WORK, work)


@pytest.mark.parametrize(
    ("toml", "row", "said"),
    [
        (WORK, {"repo": "no-such"}, "could not be given its copy"),
        (WORK, {"repo": "../../../../../../etc"}, "may not do that"),
        ('[sandboxes.work]\nsetup = ["echo no >&2; exit 3"]', {}, "`echo no >&2; exit 3` exited with 3: no"),
        ('[sandboxes.work]\nsetup = ["sleep 9"]\nsetup_time = "200ms"', {}, "did not end within 0.2 s"),
    ],
)
def test_what_cannot_be_prepared_is_a_failure_of_the_sandbox(
    project: Path, toml: str, row: dict[str, Any], said: str
) -> None:
    async def work(live: Live) -> None:
        outcome = await rollout(live, do="shared", **row)
        assert outcome.failure is not None and outcome.status == "failed"
        assert (outcome.failure.boundary, outcome.failure.kind) == ("sandbox", "sandbox_setup")
        assert said in outcome.failure.message

    play(project, toml, work)


def test_waiting_for_a_place_counts_as_the_rollouts_time(project: Path) -> None:
    async def work(live: Live) -> None:
        pool = live.sandboxes["work"]
        held = await pool.take("held", {"repo": "calc"})
        outcome = await rollout(live, do="shared")
        assert outcome.failure is not None and outcome.failure.kind == "rollout_timeout", outcome.failure
        pool.give_back(held)
        assert (await rollout(live, do="shared")).sample.info["before"]

    play(project, WORK + 'max = 1\n[limits]\ntime = "400ms"\n', work)


GRADED = (
    WORK
    + """
max = 1
[graders.tests]
kind = "command"
command = "python3 -m unittest -q tests.test_calc 2>&1"
protect = ["tests/**"]
timeout = "5s"
"""
)
FIX = "sed -i 's/a - b/a + b/' calc.py"


@pytest.mark.parametrize(
    ("edit", "reward"),
    [
        (FIX, 1.0),
        ("true", 0.0),
        ("echo > tests/test_calc.py", 0.0),
        ("rm -r tests; mkdir tests; touch tests/__init__.py", 0.0),
        ("rm -r tests; ln -s /usr tests", 0.0),
        (FIX + "; rm -r tests; ln -s /tmp tests", 1.0),
        (FIX + "; echo 'raise SystemExit(1)' > tests/sitecustomize.py; echo syntax error > tests/__init__.py", 1.0),
        (FIX + "; head -c 3000 /dev/urandom > new.bin; mkdir -p 'a b'; echo é > 'a b/ü'", 1.0),
    ],
)
def test_tests_run_on_a_fresh_copy_with_the_patch(project: Path, edit: str, reward: float) -> None:
    """With `max = 1`: the agent's sandbox has gone when the grader asks for its own."""

    async def work(live: Live) -> None:
        outcome = await rollout(live, do="patched", edit=edit)
        assert outcome.reward == reward, (outcome.failure, outcome.scores)
        again = await grade_outcome(live, outcome)
        assert again.reward == reward

    play(project, GRADED, work)


@pytest.mark.parametrize(
    ("change", "patch", "failure"),
    [
        ({}, "garbage\n", ("grader", "patch_failed")),
        ({}, None, ("grader", "no_patch")),
        ({"timeout": '"300ms"'}, "hang", ("grader", "grader_timeout")),
    ],
)
def test_what_cannot_be_graded_gets_no_reward(
    project: Path, change: dict[str, str], patch: str | None, failure: tuple[str, str]
) -> None:
    async def work(live: Live) -> None:
        edit = "echo 'while True: pass' > calc.py" if patch == "hang" else FIX
        outcome = await rollout(live, do="patched", edit=edit)
        if patch != "hang":
            info = {} if patch is None else {"patch": patch}
            outcome = await grade_outcome(live, replace(outcome, sample=replace(outcome.sample, info=info)))
        assert outcome.status == "ungraded" and outcome.reward is None and outcome.failure is not None
        assert (outcome.failure.boundary, outcome.failure.kind) == failure

    toml = GRADED
    for key, value in change.items():
        toml = toml.replace('timeout = "5s"', f"{key} = {value}")
    play(project, toml, work)


@pytest.mark.parametrize(
    ("score", "command", "value"),
    [
        ('{ regex = "(\\\\d+) of (\\\\d+)" }', "echo 1 of 2; echo 3 of 4; exit 1", 0.75),
        ('{ regex = "score: ([0-9.]+)" }', "echo score: 0.25", 0.25),
        ('{ regex = "score: ([0-9.]+)" }', "echo none", 0.0),
        ('{ regex = "(\\\\d+)/(\\\\d+)" }', "echo 1/0", 0.0),
        ('{ junit = "out/r.xml" }', "true", 0.0),
        ('{ junit = "out/r.xml" }', "cp junit.xml out/r.xml", 2 / 3),
        ('{ junit = "out/r.xml" }', "echo '<!DOCTYPE x><a/>' > out/r.xml", 0.0),
        ('"exit"', "exit {{ row.n }}", 0.0),
        ('"exit"', "[ $(cat f) = original ]", 1.0),
    ],
)
def test_how_the_end_becomes_a_score(project: Path, score: str, command: str, value: float) -> None:
    repo = project / "repos" / "calc"
    (repo / "out").mkdir()
    (repo / "out" / "r.xml").write_text("<testsuite><testcase name='old'/></testsuite>")
    (repo / "junit.xml").write_text(
        "<testsuites><testsuite><testcase name='a'/><testcase name='b'><failure/></testcase>"
        "<testcase name='c'><skipped/></testcase></testsuite><testsuite><testcase name='d'/></testsuite></testsuites>"
    )

    async def work(live: Live) -> None:
        outcome = await rollout(live, do="nothing", n=4)
        assert outcome.scores["it"].value == pytest.approx(value), outcome.scores

    toml = f'{WORK}[graders.it]\nkind = "command"\npatch = false\nscore = {score}\ncommand = {json.dumps(command)}\n'
    play(project, toml, work)
