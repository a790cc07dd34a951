"""The seeds' own examples, unchanged: through the engine, and over HTTP in both generations that know them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")


BLOCKS = Path(__file__).parents[1] / "seeds" / "blocks"


def block(name: str) -> str:
    return (BLOCKS / f"{name}.py.txt").read_text(encoding="utf-8")


STRANDS, SEARCH = block("strands-integration/math"), block("strands-integration/search")
CONFIGURED = block("agent-workflow/tools")
TYPED = (
    block("agent-workflow/config")
    + """
        await ctx.chat([*ctx.prompt, {"role": "user", "content": str(max_iter)}], temperature=ctx.config.temperature)
"""
)
GRADED = '[graders.math]\nkind = "python"\ncall = "./agents.py:MathGrader"\n'
ROW = {"user_prompt": "6*7?", "ground_truth": "42"}


def test_the_complete_example(project: Any) -> None:
    project.write("agents.py", STRANDS)
    says = project.says
    model = project.Says([says("", ("calculator", '{"expression":"6*7"}')), says("It is 42")])
    outcome = project.play(GRADED, workflow='agent = "./agents.py:MathAgentWorkflow"', row=ROW, model=model)
    assert (outcome.status, outcome.reward, outcome.stop_reason) == ("scored", 1.0, "final_answer")
    assert [message["role"] for message in outcome.sample.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert outcome.sample.messages[0]["content"] == "You are a math assistant. Use the calculator tool."
    assert outcome.sample.messages[3] == {"role": "tool", "tool_call_id": "c0", "content": "42"}
    (first, tools, sampling), (second, *_) = model.asked
    assert first == list(outcome.sample.messages[:2])
    assert tools == ["calculator"]
    assert sampling.temperature == 1.0
    assert second == list(outcome.sample.messages[:4])
    assert second[2]["tool_calls"][0]["function"]["arguments"] == '{"expression":"6*7"}'  # to the letter
    assert [(span["name"], span["status"]) for span in outcome.sample.tool_spans] == [("calculator", "ok")]
    assert outcome.usage.total_tokens == 30
    assert outcome.sample.info == {"sample_id": "math-agent"}


@pytest.mark.parametrize(("code", "name"), [(SEARCH, "SearchWorkflow"), (CONFIGURED, "SearchWorkflow")])
def test_the_search_examples(project: Any, code: str, name: str) -> None:
    project.write("agents.py", code)
    says = project.says
    answers = says("Let me see.", ("search", '{"query": "x"}')), says("4")
    outcome = project.play(project_toml(), *answers, workflow=f'agent = "./agents.py:{name}"')
    assert (outcome.status, outcome.reward) == ("scored", 1.0)
    assert outcome.sample.messages[-2]["content"].lower().startswith("results for")


def project_toml() -> str:
    return '[graders.answer]\nkind = "exact"\n'


def test_the_config_example_is_filled_from_the_file(project: Any) -> None:
    project.write("agents.py", TYPED)
    model = project.Says([project.says("4")])
    agent = 'agent = "./agents.py:ConfigurableWorkflow"\nconfig = { max_iterations = 3 }'
    outcome = project.play(workflow=agent, model=model)
    assert outcome.reward == 1.0
    (messages, _, sampling) = model.asked[0]
    assert (messages[-1]["content"], sampling.temperature) == ("3", 0.7)


@pytest.mark.parametrize("generation", [2, 3])
def test_served(stage: Any, generation: int) -> None:
    """The controller sees one sample name in every chat call and in the callback, and the rewards are the grader's."""
    stage.write("agents.py", STRANDS)

    def chat(seen: Any) -> Any:
        if seen.body["messages"][-1]["role"] == "tool":
            return "It is 4"
        call = {"name": "calculator", "arguments": '{"expression": "2+2"}'}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}

    async def test() -> None:
        controller = await stage.controller(chat=chat)
        async with stage.serving(GRADED, workflow='agent = "./agents.py:MathAgentWorkflow"') as server:
            for number in range(4):
                await server.start(controller.start_of(f"r{number}", generation, label="4"))
            await controller.until(8)
            for number in range(4):
                assert controller.told(f"r{number}") == [("completion", "success", None), ("grader", "success", 1.0)]
        assert len(controller.chats) == 8
        bodies = [seen.body for seen in controller.callbacks if seen.channel == "grader"]
        assert {seen.headers["x-sample-id"] for seen in controller.chats} == {"math-agent"}
        assert all(
            seen.body["temperature"] == 1.0 and seen.body["model"] == "osmosis-rollout" for seen in controller.chats
        )
        for body in bodies:
            sample = body["sample"] if generation == 3 else body["samples"]["math-agent"]
            assert sample["messages"][0]["role"] == "system"

    stage.run(test)
