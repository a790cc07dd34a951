"""An agent loop in a workflow file: what it is handed, what becomes of what it does, and of what it does wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from runner.diag.diagnostic import ConfigError
from runner.records.event import Logged
from runner.records.failure import ModelGarbled, ModelRefused, ModelUnavailable, WorkflowError
from runner.runtime.offered import offered_to

HEAD = """
from __future__ import annotations
import asyncio, time
from runner import *

class Agent(RolloutAgentLoop):
    name = "agent"

    def get_tools(self, request):
        return [{"type": "function", "function": {"name": "add", "description": "d", "parameters": {"type": "object"}}}]

"""
GRADED = '[graders.answer]\nkind = "exact"\n'


def write(project: Any, body: str, head: str = HEAD) -> str:
    # A module is imported once: each gets a file of its own.
    name = f"server{len(list(project.folder.glob('server*')))}.py"
    project.write(name, head + "\n".join("    " + line for line in body.strip("\n").split("\n")) + "\n")
    return f'agent = "./{name}:Agent"'


def told(refused: Any) -> str:
    return "\n".join(f"{each.code}: {each.message} ({each.label})" for each in refused.value.report)


def play(project: Any, body: str, *answers: Any, toml: str = "", head: str = HEAD, **more: Any) -> Any:
    return project.play(toml, *(answers or (project.says("4"),)), workflow=write(project, body, head), **more)


ANSWERS = """
async def run(self, ctx):
    messages = list(ctx.request.messages)
    result = await ctx.chat(messages, **ctx.request.completion_params)
    messages.append(result.message)
    return ctx.complete(messages{more})
"""


def test_a_loop_sees_the_rollout_as_a_request(project: Any) -> None:
    body = """
async def run(self, ctx):
    r = ctx.request
    seen = [r.rollout_id, r.messages, r.completion_params, r.max_turns, r.max_tokens_total, r.metadata, r.api_key]
    ctx.log_event("seen", name=repr(seen), tools=[t["function"]["name"] for t in ctx.tools], on=ctx.debug_enabled)
    result = await ctx.chat(r.messages, **r.completion_params)
    assert (result.content, result.finish_reason, result.usage["total_tokens"]) == ("4", "stop", 15)
    assert (result.token_ids, result.logprobs, result.has_tool_calls, result.tool_calls) == ([7], [-0.5], False, [])
    return ctx.complete([*r.messages, result.message])
"""
    toml = """
[limits]
turns = 3
[sampling]
temperature = 0.5
stop = ["x"]
extra = { top_k = 5 }
[graders.answer]
kind = "exact"
"""
    events: list[Any] = []
    model = project.Says([project.says("4", token_ids=[7], logprobs=[-0.5])])
    row = {"question": "2+2?", "answer": "4"}
    flow = 'user = "{{ row.question }}"\nlabel = "{{ row.answer }}"\n' + write(project, body)
    outcome = project.play(toml, workflow=flow, row=row, events=events, model=model)
    assert (outcome.status, outcome.reward, outcome.ended) == ("scored", 1.0, "final_answer"), outcome.failure
    (logged,) = [event for event in events if isinstance(event, Logged)]
    assert logged.data == {
        "name": repr(
            [
                "test/r0/0",
                [{"role": "user", "content": "2+2?"}],
                {"temperature": 0.5, "stop": ["x"], "top_k": 5},
                3,
                8192,
                {"question": "2+2?", "answer": "4", "ground_truth": "4"},
                None,
            ]
        ),
        "tools": ["add"],
        "on": True,
    }
    ((_, tools, sampling),) = model.asked
    assert (tools, sampling.temperature, sampling.stop, sampling.extra) == (["add"], 0.5, ("x",), {"top_k": 5})
    assert outcome.sample.calls[0]["token_ids"] == [7]


def test_what_it_says_of_sampling_is_sent_and_the_rest_dropped_with_one_word(project: Any, caplog: Any) -> None:
    body = """
async def run(self, ctx):
    for _ in range(2):
        result = await ctx.chat(ctx.request.messages, temperature=0.1, top_p=0.2, max_tokens=9, stop="s", seed=3,
                                logprobs=True, tool_choice_zz="auto", model="other")
    return ctx.complete([result.message], reward=1)
"""
    model = project.Says([project.says("4")])
    with caplog.at_level(logging.WARNING):
        outcome = play(project, body, model=model)
    assert outcome.reward == 1.0
    how = model.asked[0][2]
    assert (how.temperature, how.top_p, how.max_tokens, how.stop, how.seed) == (0.1, 0.2, 9, ("s",), 3)
    assert how.extra == {"logprobs": True}
    assert sum("tool_choice_zz" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(
    ("more", "toml", "reward", "info"),
    [
        (", reward=0.25", "", 0.25, {"finish_reason": "stop", "agent_reward": 0.25}),
        (", reward=0.25", GRADED, 1.0, {"finish_reason": "stop", "agent_reward": 0.25}),
        (", reward=True", "", 1.0, {"finish_reason": "stop", "agent_reward": 1.0}),
        (', reward="0.5"', "", 0.5, {"finish_reason": "stop", "agent_reward": 0.5}),
        (", reward=7.0", "[reward]\nrange = [0.0, 1.0]\n", 1.0, {"finish_reason": "stop", "agent_reward": 7.0}),
        ("", GRADED, 1.0, {"finish_reason": "stop"}),
    ],
)
def test_graders_decide_and_without_any_the_agents_own_reward(
    project: Any, more: str, toml: str, reward: float, info: Any
) -> None:
    outcome = play(project, ANSWERS.replace("{more}", more), toml=toml)
    assert (outcome.status, outcome.reward, outcome.sample.info) == ("scored", reward, info), outcome.failure


def test_without_grader_and_reward_there_is_none(project: Any) -> None:
    outcome = play(project, ANSWERS.replace("{more}", ""))
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("ungraded", "no_grader", None)


@pytest.mark.parametrize("reward", ['float("nan")', 'float("inf")', '"high"', "[1]", "object()"])
def test_a_reward_that_is_no_number_fails_the_rollout(project: Any, reward: str) -> None:
    for toml in ("", GRADED):
        outcome = play(project, ANSWERS.replace("{more}", f", reward={reward}"), toml=toml)
        assert (outcome.status, outcome.stop_reason, outcome.reward) == ("failed", "bad_reward", None)
        assert "reward of `Agent`" in outcome.failure.message


@pytest.mark.parametrize(
    ("finish", "ended"),
    [("stop", "final_answer"), ("length", "max_tokens"), ("max_tokens", "max_total_tokens"),
     ("max_turns", "max_turns"), ("my_word", "my_word")],
)  # fmt: skip
def test_a_finish_reason_becomes_the_stop_reason(project: Any, finish: str, ended: str) -> None:
    outcome = play(project, ANSWERS.replace("{more}", f", finish_reason={finish!r}"), toml=GRADED)
    assert (outcome.status, outcome.stop_reason, outcome.ended) == ("scored", ended, ended)
    assert outcome.sample.info == {"finish_reason": finish}
    limited = play(
        project, ANSWERS.replace("{more}", f", finish_reason={finish!r}"), toml='[limits]\non_limit = "ungraded"\n'
    )
    assert (limited.status == "ungraded" and limited.failure is None) == (ended.startswith("max_"))


def test_an_error_is_a_failure_with_its_messages_and_metrics(project: Any) -> None:
    body = """
async def run(self, ctx):
    ctx.record_tool_call(2.5)
    ctx.record_tool_call()
    result = await ctx.chat(ctx.request.messages)
    return ctx.error("I give up", [*ctx.request.messages, result.message, {"role": "user", "content": "mine"}])
"""
    outcome = play(project, body, toml=GRADED)
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("failed", "agent_error", None)
    assert (outcome.failure.boundary, outcome.failure.message) == ("workflow", "I give up")
    assert outcome.sample.messages[-1] == {"role": "user", "content": "mine"}
    assert outcome.sample.metrics == {"turns": 1, "num_tool_calls": 2.0, "tool_latency_ms": 2.5}
    bare = body[: body.index(", [*ctx")] + ")\n"
    recorded = play(project, bare)
    assert [message["role"] for message in recorded.sample.messages] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("error", "caught", "status"),
    [
        (ModelUnavailable("connection refused"), "OsmosisTransportError", None),
        (ModelUnavailable("no answer within 3 s"), "OsmosisTimeoutError", None),
        (ModelUnavailable("down", status=503), "OsmosisServerError", 503),
        (ModelRefused("no such model", status=404), "OsmosisValidationError", 404),
        (ModelGarbled("not JSON", status=200), "OsmosisValidationError", 200),
    ],
)
def test_a_model_that_cannot_answer_is_an_exception_of_this_generation_and_nobody_elses_fault(
    project: Any, error: Exception, caught: str, status: int | None
) -> None:
    handled = f"""
async def run(self, ctx):
    try:
        await ctx.chat(ctx.request.messages)
    except {caught} as error:
        assert getattr(error, "status_code", None) == {status}
        result = await ctx.chat(ctx.request.messages)
    return ctx.complete([result.message], reward=1.0)
"""
    assert play(project, handled, error, project.says("4")).reward == 1.0
    uncaught = handled.replace(caught, "ZeroDivisionError")
    swallowed = handled.replace(caught, "Exception").replace("result = await", "return ctx.error('mine') or await", 2)
    swallowed = swallowed.replace("return ctx.complete", "result = None\n    return ctx.complete")
    for body in (uncaught, swallowed):
        outcome = play(project, body, error)
        assert (outcome.status, outcome.failure.boundary) == ("failed", "model"), outcome.failure
        assert str(error) in outcome.failure.message


def test_limits_hold_whatever_the_loop_does(project: Any) -> None:
    body = """
async def run(self, ctx):
    messages = list(ctx.request.messages)
    try:
        while True:
            result = await ctx.chat(messages)
            messages.append(result.message)
    except Exception as error:
        return ctx.error(f"Agent failed: {error}", messages)
"""
    outcome = play(project, body, toml=GRADED + "[limits]\nturns = 2\n")
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", "max_turns", 1.0)
    assert outcome.sample.metrics["turns"] == 2


def test_tools_of_the_file_are_there_for_a_loop_that_wants_them(project: Any) -> None:
    project.write("tools.py", "def lookup(key: str) -> str:\n    'Find.'\n    return key.upper()\n")
    head = HEAD.split("    def get_tools")[0]
    body = """
def get_tools(self, request):
    return request.file_tools
async def run(self, ctx):
    messages = list(ctx.request.messages)
    result = await ctx.chat(messages)
    messages += [result.message, *await ctx.call_tools(result.tool_calls)]
    result = await ctx.chat(messages)
    return ctx.complete([*messages, result.message], reward=1.0)
"""
    model = project.Says([project.says(None, ("lookup", '{"key": "a"}')), project.says("A")])
    outcome = play(project, body, head=head, toml='[tools.lookup]\ncall = "./tools.py:lookup"\n', model=model)
    assert outcome.reward == 1.0, outcome.failure
    assert model.asked[0][1] == ["lookup"]
    assert outcome.sample.messages[2]["content"] == "A"
    assert [span["name"] for span in outcome.sample.tool_spans] == ["lookup"]


# -- an instance, a class with settings


def test_an_instance_plays_all_rollouts_and_a_class_takes_its_config(project: Any) -> None:
    body = """
def __init__(self, bonus=0.0):
    self.bonus = bonus
    self.played = 0
async def run(self, ctx):
    self.played += 1
    result = await ctx.chat(ctx.request.messages)
    return ctx.complete([result.message], reward=self.bonus + self.played)
"""
    flow = write(project, body)
    made = (project.folder / "server0.py").read_text() + "\nagent_loop = Agent(0.25)\n"
    project.write("made.py", made)
    by_name = project.play("", project.says("4"), workflow='agent = "made:agent_loop"')
    assert by_name.reward == 1.25
    assert project.play("", project.says("4"), workflow=flow + "\nconfig = { bonus = 0.5 }").reward == 1.5
    taken = 'agent = "made:agent_loop"\nconfig = { a = 1 }'
    for unfit, word in ((flow + "\nconfig = { bonsu = 1 }", "bonsu"), (taken, "made already")):
        with pytest.raises(ConfigError) as refused:
            project.build("", workflow=unfit)
        assert word in told(refused)


# -- what its author does wrong


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def helper(self): ...", "`Agent` is abstract: it does not define `run`"),
        ("def run(self, ctx): ...", "`run` must be `async def`"),
        ("name = 3\nasync def run(self, ctx): ...", "`name` must be a text"),
        ("def get_tools(self, request): ...\nasync def run(self, ctx): ...", "`get_tools` returned None"),
        ("async def get_tools(self, request): ...\nasync def run(self, ctx): ...", "take `async` off"),
        ("def get_tools(self, request): return [{}]\nasync def run(self, ctx): ...", "has no `function`"),
        ("def __init__(self, x): ...\nasync def run(self, ctx): ...", "missing a required argument: 'x'"),
        ("def __init__(self): 1 / 0\nasync def run(self, ctx): ...", "ZeroDivisionError"),
        ("name = ''\nasync def run(self, ctx): ...", "must define a 'name'"),
    ],
)
def test_what_can_be_found_before_is(project: Any, body: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        project.build("", workflow=write(project, body))
    assert words in told(refused)


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("async def run(self, ctx): ...", "bad_return", "returned None: end it with `return ctx.complete(messages)`"),
        ("async def run(self, ctx): return [1]", "bad_return", "returned list"),
        ("async def run(self, ctx): return RolloutResult('DONE')", "bad_return", "the status 'DONE'"),
        ("async def run(self, ctx): return ctx.complete('x')", "bad_return", "final messages of `Agent` are a str"),
        ("async def run(self, ctx): return ctx.complete([1])", "bad_return", "has no `role`"),
        ("async def run(self, ctx): return ctx.complete([], 3)", "bad_return", "finish reason of `Agent` is 3"),
        ("async def run(self, ctx): raise KeyError('x')", "agent_error", "KeyError: 'x'"),
        ("async def run(self, ctx): raise asyncio.CancelledError", "agent_error", "CancelledError was raised by"),
        ("async def run(self, ctx): asyncio.current_task().cancel(); await asyncio.sleep(1)", "agent_error",
         "cancelled its own task"),
        ("async def run(self, ctx): time.sleep(0.3); return ctx.complete([], reward=1.0)", "rollout_timeout",
         "not finished within"),
        ("async def run(self, ctx):\n    while True:\n        try:\n            await asyncio.sleep(9)\n"
         "        except asyncio.CancelledError:\n            return ctx.complete([], reward=1.0)", "rollout_timeout",
         "not finished within"),
    ],
)  # fmt: skip
def test_what_goes_wrong_in_a_rollout_fails_it_with_a_sentence(
    project: Any, body: str, reason: str, words: str
) -> None:
    outcome = play(project, body, toml='[limits]\ntime = "200ms"\n')
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("failed", reason, None)
    assert outcome.failure.boundary == "workflow"
    assert words in outcome.failure.message


def test_tools_that_need_the_rows_own_metadata_are_only_doubted(project: Any) -> None:
    body = """
def get_tools(self, request):
    return [{"type": "function", "function": {"name": request.metadata["tool"], "description": "d"}}]
async def run(self, ctx):
    result = await ctx.chat(ctx.request.messages)
    return ctx.complete([result.message], reward=1.0)
"""
    row = {"user_prompt": "q", "tool": "search"}
    model = project.Says([project.says("4")])
    assert play(project, body, row=row, model=model).reward == 1.0
    assert model.asked[0][1] == ["search"]
    plan = project.build("", workflow=write(project, body))
    assert plan.offered == ()
    assert [spec.name for spec in offered_to(plan, plan.request(project.row(row), 0))] == ["search"]
    with pytest.raises(WorkflowError, match="the tools cannot be listed: KeyError: 'tool'"):
        offered_to(plan, plan.request(project.row(), 0))
    failed = play(project, body, row={"user_prompt": "q"})
    assert (failed.status, failed.stop_reason) == ("failed", "agent_error")
    assert "KeyError: 'tool'" in failed.failure.message


def test_any_workflow_may_give_its_reward_or_give_up(project: Any) -> None:
    head = "from runner import AgentWorkflow, AgentWorkflowOutput\nclass Agent(AgentWorkflow):\n"
    body = "async def run(self, ctx):\n    await ctx.chat(ctx.prompt)\n    return AgentWorkflowOutput({})"
    assert play(project, body.replace("{}", "reward=0.5"), head=head).reward == 0.5
    assert play(project, body.replace("{}", "reward=0.5"), head=head, toml=GRADED).reward == 1.0
    gave_up = play(project, body.replace("{}", "error='no', info={'a': 1}"), head=head)
    assert (gave_up.stop_reason, gave_up.failure.message, gave_up.sample.info) == ("agent_error", "no", {"a": 1})
    nan = play(project, body.replace("{}", "reward=float('nan')"), head=head)
    assert (nan.status, nan.stop_reason) == ("failed", "agent_error")
    peeks = play(project, body.replace("{}", "info={'label': ctx.terms.label}"), head=head)
    assert peeks.sample.info == {"label": None}
    forged = play(project, body.replace("{}", "info={'agent_reward': 1.0}"), head=head)
    assert (forged.status, forged.stop_reason) == ("failed", "bad_return")
    assert "return it as `reward`" in forged.failure.message
