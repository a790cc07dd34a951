"""Agents that call tools in text: the real plan, the real engine, over each format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.diag.diagnostic import ConfigError
from runner.records.completion import Usage
from runner.records.event import Event, ToolEnded, ToolsAnswered, ToolStarted

TOOLS = '''
    import asyncio

    async def add(a: int, b: int = 0) -> int:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        await asyncio.sleep(0.02 * a)
        return a + b

    def submit(answer: str) -> str:
        """Hand in."""
        return "ok"
'''
TOML = """
[tools.add]
call = "./tools.py:add"
[tools.submit]
call = "./tools.py:submit"
[graders.answer]
kind = "exact"
[graders.calls]
kind = "trajectory"
mode = "exact"
expect = [{ tool = "add", args = { a = 2, b = 2 } }, { tool = "add", args = { a = 0, b = 1 } }]
[reward]
combine = "min"
"""
FORMATS = {
    "react-text": (
        'Thought: add\nAction: add(a="2", b=2)\nAction: add(0, b=1)',
        "Observation 1 (add): 4\n\nObservation 2 (add): 1",
        "Thought: so\nFinal Answer: 4",
    ),
    "react-json": (
        'Action: {"name": "add", "parameters": {"a": 2, "b": "2"}}\n'
        'Action: {"name": "add", "parameters": {"a": 0, "b": 1}}',
        "Observation 1 (add): 4\n\nObservation 2 (add): 1",
        "Final Answer: 4",
    ),
    "hermes": (
        '<think>both</think>\n<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 2}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"a": 0, "b": 1}}\n</tool_call>',
        "<tool_response>\n4\n</tool_response>\n<tool_response>\n1\n</tool_response>",
        "<think>so</think>4",
    ),
    "xml-function": (
        "Both.\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>2</parameter>\n</function>\n"
        "<function=add><parameter=a>0</parameter><parameter=b>1</parameter></function>",
        "<tool_response>\n4\n</tool_response>\n<tool_response>\n1\n</tool_response>",
        "4",
    ),
    '{ regex = "CALL (?P<name>[a-z]+): (?P<arguments>.*)" }': (
        'CALL add: {"a": 2, "b": 2}\nCALL add: a=0, b=1',
        "Result of add:\n4\n\nResult of add:\n1",
        "4",
    ),
    "./tools.py:read": ("calls", "Result of add:\n4\n\nResult of add:\n1", "4"),
}
OWN = """
    def read(text):
        if text != "calls":
            return text
        return [{"tool_name": "add", "tool_args": {"a": "2", "b": 2}, "thought_content": "t"},
                {"name": "add", "arguments": {"a": 0, "b": 1}}]
"""


def with_parser(name: str) -> str:
    return f"parser = {name}" if name.startswith("{") else f'parser = "{name}"'


@pytest.fixture
def written(project: Any) -> Any:
    project.write("tools.py", TOOLS + OWN)
    return project


@pytest.mark.parametrize("name", FORMATS)
def test_a_rollout_in_each_format(written: Any, name: str) -> None:
    calling, observed, last = FORMATS[name]
    events: list[Event] = []
    model = written.Says([written.says(calling, prompt_token_ids=[1], token_ids=[2, 3]), written.says(last)])
    outcome = written.play(TOML, workflow=f'agent = "tools"\n{with_parser(name)}', model=model, events=events)
    assert (outcome.status, outcome.reward, outcome.stop_reason) == ("scored", 1.0, "final_answer")
    # Over the wire went texts alone, as they came; no tool was offered.
    roles = [message["role"] for message in outcome.sample.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert [outcome.sample.messages[at]["content"] for at in (2, 3, 4)] == [calling, observed, last]
    assert [names for _, names, _ in model.asked] == [[], []]
    assert "add" in outcome.sample.messages[0]["content"]
    assert outcome.sample.calls[0]["token_ids"] == [2, 3]
    # The calls are in the record as any are, in their order though the second ended first.
    spans = [(span["name"], json.loads(span["arguments"]), span["status"]) for span in outcome.sample.tool_spans]
    assert spans == [("add", {"a": 2, "b": 2}, "ok"), ("add", {"a": 0, "b": 1}, "ok")]
    assert len({span["tool_call_id"] for span in outcome.sample.tool_spans}) == 2
    kinds = [type(event) for event in events if isinstance(event, ToolStarted | ToolEnded | ToolsAnswered)]
    assert kinds == [ToolStarted, ToolStarted, ToolEnded, ToolEnded, ToolsAnswered]
    assert outcome.usage == Usage(20, 10)


def test_react_is_the_loop_with_react_text_and_its_stop(written: Any) -> None:
    model = written.Says([written.says("Final Answer: 4")])
    outcome = written.play(TOML, workflow='agent = "react"', model=model)
    assert outcome.sample.agent_answer == "4"
    assert model.asked[0][2].stop == ("\nObservation:",)
    own = written.Says([written.says("Final Answer: 4")])
    written.play(f'{TOML}[sampling]\nstop = ["END"]\n', workflow='agent = "react"', model=own)
    assert own.asked[0][2].stop == ("END",)
    plan = written.build(TOML, workflow='agent = "react"')
    assert plan.offered == ()


def test_a_malformed_call_is_corrected_and_counted(written: Any) -> None:
    replies = [
        'Action: add(a=2, b="2)',
        "Thought: only thinking",
        "Action: add(a=two)",
        "Action: minus(a=2)",
        'Action: add(2, "2")',
        "Final Answer: 4",
    ]
    model = written.Says([written.says(text) for text in replies])
    toml = TOML.replace(', { tool = "add", args = { a = 0, b = 1 } }', "").replace(
        '"exact"\nexpect', '"in_order"\nexpect'
    )
    outcome = written.play(toml, workflow='agent = "react"', model=model)
    assert outcome.reward == 1.0
    told = [message["content"] for message in outcome.sample.messages if message["role"] == "user"][1:]
    assert "never closed" in told[0] and "Action: add(a=1)" in told[0]
    assert told[1].startswith("Your answer holds neither an action nor a final answer")
    assert "Bad arguments" in told[2] and "`a`" in told[2]
    assert "no tool called `minus`" in told[3]
    assert told[4] == "Observation: 4"
    assert [span["status"] for span in outcome.sample.tool_spans] == ["bad_call", "bad_call", "bad_call", "ok"]


@pytest.mark.parametrize("reply", ["Action: add(", "just words", "<think>on and on"])
def test_bad_answers_end_at_their_limit_and_are_no_answer(written: Any, reply: str) -> None:
    model = written.Says([written.says(reply)])
    outcome = written.play(f"{TOML}[limits]\nmalformed_calls = 3\n", workflow='agent = "react"', model=model)
    assert (outcome.ended, outcome.reward, len(model.asked)) == ("malformed_calls", 0.0, 3)
    assert outcome.sample.agent_answer == ""


def test_what_was_said_before_a_limit_is_no_answer(written: Any) -> None:
    for reply, more, ended in (
        ("Thought: 4\nAction: add(a=2)", {}, "max_turns"),
        ("4", {"finish": "length"}, "max_tokens"),
    ):
        toml = f'{TOML}[limits]\nturns = 1\n[graders.loose]\nkind = "contains"\n'
        outcome = written.play(toml, written.says(reply, **more), workflow='agent = "react"')
        assert outcome.ended == ended
        assert outcome.scores["loose"].value == 0.0
    assert outcome.sample.messages[-1]["content"] == "4"  # it is there to be seen


def test_the_conversation_is_told_as_it_would_have_gone_on(written: Any) -> None:
    """A limit after the calls: the record ends with the observation, not with tool messages that nobody sends."""
    outcome = written.play(f"{TOML}[limits]\nturns = 1\n", written.says("Action: add(a=2)"), workflow='agent = "react"')
    assert outcome.sample.messages[-1] == {"role": "user", "content": "Observation: 2"}


def test_a_finish_tool_and_its_answer(written: Any) -> None:
    events = 'stop_when = ["tool:submit"]\n'
    replies = [
        written.says("I am done: 4"),
        written.says('<tool_call>{"name": "submit", "arguments": {"answer": "4"}}'),
    ]
    outcome = written.play(TOML, *replies, workflow=f'agent = "tools"\nparser = "hermes"\n{events}')
    assert (outcome.stop_reason, outcome.sample.agent_answer) == ("finish_tool", "4")
    assert outcome.sample.messages[3]["content"] == "Go on. Call `submit` when you are done."
    assert outcome.scores["answer"].value == 1.0


@pytest.mark.parametrize("in_text", [False, True])
def test_reasoning_goes_back_by_choice(written: Any, in_text: bool) -> None:
    written_call = written.says('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', reasoning="hmm")
    first = written_call if in_text else written.says(None, ("add", '{"a": 1}'), reasoning="hmm")
    first = replace(first, extra={"reasoning_details": [1]})
    for choice, sent, details in (("drop", None, None), ("resend", "hmm", [1])):
        parser = 'parser = "hermes"\n' if in_text else ""
        model = written.Says([first, written.says("4")])
        outcome = written.play(TOML, workflow=f'agent = "tools"\n{parser}reasoning = "{choice}"', model=model)
        said = model.asked[1][0][-2]
        assert (said.get("reasoning_content"), said.get("reasoning_details")) == (sent, details)
        assert outcome.sample.calls[0]["reasoning"] == "hmm"


def test_calls_beside_the_text_are_told_and_never_resent(written: Any) -> None:
    model = written.Says([written.says("", ("add", '{"a": 1}')), written.says("4")])
    outcome = written.play(TOML, workflow='agent = "tools"\nparser = "hermes"', model=model)
    assert "tool_calls" not in model.asked[1][0][-2]
    assert "beside your text" in model.asked[1][0][-1]["content"]
    assert outcome.stop_reason == "final_answer"


def test_instructions_can_be_the_files_own(written: Any) -> None:
    model = written.Says([written.says("4")])
    written.play(
        TOML,
        workflow='system = "Mine."\nagent = "tools"\nparser = { format = "hermes", instructions = false }',
        model=model,
    )
    assert model.asked[0][0][0] == {"role": "system", "content": "Mine."}


def test_a_parser_that_raises_is_the_files_fault(written: Any) -> None:
    written.write("bad.py", "def read(text):\n    return 1 / 0\ndef odd(text):\n    return 3\n")
    for name, said in (("read", "division by zero"), ("odd", "int")):
        outcome = written.play(TOML, written.says("x"), workflow=f'agent = "tools"\nparser = "./bad.py:{name}"')
        assert outcome.failure is not None
        assert (outcome.status, outcome.failure.boundary) == ("failed", "workflow")
        assert said in outcome.failure.message


@pytest.mark.parametrize(
    ("workflow", "code"),
    [
        ('agent = "chat"\nparser = "hermes"', "misplaced-key"),
        ('agent = "chat"\nreasoning = "resend"', "misplaced-key"),
        ('agent = "strands"\nparser = "hermes"', "misplaced-key"),
        ('agent = "tools"\nparser = "hermse"', "unknown-kind"),
        ('agent = "tools"\nparser = { regex = "(" }', "bad-regex"),
        ('agent = "tools"\nparser = { regex = "x" }', "bad-regex"),
        ('agent = "tools"\nparser = { regex = "x", format = "hermes" }', "one-of"),
        ('agent = "tools"\nparser = "./tools.py:none"', "no-such-name"),
        ('agent = "tools"\nparser = "./bad.py:later"', "unfit-code"),
        ('agent = "tools"\nparser = "./bad.py:none"', "unfit-code"),
        ('agent = "react"\nconfig = { x = 1 }', "misplaced-key"),
        ('agent = "coding"', "unknown-sandbox"),
        ('agent = "nobody"', "unknown-kind"),
    ],
)
def test_mistakes_are_found(written: Any, workflow: str, code: str) -> None:
    written.write("bad.py", "async def later(text):\n    pass\ndef none():\n    pass\n")
    with pytest.raises(ConfigError) as raised:
        written.build(TOML, workflow=workflow)
    assert code in [found.code for found in raised.value.report]


AGENTS = """
    from runner import AgentWorkflow
    from runner.workflows.registry import register_agent

    @register_agent("twice-told")
    class Twice(AgentWorkflow):
        async def run(self, ctx):
            await ctx.chat(ctx.prompt)
            return [*ctx.prompt, (await ctx.chat(ctx.prompt)).message]
"""


def test_agents_by_the_name_they_are_registered_by(written: Any) -> None:
    from runner.workflows.registry import register_agent, registered_agents, unregister_agent

    written.write("agents.py", AGENTS)
    try:
        outcome = written.play('[graders.answer]\nkind = "exact"\n', workflow='agent = "./agents.py:twice-told"')
        assert (outcome.reward, outcome.sample.metrics["turns"]) == (1.0, 2)
        with pytest.raises(ConfigError) as raised:
            written.build(workflow='agent = "./agents.py:twice-tol"')
        (found,) = raised.value.report
        assert (found.label, "twice-told" in found.notes[0]) == ("did you mean `twice-told`?", True)
        with pytest.raises(ValueError, match="registered already"):
            register_agent("twice-told")(lambda: None)
        with pytest.raises(ValueError, match="cannot be the name"):
            register_agent("a b")
    finally:
        assert unregister_agent("twice-told")
    assert "twice-told" not in registered_agents()


def test_agents_of_installed_packages(written: Any, tmp_path: Path) -> None:
    """A package with an entry point, as pip leaves it on the path."""
    import sys

    site = tmp_path / "site"
    (site / "agents_for_test-1.0.dist-info").mkdir(parents=True)
    (site / "agents_for_test.py").write_text(AGENTS.replace("\n    ", "\n").replace("twice-told", "installed-twice"))
    (site / "agents_for_test-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: agents-for-test\n")
    entry = "[osmosis_run.agents]\ntwice = agents_for_test:Twice\n"
    (site / "agents_for_test-1.0.dist-info" / "entry_points.txt").write_text(entry)
    sys.path.append(str(site))
    try:
        outcome = written.play('[graders.answer]\nkind = "exact"\n', workflow='agent = "twice"')
        assert outcome.reward == 1.0
        with pytest.raises(ConfigError) as raised:
            written.build(workflow='agent = "twise"')
        (found,) = raised.value.report
        assert "twice" in found.label
    finally:
        sys.path.remove(str(site))


def test_walked_through_step_by_step(written: Any) -> None:
    """A guide sees the calls of a text as it sees any, and may have them run again."""
    import asyncio
    import time

    from runner.runtime.rollout import run_rollout
    from runner.runtime.stepping import Stepping

    seen: list[tuple[str, str]] = []

    class Guide:
        async def asks(self, request: Any) -> None:
            seen.append(("asks", str(len(request.tools))))

        async def answered(self, request: Any, answers: Any) -> Any:
            return answers[-1]

        async def used(self, answers: Any) -> bool:
            seen.extend((answer.call.name, answer.result.status) for answer in answers)
            return len(seen) < 3  # once more

        async def failed(self, failure: Any, request: Any, again: bool) -> bool:
            return False

        def lifted(self, limit: str) -> None: ...

    async def main() -> Any:
        plan = written.build(TOML, workflow='agent = "react"')
        model = written.Says([written.says("Action: add(a=2, b=2)"), written.says("Final Answer: 4")])
        async with plan.open(model=model) as live:
            request = plan.request(written.row(), 0)
            return await run_rollout(live, request, stepping=Stepping(Guide(), time.monotonic))

    outcome = asyncio.run(main())
    assert outcome.sample.agent_answer == "4"
    assert seen == [("asks", "0"), ("add", "ok"), ("add", "ok"), ("asks", "0")]
