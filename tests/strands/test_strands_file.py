"""From the file: `agent = "strands"`, a factory of agents, tools under `@tool`, and what is said about mistakes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("strands")

from runner.diag.diagnostic import ConfigError

TOOLS = '''
    from strands import tool

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def crash() -> str:
        """Crash."""
        raise KeyError("x")

    @tool
    def double(number: int) -> dict:
        """Double a number.

        Args:
            number: The number.
        """
        if number < 0:
            return {"status": "error", "content": [{"text": "too small"}]}
        return {"status": "success", "content": [{"text": str(2 * number)}]}

    @tool(name="other")
    async def later(text: str = "x") -> str:
        """Say it later."""
        return text + "!"
'''
TOML = """
[tools.add]
call = "./tools.py:add"
[tools.crash]
call = "./tools.py:crash"
[tools.double]
call = "./tools.py:double"
[tools.later]
call = "./tools.py:later"
[graders.answer]
kind = "exact"
"""
AGENTS = '''
    from strands import Agent, tool
    from strands.agent.conversation_manager import NullConversationManager, SlidingWindowConversationManager
    from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent, HookProvider
    from runner import OsmosisRolloutModel, OsmosisStrandsAgent

    MADE = []

    class Watch(HookProvider):
        def __init__(self):
            MADE.append(self)
            self.heard = 0

        def register_hooks(self, registry, **_):
            registry.add_callback(BeforeModelCallEvent, self.hear)

        def hear(self, event):
            self.heard += 1

    def after(event: AfterModelCallEvent) -> None:
        MADE.append(event)

    def short():
        return SlidingWindowConversationManager(window_size=2)

    def nothing():
        return 3

    def needs(one):
        return one

    @tool
    def own(text: str) -> str:
        """Say it."""
        return text.upper()

    def plain():
        return Agent(model=OsmosisRolloutModel(temperature=0.25), tools=[own], callback_handler=None)

    def ours():
        return OsmosisStrandsAgent(
            model=OsmosisRolloutModel(), tools=[own], system_prompt="Be brief.", callback_handler=None
        )

    class Mine(Agent):
        def __init__(self):
            super().__init__(model=OsmosisRolloutModel(), system_prompt="Mine.", callback_handler=None)

    an_agent = plain()
'''


def play(project: Any, workflow: str, *answers: Any, toml: str = TOML, **more: Any) -> Any:
    project.write("tools.py", TOOLS)
    project.write("agents.py", AGENTS)
    return project.play(toml, *answers, workflow=workflow, **more)


def test_the_declarative_agent_calls_the_files_tools(project: Any) -> None:
    says = project.says
    calls = says(
        "", ("add", '{"a":1,"b":2}'), ("double", '{"number": 4}'), ("later", "{}"), ("double", '{"number": -1}')
    )
    model = project.Says([calls, says("4")])
    workflow = 'agent = "strands"\nsystem = "Use the tools."\nuser = "{{ row.user_prompt }}"'
    outcome = play(project, workflow, model=model)
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", "final_answer", 1.0)
    (first, tools, _), (second, *_) = model.asked
    assert first == [{"role": "system", "content": "Use the tools."}, {"role": "user", "content": "2+2?"}]
    assert tools == ["add", "crash", "double", "later"]
    assert second[2] == calls.message
    assert [message["content"] for message in second[3:6]] == ["3", "8", "x!"]
    assert "too small" in second[6]["content"]
    assert [span["status"] for span in outcome.sample.tool_spans] == ["ok", "ok", "ok", "error"]
    assert outcome.sample.messages == (*second, {"role": "assistant", "content": "4"})


def test_it_plays_as_the_built_in_agent_does(project: Any) -> None:
    """The same requests, calls, usage and outcome as `agent = "tools"`."""
    says = project.says
    answers = [says("", ("add", '{"a":1}')), says(None, ("none", "{}"), ("crash", "{}")), says("4")]
    models = project.Says(answers), project.Says(answers)
    ours, theirs = (
        play(project, f'agent = "{agent}"\nsystem = "S"', model=model)
        for agent, model in zip(("tools", "strands"), models, strict=True)
    )
    assert ours.usage == theirs.usage
    assert (ours.status, ours.stop_reason, ours.reward) == (theirs.status, theirs.stop_reason, theirs.reward)
    for one, other in zip(models[0].asked, models[1].asked, strict=True):
        assert [{**message, "name": None} for message in one[0]] == [{**message, "name": None} for message in other[0]]
        assert one[1:] == other[1:]
    assert [span["status"] for span in ours.sample.tool_spans] == [span["status"] for span in theirs.sample.tool_spans]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("turns = 1", "max_turns"), ("tool_calls = 1", "max_tool_calls"), ("malformed_calls = 1", "malformed_calls")],
)
def test_limits_end_it_as_they_end_the_others(project: Any, limit: str, reason: str) -> None:
    says = project.says
    calls = says("", ("add", '{"a":1}'), ("none", "{}"))
    for agent in ("tools", "strands"):
        outcome = play(project, f'agent = "{agent}"', calls, toml=f"[limits]\n{limit}\n{TOML}")
        assert (outcome.status, outcome.stop_reason) == ("scored", reason)


def test_other_ends(project: Any) -> None:
    says = project.says
    for finish, reason in (("length", "max_tokens"), ("content_filter", "content_filter"), ("stop", "empty_answer")):
        outcome = play(project, 'agent = "strands"', says("" if finish == "stop" else "4", finish=finish))
        assert (outcome.status, outcome.stop_reason) == ("scored", reason)


def test_a_conversation_manager_and_hooks_by_reference(project: Any) -> None:
    says = project.says
    config = '{ conversation_manager = "./agents.py:short", hooks = ["./agents.py:Watch", "./agents.py:after"] }'
    model = project.Says([says("", ("add", '{"a":1,"b":2}')), says("", ("add", '{"a":1,"b":2}')), says("4")])
    outcome = play(project, f'agent = "strands"\nconfig = {config}', model=model)
    assert outcome.reward == 1.0, outcome.failure
    assert len(model.asked) == 3


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{ hook = [] }", "has no `hook`"),
        ('{ hooks = "./agents.py:Watch" }', "is a list of references"),
        ("{ hooks = [3] }", "3 is no reference"),
        ('{ hooks = ["./agents.py:an_agent.name"] }', "str is no hook"),
        ('{ conversation_manager = "./agents.py:nothing" }', "it gave int"),
        ('{ conversation_manager = "./agents.py:needs" }', "without arguments"),
        ('{ conversation_manager = "./agents.py:absent" }', "absent"),
    ],
)
def test_mistakes_in_its_config(project: Any, config: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        play(project, f'agent = "strands"\nconfig = {config}')
    assert any(said in finding.message for finding in caught.value.report.findings), caught.value.report.findings


@pytest.mark.parametrize("name", ["plain", "ours", "Mine"])
def test_a_factory_of_agents(project: Any, name: str) -> None:
    says = project.says
    calls = says("", ("own", '{"text": "a"}'), ("add", '{"a":1,"b":2}'))
    model = project.Says([calls if name != "Mine" else says("", ("add", '{"a":1,"b":2}')), says("4")])
    outcome = play(project, f'agent = "./agents.py:{name}"', model=model)
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    (messages, tools, sampling), *_ = model.asked
    assert tools == (["own"] if name != "Mine" else []) + ["add", "crash", "double", "later"]
    assert messages[0]["role"] == ("user" if name == "plain" else "system")
    assert sampling.temperature == (0.25 if name == "plain" else None)
    statuses = {span["name"]: span["status"] for span in outcome.sample.tool_spans}
    assert statuses == ({"add": "ok"} if name == "Mine" else {"own": "ok", "add": "ok"})


def test_an_agent_is_not_a_factory(project: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        play(project, 'agent = "./agents.py:an_agent"')
    (finding,) = caught.value.report.findings
    assert "is an agent" in finding.message
    assert "each rollout needs its own" in finding.label


def test_nothing_imports_litellm_or_openai_before_it_is_used() -> None:
    """Strands' model for litellm, by type, without litellm; and with it as soon as somebody looks."""
    code = """
import sys, warnings
warnings.simplefilter("ignore")
from runner import OsmosisRolloutModel, OsmosisStrandsAgent
from strands.models.litellm import LiteLLMModel
assert issubclass(OsmosisRolloutModel, LiteLLMModel)
assert not {"litellm", "openai", "mcp"} & set(sys.modules), "too early"
import strands.models.litellm as there, strands.models.openai as below
error = there.ContextWindowExceededError
assert there.litellm.acompletion.__module__.startswith("litellm")
assert there.litellm is sys.modules["litellm"]
from litellm.exceptions import ContextWindowExceededError
assert there.ContextWindowExceededError is ContextWindowExceededError is not error
assert below.openai.AsyncOpenAI.__name__ == "AsyncOpenAI"
assert below.openai is sys.modules["openai"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_strands_it_says_what_to_install(project: Any) -> None:
    file = project.write("workflow.toml", '[workflow]\nagent = "strands"\n[graders.answer]\nkind = "exact"\n')
    code = f"""
import sys
sys.modules["strands"] = None
from runner import build, load
from runner.diag.diagnostic import ConfigError
try:
    build(load({str(file)!r}))
except ConfigError as error:
    (finding,) = error.report.findings
    print(finding.message, finding.label)
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out == "the agent `strands` needs the package strands-agents `pip install strands-agents`\n"
