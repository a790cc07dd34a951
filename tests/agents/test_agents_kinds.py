"""Every kind of agent in `eval` and `serve`: limits, outcomes, records, token ids and parity as the built-in one's."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("strands")

from runner.build.plan import build
from runner.config.layers import Override
from runner.config.load import load
from runner.records.completion import Usage
from runner.records.message import tool_calls_of
from runner.simulate.starts import AGENT_LOOP, DIALECTS

CODE = '''
from runner import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext, OsmosisRolloutModel, RolloutAgentLoop
from runner.records.message import tool_calls_of
from strands import Agent


class Settings(AgentWorkflowConfig):
    word: str = "none"
    steps: int = 1


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def until_done(ctx):
    messages = list(ctx.prompt)
    while True:
        messages.append((await ctx.chat(messages)).message)
        calls = tool_calls_of(messages[-1])
        if not calls:
            return messages
        messages += await ctx.call_tools(calls)


class Workflow(AgentWorkflow[Settings]):
    async def run(self, ctx):
        return await until_done(ctx)


async def plain(ctx: AgentWorkflowContext[Settings]):
    return await until_done(ctx)


class Loop(RolloutAgentLoop):
    name = "loop"

    def __init__(self, word="none", steps=1):
        self.word, self.steps = word, steps

    def get_tools(self, request):
        return request.file_tools

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        while True:
            result = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(result.message)
            if not result.has_tool_calls:
                return ctx.complete(messages, finish_reason=result.finish_reason)
            messages += await ctx.call_tools(result.tool_calls)


def factory(config: Settings):
    return Agent(model=OsmosisRolloutModel(params={"top_p": 0.5}), callback_handler=None)


class Says(AgentWorkflow[Settings]):
    async def run(self, ctx):
        await ctx.chat([*ctx.prompt, {"role": "user", "content": f"{ctx.config.word} {ctx.config.steps}"}])


async def says(ctx: AgentWorkflowContext[Settings]):
    await Says.run(None, ctx)


class SaysLoop(Loop):
    async def run(self, ctx):
        said = {"role": "user", "content": f"{self.word} {self.steps}"}
        messages = [*ctx.request.messages, said]
        return ctx.complete([*messages, (await ctx.chat(messages)).message])


def says_agent(config: Settings):
    prompt = f"{config.word} {config.steps}"
    return Agent(model=OsmosisRolloutModel(), system_prompt=prompt, callback_handler=None)
'''
KINDS = {
    "tools": "tools",
    "strands": "strands",
    "factory": "./kinds.py:factory",
    "workflow": "./kinds.py:Workflow",
    "loop": "./kinds.py:Loop",
    "plain": "./kinds.py:plain",
}
TOML = """
[tools.add]
call = "./kinds.py:add"
[graders.answer]
kind = "exact"
[sampling]
temperature = 0.25
[dataset]
path = "rows.jsonl"
"""
CALL = {"a": 2, "b": 3}
ROWS = [{"user_prompt": "2+3?", "ground_truth": "5"}, {"user_prompt": "2+3, in words?", "ground_truth": "five"}]


def project_of(project: Any) -> None:
    project.write("kinds.py", CODE)
    project.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))


def plainly(messages: Any) -> list[tuple[Any, ...]]:
    """What was said, without what a kind of agent may add to a tool message."""
    return [
        (
            message["role"],
            message.get("content") or "",
            [(call.id, call.name, call.arguments) for call in tool_calls_of(message)],
        )
        for message in messages
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_in_eval_it_is_recorded_as_the_built_in_one(project: Any, kind: str) -> None:
    project_of(project)
    ids = {"token_ids": [1, 2], "prompt_token_ids": [3], "logprobs": [-0.5, -0.25], "usage": Usage(10, 5)}
    first = project.says(None, ("add", json.dumps(CALL)), ("divide", "{}"), **ids)
    model = project.Says([first, project.says("5", **ids)])
    outcome = project.play(TOML, workflow=f'agent = "{KINDS[kind]}"', row=ROWS[0], model=model)
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", "final_answer", 1.0), outcome.failure
    said = plainly(outcome.sample.messages)
    assert [role for role, *_ in said] == ["user", "assistant", "tool", "tool", "assistant"]
    assert said[1][2] == [("c0", "add", json.dumps(CALL)), ("c1", "divide", "{}")]
    assert said[2][1] == "5"
    assert "divide" in said[3][1]  # an agent that may have tools of its own answers in its own words
    assert sorted((span["name"], span["status"]) for span in outcome.sample.tool_spans) == [
        ("add", "ok"), ("divide", "bad_call")
    ]  # fmt: skip
    for call in outcome.sample.calls:
        assert (call["token_ids"], call["prompt_token_ids"], call["logprobs"]) == ([1, 2], [3], [-0.5, -0.25])
    assert outcome.usage.total_tokens == 30
    assert outcome.sample.metrics["turns"] == 2
    assert [tools for _, tools, _ in model.asked] == [["add"], ["add"]]
    assert {how.temperature for *_, how in model.asked} == {0.25}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("turns = 1", "max_turns"),
        ("tool_calls = 1", "max_tool_calls"),
        ("total_tokens = 20", "max_total_tokens"),
        ("malformed_calls = 1", "malformed_calls"),
    ],
)
def test_a_limit_ends_it_in_eval_and_in_serve(
    project: Any, stage: Any, wire: Any, kind: str, limit: str, reason: str
) -> None:
    """The policy never stops calling; what it had said until then is graded."""
    project_of(project)
    toml, workflow = f"{TOML}[limits]\n{limit}\n", f'agent = "{KINDS[kind]}"'
    name = "divide" if reason == "malformed_calls" else "add"
    asks = project.says(None, (name, json.dumps(CALL)))
    outcome = project.play(toml, asks, workflow=workflow, row=ROWS[0])
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", reason, 0.0), outcome.failure
    model = wire.Says(lambda messages: {**wire.calls((name, CALL)), "usage": {}})
    histories = wire.played(stage, model, workflow=workflow, toml=toml, label="5", metadata=ROWS[0])
    for history in histories:
        assert (history.verdict.status, history.verdict.reward) == ("success", 0.0), (kind, history.verdict)
        if history.dialect == AGENT_LOOP:
            assert history.verdict.stop_reason == {"max_total_tokens": "max_tokens"}.get(reason, reason)


@pytest.mark.parametrize("kind", KINDS)
def test_time_ends_it(project: Any, stage: Any, wire: Any, kind: str) -> None:
    project_of(project)
    toml, workflow = f'{TOML}[limits]\ntime = "150ms"\n', f'agent = "{KINDS[kind]}"'

    async def never(*_: Any) -> Any:
        import asyncio

        await asyncio.sleep(30)

    outcome = project.play(toml, never, workflow=workflow, row=ROWS[0])
    assert (outcome.status, outcome.stop_reason) == ("failed", "rollout_timeout")
    histories = wire.played(stage, wire.Says(lambda messages: never()), workflow=workflow, toml=toml, label="5")
    assert [history.verdict.status for history in histories] == ["failure"] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_fails_is_nobody_elses_fault(project: Any, kind: str) -> None:
    from runner.records.failure import ModelUnavailable

    project_of(project)
    outcome = project.play(TOML, ModelUnavailable("no route"), workflow=f'agent = "{KINDS[kind]}"', row=ROWS[0])
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "model_unavailable", "model")


@pytest.mark.parametrize("kind", KINDS)
def test_eval_and_serve_say_the_same(project: Any, stage: Any, wire: Any, kind: str) -> None:
    project_of(project)
    workflow = f'agent = "{KINDS[kind]}"'
    compared = wire.compared(stage, wire.uses("add", CALL, "5"), workflow=workflow, toml=TOML, most=2)
    assert [row.differences for row in compared] == [()] * 6
    assert {row.summary for row in compared} == {
        "scored, reward 1, 2 turns, final_answer", "scored, reward 0, 2 turns, final_answer"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "workflow", "answer", "ended"),
    [
        ("[limits]\ntotal_tokens = 5\n", "", "5", "max_total_tokens"),
        ("", 'stop_when = ["tool:add"]', "5", "finish_tool"),
        ("", "", "", "empty_answer"),
    ],
)
def test_parity_knows_the_words_of_each_dialect(
    project: Any, stage: Any, wire: Any, more: str, workflow: str, answer: str, ended: str
) -> None:
    project_of(project)
    model = wire.uses("add", CALL, answer)
    compared = wire.compared(stage, model, workflow=f'agent = "tools"\n{workflow}', toml=TOML + more)
    assert [row.differences for row in compared] == [()] * 3
    assert all(row.summary.endswith(ended) for row in compared)


@pytest.mark.parametrize("kind", KINDS)
def test_token_ids_reach_the_archive_of_a_server(project: Any, stage: Any, wire: Any, kind: str) -> None:
    project_of(project)
    histories = wire.played(
        stage, wire.uses("add", CALL, "5"), workflow=f'agent = "{KINDS[kind]}"', toml=TOML,
        serve='archive = "archive"', token_ids=True, label="5", metadata=ROWS[0],
    )  # fmt: skip
    assert {(history.verdict.status, history.verdict.reward) for history in histories} == {("success", 1.0)}
    documents = [json.loads(path.read_text()) for path in (stage.folder / "archive").rglob("*trajectory*.json")]
    assert len(documents) == len(DIALECTS)
    for document in documents:
        asked = [step for step in document["steps"] if step["source"] == "agent"]
        assert len(asked) == 2
        assert all(step["metrics"]["completion_token_ids"] for step in asked)


# -- the typed config


@pytest.mark.parametrize("agent", ["Says", "says", "SaysLoop", "says_agent"])
def test_config_from_the_command_line_is_typed(project: Any, agent: str) -> None:
    project_of(project)
    head = f'[workflow]\nname = "test"\nagent = "./kinds.py:{agent}"\nconfig = {{ word = "file", steps = 2 }}\n'
    model = (
        '[model]\nid = "x"\nprovider = "scripted"\n[[model.rules]]\nreply = "{{ messages[0].content }} {{ last }}"\n'
    )
    path = project.write("workflow.toml", head + model + '[graders.own]\nkind = "contains"\nexpect = "cli 3"\n')
    found = build(
        load(path, [Override.from_set("workflow.config.word=cli"), Override.from_set("workflow.config.steps=3")])
    )

    async def main() -> Any:
        async with found.open() as live:
            return await project.rollout(live, ROWS[0])

    import asyncio

    outcome = asyncio.run(main())
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.sample.messages


def test_a_config_from_the_command_line_that_does_not_fit(project: Any) -> None:
    project_of(project)
    project.build("", workflow='agent = "./kinds.py:Says"')
    command = [sys.executable, "-m", "runner.cli.main", "validate", "--set", "workflow.config.steps=many"]
    ended = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    said = ended.stdout + ended.stderr
    assert "`steps` of the workflow's config" in said
    assert "--set workflow.config.steps=many" in said
