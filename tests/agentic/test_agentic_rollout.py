"""`AgenticRollout`: each of its eleven keys, every kind of LLM function, many prompts at once."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.agentic import (
    AgenticRollout,
    BaseAgent,
    GeneralAgent,
    StepType,
    ToolAgent,
    Trajectory,
    TrajectoryClient,
    clear_registry,
    create_agentic_rollout,
    create_llm_client,
    get_agent_class,
    list_agents,
    register_agent,
)
from runner.models.double import Double
from runner.records.completion import Completion

KINDS = ["observation", "action", "action_result", "final_answer"]


def add(a: int, b: int) -> int:
    return a + b


def played(config: dict[str, Any], function: Any, prompt: Any = "2+3?", **tools: Any) -> Trajectory:
    rollout = create_agentic_rollout(config, function)
    rollout.tools = tools
    return asyncio.run(rollout.run_trajectory(prompt, "x"))


def kinds(trajectory: Trajectory) -> list[str]:
    return [step.step_type.value for step in trajectory.steps]


# -- the agents, and their names

CALLS = {
    "react": 'Thought: I add.\nAction: add(a=2, b="3")',
    "general": 'Thought: I add.\nAction: {"name": "add", "parameters": {"a": 2, "b": 3}}',
    "tool": "Let me add.\nTOOL_CALL: add(a=2, b=3)",
}


@pytest.mark.parametrize("agent", CALLS)
def test_agents_that_write_their_calls(says: Callable[..., Any], agent: str) -> None:
    function = says(CALLS[agent], "5" if agent == "tool" else "Final Answer: 5")
    trajectory = played({"agent_type": agent}, function, add=add)
    assert (kinds(trajectory), trajectory.get_final_response()) == (KINDS, "5")
    assert trajectory.steps[2].tool_result == 5
    assert "add(a: integer, b: integer)" in (trajectory.system_prompt or "")


def test_the_tool_agent_calls_natively_where_the_function_takes_tools() -> None:
    asked: list[Any] = []

    def ask(messages: Any, tools: Any = None) -> Any:
        asked.append((list(messages), tools))
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
        return {"content": "5"} if len(asked) > 1 else {"content": None, "tool_calls": [call]}

    trajectory = played({"agent_type": "tool"}, ask, add=add)
    assert (kinds(trajectory), trajectory.get_final_response()) == (KINDS, "5")
    assert asked[0][1][0]["function"]["name"] == "add"
    assert trajectory.get_messages()[:3] == asked[1][0]
    assert asked[1][0][2]["role"] == "tool"


def test_the_coding_agent_leaves_a_patch(says: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "calc.py").write_text("def add(a, b): return a - b\n")
    edit = 'Action: editor(command="str_replace", path="calc.py", old_str="a - b", new_str="a + b")'
    config = {"agent_type": "coding", "tools_config": {"sandbox": {"kind": "none", "copy": {str(tmp_path): "."}}}}
    function = says(edit, 'Action: finish(answer="The sign was wrong.")')
    rollout = create_agentic_rollout(config, function, test_after_changes=False)
    trajectory = asyncio.run(rollout.run_trajectory({"problem": "add() is wrong"}))
    assert (trajectory.is_completed, trajectory.get_final_response()) == (True, "The sign was wrong.")
    assert "+def add(a, b): return a + b" in trajectory.metadata["info"]["patch"]
    assert trajectory.steps[-1].step_type is StepType.FINAL_ANSWER
    assert (tmp_path / "calc.py").read_text() == "def add(a, b): return a - b\n"
    assert "sandbox `work`" in trajectory.metadata["notices"][0]  # `none` holds nothing, and that is said


def test_agents_by_name(says: Callable[..., Any]) -> None:
    @register_agent("greets")
    class Greets(BaseAgent):
        async def run_trajectory(self, prompt: Any, llm_generate_func: Any = None, request_id: str = "",
                                 **keywords: Any) -> Trajectory:  # fmt: skip
            trajectory = Trajectory(request_id)
            self.add_observation(trajectory, prompt)
            self.add_final_answer(trajectory, await llm_generate_func([{"role": "user", "content": prompt}]))
            self.finalize_trajectory(trajectory)
            return trajectory

    try:
        assert list_agents() == ["react", "tool", "general", "coding", "greets"]
        assert get_agent_class("greets") is Greets
        assert played({"agent_type": "greets"}, says("hello")).get_final_response() == "hello"
        with pytest.raises(ValueError, match="is registered already"):
            register_agent("greets")(type("Other", (Greets,), {}))
    finally:
        clear_registry()
    assert get_agent_class("greets") is None
    with pytest.raises(ValueError, match="there is no agent 'greets'; there are: react, tool, general, coding"):
        AgenticRollout({"agent_type": "greets"})


def test_a_format_of_ones_own(says: Callable[..., Any]) -> None:
    def read(text: str) -> Any:
        words = text.split()
        return {"tool_name": words[0][1:], "tool_args": {"a": 2, "b": 3}} if text.startswith("!") else None

    agent = GeneralAgent(action_parser=read, system_prompt="Write !tool.")
    agent.set_tools({"add": add})
    trajectory = asyncio.run(agent.run_trajectory("2+3?", says("!add", "five")))
    assert (kinds(trajectory), trajectory.get_final_response()) == (KINDS, "five")
    assert (trajectory.system_prompt or "").startswith("Write !tool.")


def test_a_tool_that_ends_it(says: Callable[..., Any]) -> None:
    agent = ToolAgent(tools_config={"finish": {}})
    trajectory = asyncio.run(agent.run_trajectory("2+3?", says('TOOL_CALL: finish(answer="5")')))
    assert kinds(trajectory) == KINDS
    assert (trajectory.get_final_response(), trajectory.metadata["stop_reason"]) == ("5", "finish_tool")
    assert len(trajectory.get_messages()) == 3  # the answer is no message of its own


# -- the other keys


@pytest.mark.parametrize(("steps", "turns", "done"), [(1, 0, False), (2, 1, False), (3, 1, False), (4, 2, True)])
def test_max_steps_counts_steps(says: Callable[..., Any], steps: int, turns: int, done: bool) -> None:
    function = says("Action: add(a=2, b=3)", "Final Answer: 5")
    trajectory = played({"max_steps": steps}, function, add=add)
    assert (len(function.asked), trajectory.is_completed) == (turns, done)
    assert trajectory.metadata["stop_reason"] == ("final_answer" if done else "max_steps")


def test_sampling_is_what_the_config_says(says: Callable[..., Any]) -> None:
    function = says("Final Answer: 5")
    played({"max_tokens_per_step": 77, "temperature": 0.25}, function)
    assert (function.asked[0]["max_tokens"], function.asked[0]["temperature"]) == (77, 0.25)


def test_settings_of_built_in_tools(says: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("needle\n")
    config = {
        "calculator": {"precision": 3},
        "search": {"max_results": 2},
        "sandbox": {"kind": "none", "copy": {str(tmp_path): "."}},
    }
    function = says(
        'Action: calculator(expression="2/3")', 'Action: search(command="search_text", pattern="needle", path=".")',
        "Final Answer: x",
    )  # fmt: skip
    trajectory = played({"tools_config": config}, function)
    results = [step for step in trajectory.steps if step.step_type is StepType.ACTION_RESULT]
    assert results[0].tool_result["result"] == 0.667
    assert sum(name in results[1].content for name in ("a.txt", "b.txt", "c.txt")) == 2, results[1].content


class Shouts:
    """Shouts."""

    def __init__(self, ending: str = "!") -> None:
        self.ending = ending

    async def execute(self, word: str) -> str:
        return word.upper() + self.ending


class Again:
    """An interaction: once more, until the answer is the right one."""

    def __init__(self, right: str) -> None:
        self.right = right
        self.lives: list[str] = []

    async def start_interaction(self, instance_id: str, **row: Any) -> None:
        self.lives.append(instance_id)

    async def generate_response(self, instance_id: str, messages: Any, **row: Any) -> Any:
        fine = messages[-1]["content"].endswith(self.right)
        return fine, "Once more.", 1.0 if fine else -0.5, {}

    async def finalize_interaction(self, instance_id: str) -> None:
        self.lives.remove(instance_id)


@pytest.mark.parametrize("name", ["shouts", "execute"])
def test_tools_by_class(says: Callable[..., Any], name: str) -> None:
    """By a name with settings, or in a list as verl's are; such a one is called after what it does."""
    config: dict[str, Any] = {"shouts": {"class": f"{__name__}:Shouts", "ending": "?"}}
    if name == "execute":
        config = {"tools": [{"class_name": f"{__name__}.Shouts", "ending": "?"}]}
    trajectory = played({"tools_config": config}, says(f'Action: {name}(word="hey")', "Final Answer: x"))
    assert trajectory.steps[2].tool_result == "HEY?"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"calculater": {}}, "'calculater'] is no built-in tool"),
        ({"calculator": {"precisoin": 3}}, "did you mean `precision`"),
        ({"calculator": {"precision": 99}}, "precision"),
        ({"calculator": 3}, "is a table of settings, found int"),
        ({"x": {"class": "no.such:Thing"}}, "'no.such:Thing' names nothing"),
        ({"x": {"class": "json:JSONDecoder", "no": 1}}, "cannot be made of its settings"),
        ({"bash": {}, "sandbox": {"kind": "wood"}}, "wood"),
    ],
)
def test_settings_that_cannot_be(config: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        AgenticRollout({"tools_config": config})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"agent_typ": "react"}, "has no 'agent_typ'; did you mean 'agent_type'"),
        ({"max_steps": 0}, "max_steps is a whole number from 1"),
        ({"max_steps": True}, "max_steps is a whole number from 1"),
        ({"temperature": -1}, "temperature is a number from 0"),
        ({"batch_size": 0}, "batch_size is a whole number from 1"),
        ({"concurrent_requests": 1.5}, "concurrent_requests is a whole number from 1"),
        ({"save_trajectories": "yes"}, "save_trajectories is True or False"),
        ({"tools_config": []}, "tools_config is a table"),
        ({"interactions_config": {"x": {}}}, "needs `class`"),
    ],
)
def test_keys_that_cannot_be(config: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        create_agentic_rollout(config)


def test_a_keyword_that_nothing_reads() -> None:
    for agent in ("react", "coding"):
        with pytest.raises(ValueError, match="there is no keyword 'test_comand'"):
            create_agentic_rollout({"agent_type": agent}, test_comand="make")


def test_interactions_answer_the_final_answer(says: Callable[..., Any]) -> None:
    other = Again("5")
    function = says("Final Answer: 4", "Final Answer: 5")
    trajectory = played({"interactions_config": {"again": other}}, function)
    assert kinds(trajectory) == ["observation", "thought", "observation", "final_answer"]
    assert [step.reward_score for step in trajectory.steps] == [None, -0.5, None, 1.0]
    assert (trajectory.final_reward, trajectory.is_completed, other.lives) == (0.5, True, [])
    assert function.asked[1]["messages"][-1] == {"role": "user", "content": "Once more."}


def test_interactions_by_name_and_as_functions(says: Callable[..., Any]) -> None:
    config = {"never": lambda messages: None, "asks": lambda messages: "And?" if len(messages) < 4 else None}
    chosen = played({"interactions_config": config}, says("Final Answer: 4"), {"content": "?", "interaction": "asks"})
    assert kinds(chosen).count("observation") == 2
    unsaid = played({"interactions_config": config}, says("Final Answer: 4"))
    assert "the prompt's `interaction` is None, and there are: never, asks" in unsaid.metadata["failure"]["message"]


def test_saving_as_it_goes(says: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "kept"

    def looks() -> int:
        return len((folder / "x.jsonl").read_text().splitlines())

    config = {"save_trajectories": True, "trajectory_save_path": str(folder)}
    trajectory = played(config, says("Action: looks()", "Final Answer: 5"), looks=looks)
    assert trajectory.steps[2].tool_result == 3  # whose it is, the prompt, the call
    assert list(TrajectoryClient(folder)) == [trajectory]


@pytest.mark.parametrize(("said", "saved"), [("true", 1), ("0", 0), ("", 0)])
def test_the_environment_says_whether_to_save(
    says: Callable[..., Any], said: str, saved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTIC_SAVE_TRAJECTORIES", said)
    played({}, says("Final Answer: 5"))
    played({"save_trajectories": False}, says("Final Answer: 5"))
    assert len(list(tmp_path.glob("trajectories/*.jsonl"))) == saved


@pytest.mark.parametrize("name", ["AGENTIC_SAVE_TRAJECTORIES", "AGENTIC_LOG_LEVEL"])
def test_a_variable_that_makes_no_sense(says: Callable[..., Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "perhaps")
    with pytest.raises(ValueError, match=f"(?i){name} is 'perhaps'"):
        played({}, says("Final Answer: 5"))


def test_the_log_level(
    says: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("runner.agentic")
    monkeypatch.setattr(log, "level", log.level)
    monkeypatch.setenv("AGENTIC_LOG_LEVEL", "debug")
    played({}, says("Final Answer: 5"))
    assert [record.levelname for record in caplog.records if record.name == "runner.agentic"] == [
        "INFO", "DEBUG", "DEBUG",
    ]  # fmt: skip


# -- LLM functions


class Answer:
    text = "Final Answer: 5"


async def in_time(messages: Any) -> str:
    return "Final Answer: 5"


@pytest.mark.parametrize(
    "function",
    [
        in_time,
        lambda messages: "Final Answer: 5",
        lambda messages, **more: {"content": "Final Answer: 5"},
        lambda messages, max_tokens, temperature: Answer(),
        lambda messages: {"choices": [{"message": {"content": "Final Answer: 5"}, "finish_reason": "stop"}]},
        lambda messages: Completion({"role": "assistant", "content": "Final Answer: 5"}),
        lambda messages: in_time(messages),  # noqa: PLW0108 (no coroutine function itself)
    ],
)
def test_every_kind_of_function(function: Any) -> None:
    assert played({}, function).get_final_response() == "5"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(RuntimeError("no"), "model_refused"), (None, "model_garbled"), ({}, "model_garbled")],
)
def test_a_function_that_fails_is_no_answer(says: Callable[..., Any], answer: Any, kind: str) -> None:
    trajectory = played({}, says("Action: add(a=1, b=1)", answer), add=add)
    assert (trajectory.is_completed, trajectory.metadata["status"]) == (False, "failed")
    failure = trajectory.metadata["failure"]
    assert (failure["boundary"], failure["kind"]) == ("model", kind)
    assert kinds(trajectory) == ["observation", "action", "action_result"]
    assert "Error" not in json.dumps(trajectory.get_messages())


def test_what_cannot_be_a_function() -> None:
    with pytest.raises(ValueError, match="llm_generate_func is of type int"):
        played({}, 3)
    with pytest.raises(ValueError, match="takes no `messages`"):
        played({}, lambda: "")
    with pytest.raises(ValueError, match="nobody says which model answers"):
        played({}, None)


def test_a_client_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the environment, as a function, and by hand; its tokens and tool calls are the trajectory's."""

    async def test() -> list[Trajectory]:
        async with Double(lambda asked: "Final Answer: 5", token_ids=True) as double:
            monkeypatch.setenv("LLM_BASE_URL", double.base_url)
            monkeypatch.setenv("LLM_MODEL_NAME", "some-model")
            client = create_llm_client(temperature=0.0)
            async with client:
                reply = await client.generate([{"role": "user", "content": "2+3?"}], max_tokens=9)
                assert (reply, reply.completion.finish_reason) == ("Final Answer: 5", "stop")
                by_client = await AgenticRollout({}, client).run_trajectory("2+3?")
            return [by_client, await AgenticRollout().run_trajectory("2+3?")]

    for trajectory in asyncio.run(test()):
        assert (trajectory.get_final_response(), trajectory.is_completed) == ("5", True)
        assert trajectory.steps[-1].attention_mask
        assert trajectory.total_tokens > 0


@pytest.mark.parametrize(
    ("variables", "name", "kind", "key", "address"),
    [
        ({"OPENAI_API_KEY": "o"}, "gpt-5", "ChatModel", "o", "https://api.openai.com/v1"),
        ({"OPENAI_BASE_URL": "http://x/v1"}, "m", "ChatModel", None, "http://x/v1"),
        ({"LLM_API_KEY": "l", "LLM_BASE_URL": "http://x/v1"}, "m", "ChatModel", "l", "http://x/v1"),
        ({"ANTHROPIC_API_KEY": "a"}, "claude-x", "LiteLLMModel", "a", None),
        ({"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "http://x"}, "m", "LiteLLMModel", "a", "http://x"),
    ],
)
def test_which_client(variables: dict[str, str], name: str, kind: str, key: Any, address: Any) -> None:
    model: Any = create_llm_client(environ={**variables, "LLM_MODEL_NAME": name}).model
    assert (type(model).__name__, model.api_key, model.base_url) == (kind, key, address)


def test_no_client_without_a_key() -> None:
    with pytest.raises(ValueError, match="the model 'gpt-5' has no key: set OPENAI_API_KEY"):
        create_llm_client("gpt-5", environ={})


# -- many prompts


class Busy:
    """A function that counts how many ask at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, messages: Any) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        if messages[-1]["content"] == "bad":
            raise RuntimeError("no")
        return f"Final Answer: {messages[-1]['content']}"


def test_many_at_once_each_alone() -> None:
    busy = Busy()
    rollout = AgenticRollout({"concurrent_requests": 3}, busy)
    prompts = ["a", "bad", {"neither": 1}, [{"role": "user", "content": "d"}], {"prompt": "e"}, "f"]
    done = asyncio.run(rollout.run_batch(prompts))
    assert [each.get_final_response() for each in done] == ["a", "", "", "d", "e", "f"]
    assert [each.metadata["status"] for each in done].count("failed") == 2
    assert "it has neither" in done[2].metadata["failure"]["message"]
    assert busy.most == 3
    again = asyncio.run(rollout.run_batch(["a"]))
    assert again[0].request_id != done[0].request_id
    with pytest.raises(ValueError, match="1 prompts and 2 request_ids"):
        asyncio.run(rollout.run_batch(["a"], ["x", "y"]))


def test_batches_of_an_endless_source() -> None:
    read: list[int] = []

    def endless() -> Iterator[str]:
        for number in itertools.count():
            read.append(number)
            yield str(number)

    async def test() -> list[list[str]]:
        rollout = AgenticRollout({"concurrent_requests": 2, "batch_size": 3}, Busy())
        found = []
        async for batch in rollout.iter_batches(endless()):
            found.append([each.get_final_response() for each in batch])
            if len(found) == 2:
                return found
        return found

    assert asyncio.run(test()) == [["0", "1", "2"], ["3", "4", "5"]]
    assert len(read) == 6


@pytest.mark.parametrize("included", [True, False])
def test_sequences(included: bool) -> None:
    rollout = AgenticRollout({"include_trajectory_in_output": included}, Busy())
    output = asyncio.run(rollout.generate_sequences({"content": ["a", "bad"], "level": [1, 2]}))
    assert (output["responses"], output["is_completed"]) == (["a", ""], [True, False])
    assert output["stop_reasons"] == ["final_answer", "model_refused"]
    assert ("trajectories" in output) is included
    if included:
        assert Trajectory.from_dict(output["trajectories"][0]).get_final_response() == "a"
    with pytest.raises(ValueError, match="different lengths"):
        asyncio.run(rollout.generate_sequences({"content": ["a"], "level": []}))
