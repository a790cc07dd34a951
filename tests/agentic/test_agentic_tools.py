"""Everything that can be a tool, tools with a life and rewards, the registry of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from runner.agentic import (
    AgenticRollout,
    BaseAgenticTool,
    ReactAgent,
    SimpleAgenticTool,
    StepType,
    ToolCallInfo,
    ToolRegistry,
    ToolResult,
    Trajectory,
    create_openai_tool_schema,
    get_tool_registry,
    register_tool,
    register_tool_instance,
)

SCHEMA = create_openai_tool_schema("count", "Counts.", {"by": {"type": "integer"}}, ["by"])


class Counter(BaseAgenticTool):
    """Counts within a trajectory; worth what it was counted by, and a bonus at its end."""

    ended: list[int]

    def __init__(self, config: Any = None) -> None:
        super().__init__(config, SCHEMA)
        self.ended = []

    async def _initialize_instance(self, instance_id: str, **more: Any) -> None:
        self.instances[instance_id]["count"] = 0

    async def _cleanup_instance(self, instance_id: str, **more: Any) -> None:
        self.ended.append(self.instances[instance_id]["count"])

    async def execute_tool(self, instance_id: str, parameters: dict[str, Any], **more: Any) -> ToolResult:
        if parameters["by"] < 0:
            return ToolResult(False, {"stderr": "it stays"}, "It never counts down.")
        self.instances[instance_id]["count"] += parameters["by"]
        return ToolResult(True, self.instances[instance_id], reward_score=float(parameters["by"]))

    async def calculate_reward(self, instance_id: str, **more: Any) -> float:
        return 10.0


class Echo(SimpleAgenticTool):
    def __init__(self) -> None:
        super().__init__("echo", "Says it again.", {"word": {"type": "string"}}, ["word"])

    async def simple_execute(self, instance_id: str, parameters: dict[str, Any], **more: Any) -> Any:
        return parameters["word"]


class Loose:
    """Takes anything."""

    async def execute(self, **arguments: Any) -> Any:
        return arguments


class Described:
    tool_schema = SCHEMA

    def execute(self, by: int) -> int:
        return by + 1


def plain(by: int) -> int:
    """Doubles."""
    return by * 2


def played(function: Any, tools: Any, **config: Any) -> Trajectory:
    agent = ReactAgent(**config)
    agent.set_tools(tools)
    return asyncio.run(agent.run_trajectory("?", function, "x"))


@pytest.mark.parametrize(
    ("tool", "call", "result"),
    [
        (plain, "t(by=2)", 4),
        (Loose(), 't(x="a", y=[1])', {"x": "a", "y": [1]}),
        (Loose, "t()", {}),
        (Described(), "t(by=2)", 3),
        (Echo(), 't(word="hm")', "hm"),
        (Counter(), "t(by=2)", {"count": 2}),
    ],
)
def test_every_kind_of_tool(says: Callable[..., Any], tool: Any, call: str, result: Any) -> None:
    trajectory = played(says(f"Action: {call}", "Final Answer: x"), {"t": tool})
    assert trajectory.steps[2].tool_result == result, trajectory.steps[2]
    assert trajectory.steps[2].metadata["status"] == "ok"


@pytest.mark.parametrize("tool", [3, "text", Described.tool_schema, lambda a, /: a])
def test_what_is_no_tool(tool: Any) -> None:
    with pytest.raises(TypeError, match="'t'"):
        ReactAgent().set_tools({"t": tool})


def test_two_tools_of_one_name() -> None:
    with pytest.raises(TypeError, match="two tools have one name"):
        ReactAgent().set_tools([plain, plain])


def test_what_a_model_gets_wrong_is_an_answer(says: Callable[..., Any]) -> None:
    function = says(
        "Action: plan(by=2)", 'Action: plain(by="x")', "Action: plain(", "Action: fails()", "Final Answer: x"
    )

    def fails() -> None:
        raise KeyError("gone")

    trajectory = played(function, [plain, fails])
    told = [step.content for step in trajectory.steps if step.step_type is StepType.ACTION_RESULT]
    assert "did you mean `plain`" in told[0]
    assert "`by`" in told[1]
    assert "never closed" in told[2] or "could not be read" in told[2]
    assert told[3] == "KeyError: 'gone'"
    assert [step.metadata["status"] for step in trajectory.steps if "status" in step.metadata] == [
        "bad_call", "bad_call", "bad_call", "error",
    ]  # fmt: skip
    assert trajectory.is_completed
    endless = played(says("Action: plan(by=2)"), [plain], max_steps=100)
    assert (endless.is_completed, endless.metadata["stop_reason"]) == (False, "malformed_calls")


def test_a_tool_with_a_life(says: Callable[..., Any]) -> None:
    counter = Counter()
    function = says("Action: count(by=2), count(by=3)", "Action: count(by=-1)", "Final Answer: 5")
    trajectory = played(function, [counter])
    results = [step for step in trajectory.steps if step.step_type is StepType.ACTION_RESULT]
    assert results[1].tool_result == {"count": 5}
    assert results[2].content == 'It never counts down.\n{"stderr": "it stays"}'
    assert [step.reward_score for step in results] == [2.0, 3.0, 10.0]
    assert (trajectory.final_reward, trajectory.get_total_reward()) == (15.0, 15.0)
    assert (counter.ended, counter.instances) == ([5], {})


def test_trajectories_share_no_life(says: Callable[..., Any]) -> None:
    def answer(messages: list[Any]) -> str:
        return "Action: count(by=1)" if len(messages) < 4 else "Final Answer: x"

    rollout = AgenticRollout({"concurrent_requests": 4}, answer)
    rollout.tools = [Counter()]  # type: ignore[assignment]  # a list of tools is fine too
    done = asyncio.run(rollout.run_batch(["?"] * 4))
    assert [each.steps[2].tool_result for each in done] == [{"count": 1}] * 4
    assert [each.final_reward for each in done] == [11.0] * 4


def test_calls_of_one_turn_run_together(says: Callable[..., Any]) -> None:
    four = asyncio.Barrier(4)

    async def meets() -> str:
        async with asyncio.timeout(10):
            await four.wait()
        return "x"

    trajectory = played(says("Action: meets(), meets(), meets(), meets()", "Final Answer: x"), [meets])
    assert len(trajectory.get_tool_calls()) == 4
    assert [step.tool_result for step in trajectory.steps if step.tool_result is not None] == ["x"] * 4


def test_the_schema_of_a_tool() -> None:
    counter = Counter({"x": 1})
    assert (counter.name, counter.validate_parameters({"by": 1}), counter.validate_parameters({})) == (
        "count",
        True,
        False,
    )
    assert '"name": "count"' in counter.get_description()
    assert counter.get_tool_info()["active_instances"] == 0
    assert counter.get_execution_info()["config"] == {"x": 1}
    text, reward, metrics = asyncio.run(Echo().execute("i", {"word": "hm"}))
    assert (text, reward, metrics) == ("hm", 0.0, {})
    with pytest.raises(ValueError, match="`x` is required"):
        create_openai_tool_schema("t", "", {}, ["x"])


def test_the_registry() -> None:
    registry = ToolRegistry()
    assert registry.register_tool(Counter, {"x": 1}) == "count"
    assert registry.register_tool(plain, name="double") == "double"
    assert registry.register_tool_instance(Echo()) == "echo"
    assert (registry.get_tool_names(), registry.has_tool("echo")) == (["count", "double", "echo"], True)
    assert [each["function"]["name"] for each in registry.get_tool_schemas()] == ["count", "double", "echo"]
    with pytest.raises(ValueError, match="'echo' is registered already"):
        registry.register_tool(Echo)
    with pytest.raises(KeyError, match="there is no tool 'x'"):
        registry.get_tool_schema("x")

    async def test() -> None:
        assert await registry.execute_tool("double", {"by": 4}) == ToolResult(True, 8)
        failed = await registry.execute_tool("double", {})
        assert (failed.success, "`by`" in (failed.error or "")) == (False, True)
        assert "did you mean `echo`" in ((await registry.execute_tool("ecko", {})).error or "")
        assert (await registry.execute_tool("count", {"by": 3})).reward_score == 3.0
        assert (await registry.execute_tool("count", {"by": "x"})).success is False
        life = await registry.create_tool_instance("count")
        for expected in (2, 4):
            given = await registry.execute_tool_call(ToolCallInfo("count", life, {"by": 2}))
            assert (given.result, given.reward_score) == ({"count": expected}, 2.0)
        assert registry.get_tool_info("count")["active_instances"] == 1
        assert await registry.calculate_tool_reward("count", life) == 10.0
        await registry.release_all_instances()
        assert registry.get_tool_info("count")["active_instances"] == 0

    asyncio.run(test())
    agent = ReactAgent()
    agent.set_tools(registry.get_tools())
    assert list(agent.tools) == ["count", "double", "echo"]
    assert registry.unregister_tool("echo")
    registry.clear_registry()
    assert registry.get_tool_names() == []


def test_the_process_has_a_registry() -> None:
    try:
        assert (register_tool(plain), register_tool_instance(Echo())) == ("plain", "echo")
        assert get_tool_registry().get_tool_names() == ["plain", "echo"]
    finally:
        get_tool_registry().clear_registry()
