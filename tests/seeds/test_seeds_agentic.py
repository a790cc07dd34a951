"""Every example of the third seed, with nothing changed but its import lines, against local endpoints.

A block that stands in the middle of a program is run in one: names that its document leaves to the reader (a config, an
LLM function) are given, statements with `await` run in a loop. `BLOCKS` says what becomes of each block.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner.agentic as agentic
from runner.models.double import Double

Block = Callable[[str], str]

PLAYED = {"basic_usage.py", "tools.py", "custom_agent.py", "models.py", "config.py", "environment.sh", "analysis.py",
          "web_search.py", "batch.py"}  # fmt: skip
NOT_PLAYED = {
    "structure": "a picture of another package's folders",
    "install_source.sh": "another package's installation",
    "install_venv.sh": "another package's installation",
    "install_verl.sh": "another package's installation",
    "verl_integration.py": "verl: a later issue",
    "verl_pipeline.py": "verl: a later issue",
    "run_examples.sh": "files that the seed's repository never had",
    "run_tests.sh": "files that the seed's repository never had",
}
"""What becomes of each block of the document."""


def ours(text: str) -> str:
    """The same, with nothing changed but the import lines."""
    text = re.sub(r"from (?:workers|examples)\.[\w.]+ import", "from runner.agentic import", text)
    assert "workers" not in text
    return text


def play(text: str, **names: Any) -> dict[str, Any]:
    """Run a block, its `await`s in a loop; the names that it leaves."""
    space = {name: getattr(agentic, name) for name in agentic.__all__} | {"__name__": "block", "json": json} | names
    code = compile(ours(text), "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def run() -> None:
        waits = eval(code, space)
        if waits is not None:
            await waits

    asyncio.run(run())
    return space


def says(*answers: str) -> Callable[..., Any]:
    """An LLM function that gives these answers in order, the last for ever; `asked` is what it was asked."""

    async def ask(messages: list[dict[str, Any]], max_tokens: int = 512, temperature: float = 0.7, **more: Any) -> str:
        ask.asked.append((messages, max_tokens, temperature))  # type: ignore[attr-defined]
        return answers[min(len(ask.asked), len(answers)) - 1]  # type: ignore[attr-defined]

    ask.asked = []  # type: ignore[attr-defined]
    return ask


def test_every_block_is_accounted_for() -> None:
    folder = Path(__file__).parent / "blocks" / "agentic-rollout-library"
    assert {path.stem for path in folder.glob("*.txt")} == PLAYED | set(NOT_PLAYED)


def test_basic_usage(block: Block, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """As it stands its function returns nothing: the trajectory has failed, and says so. With an answer it ends."""
    text = block("agentic-rollout-library/basic_usage.py")
    left = play(text)["trajectory"]
    assert (left.is_completed, left.metadata["failure"]["kind"]) == (False, "model_garbled")
    assert capsys.readouterr().out == "Final response: \nTotal steps: 1\n"
    assert "returned NoneType" in caplog.text
    played = play(text.replace("    pass\n", "    return 'Thought: 15 * 24 = 360\\nFinal Answer: 360'\n"))["trajectory"]
    assert (played.is_completed, played.request_id) == (True, "math_example")
    assert capsys.readouterr().out == "Final response: 360\nTotal steps: 2\n"


def test_an_agent_with_tools(block: Block) -> None:
    function = says('Thought: I compute.\nAction: calculator(expression="144 ** 0.5")', "Final Answer: 12")
    left = play(block("agentic-rollout-library/tools.py"), your_llm_func=function)
    result = left["result"]
    assert (result.get_final_response(), result.is_completed) == ("12", True)
    (call,) = result.get_tool_calls()
    assert (call.tool_name, call.tool_args) == ("calculator", {"expression": "144 ** 0.5"})
    assert result.steps[2].tool_result == {"result": 12.0, "expression": "144 ** 0.5"}
    assert "calculator(expression: string)" in function.asked[0][0][0]["content"]  # type: ignore[attr-defined]


def test_a_custom_agent(block: Block) -> None:
    agent = play(block("agentic-rollout-library/custom_agent.py"))["agent"]
    agent.set_tools({"double": lambda number: int(number) * 2})
    function = says("Thought: twice", "Action: double(number=21)", "Final Answer: 42")
    trajectory = asyncio.run(agent.run_trajectory({"content": "2 * 21?"}, function, "custom"))
    kinds = [step.step_type.value for step in trajectory.steps]
    assert kinds == ["observation", "thought", "action", "action_result", "final_answer"]
    assert (trajectory.is_completed, trajectory.steps[3].tool_result) == (True, 42)
    endless = asyncio.run(agent.run_trajectory({"content": "?"}, says("Thought: hm"), "endless"))
    assert (len(endless.steps), endless.is_completed, endless.metadata["stop_reason"]) == (8, False, "max_steps")


def test_a_custom_agent_is_served(stage: Any, wire: Any, block: Block) -> None:
    """The same class behind the wire of every generation, the controller's model, the file's tool and grader."""
    stage.write("custom.py", ours("from runner.agentic import StepType, Trajectory, TrajectoryStep\n"
                                  + block("agentic-rollout-library/custom_agent.py")))  # fmt: skip
    stage.write("sums.py", "def add(a: int, b: int) -> int:\n    return a + b\n")
    toml = '[tools.add]\ncall = "./sums.py:add"\n[graders.answer]\nkind = "exact"\n'
    model = wire.Says(
        lambda told: "Final Answer: 5" if told[-1]["content"] == "Observation: 5" else "Action: add(2, 3)"
    )
    workflow = 'agent = "./custom.py:CustomReasoningAgent"'
    histories = wire.played(stage, model, workflow=workflow, toml=toml, label="5", metadata={})
    told = [(history.accepted, history.verdict.status, history.verdict.reward) for history in histories]
    assert told == [(True, "success", 1.0)] * 3
    for history in histories:
        sample = wire.sample_of(history)
        messages = sample.get("messages") or sample["final_messages"]
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant"]


def test_models(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's own client against an endpoint of ours, by the variables that the document names."""
    pytest.importorskip("openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    config = agentic.AgenticRolloutConfig(agent_type="react")
    left = play(block("agentic-rollout-library/models.py"), config=config)
    heard: list[Any] = []

    async def test() -> Any:
        async with Double(lambda asked: heard.append(asked) or "Final Answer: 4") as double:  # type: ignore[func-returns-value]
            monkeypatch.setenv("OPENAI_BASE_URL", double.base_url)
            return await left["rollout"].agent.run_trajectory("2+2?", left["openai_llm_func"], "openai")

    trajectory = asyncio.run(test())
    assert (trajectory.get_final_response(), trajectory.is_completed) == ("4", True)
    assert (heard[0]["model"], heard[0]["max_tokens"], heard[0]["temperature"]) == ("gpt-4", 512, 0.7)


def test_claude(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("litellm")
    left = play(block("agentic-rollout-library/models.py"), config=agentic.AgenticRolloutConfig())
    heard: list[tuple[str, dict[str, Any]]] = []

    async def test() -> Any:
        async with await asyncio.start_server(claude(heard), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
            return await left["rollout"].run_trajectory("2+2?", "claude", left["claude_llm_func"])

    trajectory = asyncio.run(test())
    assert (trajectory.get_final_response(), trajectory.is_completed) == ("4", True), trajectory.metadata
    ((head, asked),) = heard
    assert head.startswith("POST /v1/messages")
    assert "x-api-key: your-key" in head
    assert (asked["max_tokens"], asked["temperature"], asked["stop_sequences"]) == (512, 0.7, ["\nObservation:"])
    assert trajectory.total_tokens == 15


def claude(heard: list[tuple[str, dict[str, Any]]]) -> Callable[..., Any]:
    """Answers a request as Anthropic's messages are answered."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
               "content": [{"type": "text", "text": "Thought: easy\nFinal Answer: 4"}], "stop_reason": "end_turn",
               "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
        heard.append((head, json.loads(await reader.readexactly(length))))
        body = json.dumps(message).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    return answer


def test_the_config(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its keys; each has a test of its own in tests/agentic."""
    monkeypatch.chdir(tmp_path)
    config = play(block("agentic-rollout-library/config.py"))["config"]
    function = says('Action: calculator(operation="divide", a=1, b=3)', "Final Answer: a third")
    rollout = agentic.AgenticRollout(config=config, llm_generate_func=function)
    trajectory = asyncio.run(rollout.run_trajectory("1/3?", "keys"))
    assert "0.3333333333" in trajectory.steps[2].content
    assert (function.asked[0][1], function.asked[0][2]) == (512, 0.7)  # type: ignore[attr-defined]
    assert agentic.load_trajectory(tmp_path / "trajectories" / "keys.jsonl") == trajectory


def test_the_environment(block: Block, tmp_path: Path) -> None:
    """Every variable acts: the keys and addresses by the clients, the log and the files by what is there afterwards."""
    program = """
import asyncio, os
from runner.agentic import AgenticRollout, create_llm_client
for name in ("gpt-4", "claude-sonnet-4-5"):
    model = create_llm_client(name).model
    print(model.api_key, getattr(model, "base_url", None))
asyncio.run(AgenticRollout({"agent_type": "react"}, lambda messages: "Final Answer: 4").run_trajectory("2+2?", "env"))
"""
    lines = [line for line in block("agentic-rollout-library/environment.sh").splitlines() if line.startswith("export")]
    assert len(lines) == 6
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("LLM_", "OPENAI_", "ANTHROPIC_"))}
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        ["/bin/sh", "-c", "\n".join([*lines, f"exec {sys.executable} program.py"])],
        cwd=tmp_path, env=clean, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "your-openai-key https://api.openai.com/v1",
        "your-claude-key https://api.anthropic.com",
    ]
    assert "INFO runner.agentic: trajectory env: final_answer after 2 steps" in done.stderr
    assert agentic.load_trajectory(tmp_path / "trajectories" / "env.jsonl").get_final_response() == "4"


def test_analysis(
    block: Block, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agent.run_trajectory(...)`: the dots are given."""
    monkeypatch.chdir(tmp_path)
    agent = agentic.ReactAgent()
    agent.set_tools([lambda: 7])
    text = block("agentic-rollout-library/analysis.py").replace("(...)", '("7?", function, "analysis")')
    left = play(text, agent=agent, function=says("Action: lambda()", "Final Answer: 7"))
    assert capsys.readouterr().out == "Total steps: 4\nTool calls: 1\nFinal reward: 0.0\n"
    kept = json.loads((tmp_path / "trajectory.json").read_text())
    assert agentic.Trajectory.from_dict(kept) == left["trajectory"]


def test_a_tool_of_ones_own(block: Block) -> None:
    """Its search is left to the reader."""
    function = says('Action: web_search(query="tides", max_results=1)', "Final Answer: found")
    rollout = agentic.AgenticRollout(llm_generate_func=function)
    left = play(block("agentic-rollout-library/web_search.py"), rollout=rollout)

    async def search_web(self: Any, query: str) -> list[str]:
        return [f"{query} 1", f"{query} 2"]

    left["WebSearchTool"].search_web = search_web
    trajectory = asyncio.run(rollout.run_trajectory("What are tides?", "web"))
    assert trajectory.steps[2].tool_result == {"query": "tides", "results": ["tides 1"], "found": 2}
    assert "web_search(query: string, max_results?: integer)" in (trajectory.system_prompt or "")


def test_a_batch(block: Block) -> None:
    left = play(block("agentic-rollout-library/batch.py"), llm_func=says("Final Answer: done"))
    assert [each.request_id for each in left["trajectories"]] == ["batch_0", "batch_1", "batch_2"]
    assert all(each.is_completed for each in left["trajectories"])
    together = asyncio.run(left["rollout"].run_batch(left["prompts"]))
    assert [each.steps[0].content for each in together] == [each["content"] for each in left["prompts"]]
