"""A rollout that had no fair chance failed, at the boundary where it broke, and never has a reward."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.models.double import Double
from runner.models.double_faults import Fault
from runner.records.failure import ModelGarbled, ModelRefused, ModelUnavailable

EXACT = '[graders.answer]\nkind = "exact"\n'
AGENT = 'agent = "./agent.py:run"'


@pytest.mark.parametrize(
    ("error", "boundary", "kind"),
    [
        (ModelUnavailable("no route"), "model", "model_unavailable"),
        (ModelRefused("bad key"), "model", "model_refused"),
        (ModelGarbled("not JSON"), "model", "model_garbled"),
        (KeyError("choices"), "model", "model_crashed"),
        (SystemExit(2), "model", "model_crashed"),
        (asyncio.CancelledError(), "model", "model_crashed"),
    ],
)
def test_a_model_that_gives_no_answer(project: Any, error: BaseException, boundary: str, kind: str) -> None:
    outcome = project.play(EXACT, error)
    assert (outcome.status, outcome.stop_reason, outcome.failure.kind) == ("failed", kind, kind)
    assert outcome.failure.boundary == boundary
    assert outcome.sample.messages == ({"role": "user", "content": "2+2?"},)
    assert outcome.sample.calls[0]["error"]["kind"] == kind


OVER_HTTP = """
[workflow]
name = "test"
{workflow}
[model]
id = "double"
provider = "openai"
base_url = "BASE_URL"
timeout = "300ms"
retries = { attempts = 2, max_wait = "10ms" }
"""


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("hang", "model_unavailable"),
        ("reset", "model_unavailable"),
        ("cut", "model_unavailable"),
        ("429", "model_unavailable"),
        ("500", "model_unavailable"),
        ("503", "model_unavailable"),
        ("400", "model_refused"),
        ("401", "model_refused"),
        ("garbage", "model_garbled"),
        ("empty", "model_garbled"),
    ],
)
def test_a_model_server_that_misbehaves(project: Any, fault: str, kind: str) -> None:
    async def main() -> Any:
        async with Double(lambda asked: "4", faults=[Fault(fault, 1.0)]) as double:
            plan = project.build(EXACT, head=OVER_HTTP.replace("BASE_URL", double.base_url))
            async with plan.open() as live:
                return await project.rollout(live)

    outcome = asyncio.run(main())
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", kind, "model")


def test_a_model_server_that_answers(project: Any) -> None:
    async def main() -> Any:
        async with Double(lambda asked: "4") as double:
            plan = project.build(EXACT, head=OVER_HTTP.replace("BASE_URL", double.base_url))
            async with plan.open() as live:
                return await project.rollout(live)

    assert asyncio.run(main()).reward == 1.0


# ── tools ─────────────────────────────────────────────────────────────────────

TOOL = """
[tools.find]
call = "./tools.py:find"
{more}
[graders.answer]
kind = "exact"
"""


def test_a_tool_that_says_the_rollout_cannot_go_on(project: Any) -> None:
    project.write(
        "tools.py",
        """
        from runner.records.failure import ToolError

        def find() -> str:
            raise ToolError("the index is gone")
        """,
    )
    outcome = project.play(TOOL.format(more=""), project.says(None, ("find", "{}")), project.says("4"))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "tool_crashed", "tool")
    assert outcome.failure.where.endswith("tools.py:5 in find")
    assert "the index is gone" in outcome.failure.detail
    assert outcome.sample.tool_spans[0]["status"] == "error"


def test_a_row_that_a_tool_cannot_be_given(project: Any) -> None:
    project.write("tools.py", "def find(key: str) -> str:\n    return key\n")
    toml = TOOL.format(more='inject = { key = "row.key" }')
    outcome = project.play(toml, project.says(None, ("find", "{}")))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "injection", "tool")


def test_a_swallowed_tool_error_still_failed(project: Any) -> None:
    project.write("tools.py", "def find(key: str) -> str:\n    return key\n")
    project.write(
        "agent.py",
        """
        from runner.records.message import tool_calls_of

        async def run(ctx):
            answer = await ctx.chat(ctx.prompt)
            try:
                await ctx.call_tools(tool_calls_of(answer.message))
            except Exception:
                pass
            return [*ctx.prompt, {"role": "assistant", "content": "4"}]
        """,
    )
    toml = TOOL.format(more='inject = { key = "row.key" }')
    outcome = project.play(toml, project.says(None, ("find", "{}")), workflow=AGENT)
    assert (outcome.status, outcome.stop_reason) == ("failed", "injection")


def test_a_tool_that_raises_is_an_answer(project: Any) -> None:
    project.write("tools.py", "def find() -> str:\n    raise OSError('busy')\n")
    outcome = project.play(TOOL.format(more=""), project.says(None, ("find", "{}")), project.says("4"))
    assert (outcome.status, outcome.reward) == ("scored", 1.0)
