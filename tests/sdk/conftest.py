"""A folder with code as the first generation's guide has it, the command, and a model that answers over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.models.double import Double
from tests.serve.conftest import Controller

SERVER = """
from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutRequest, RolloutResult, create_app
from osmosis_ai.rollout.tools import create_tool_result, execute_tool_calls, get_tool_call_info

TOOL = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}}


async def execute(call):
    call_id, _, args = get_tool_call_info(call)
    return create_tool_result(call_id, str(args["a"] + args["b"]))


class Calculator(RolloutAgentLoop):
    name = "calculator"

    def get_tools(self, request: RolloutRequest) -> list:
        return [TOOL]

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        messages = list(ctx.request.messages)
        for turn in range(ctx.request.max_turns):
            ctx.log_event("pre_llm", turn=turn)
            result = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(result.message)
            if not result.has_tool_calls:
                break
            messages.extend(await execute_tool_calls(result.tool_calls, execute))
        return ctx.complete(messages, finish_reason=result.finish_reason)


agent_loop = Calculator()
app = create_app(agent_loop)
"""
REWARDS = """
from osmosis_ai import osmosis_reward


@osmosis_reward
def compute_reward(solution_str: str, ground_truth: str, extra_info: dict = None, **kwargs) -> float:
    return 1.0 if ground_truth in solution_str and extra_info["level"] == "easy" else 0.0


def full(messages, ground_truth, metadata):
    return len(messages) / 10


def neither(answer):
    return 1.0
"""
ROWS = [
    {"System_Prompt": "Add.", "user_prompt": "5+3?", "ground_truth": "8", "level": "easy"},
    {"System_Prompt": "Add.", "user_prompt": "2+2?", "ground_truth": "4", "level": "easy"},
    {"System_Prompt": "Add.", "user_prompt": "1+1?", "ground_truth": "2", "level": "easy"},
]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def clean_environment() -> dict[str, str]:
    ours = ("OSMOSIS", "_OSMOSIS", "NO_COLOR", "FORCE_COLOR", "OPENAI")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Code and rows as somebody brings them; no workflow.toml."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "rewards.py").write_text(REWARDS)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


@pytest.fixture
def osmosis(folder: Path) -> Run:
    """`osmosis("eval", "-m", ...)` in that folder; keywords are environment variables."""
    script = str(Path(sys.executable).parent / "osmosis-run")

    def call(*words: str | Path, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [script, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=folder, check=False,
            input=typed, env={**clean_environment(), **environment},
        )  # fmt: skip

    return call


class Model:
    """A model behind OpenAI's protocol that adds with a tool; the model `weak` does not. `asked` is what it heard."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.say: Callable[[dict[str, Any]], Any] = adds
        self.base_url = ""

    def answer(self, request: dict[str, Any]) -> Any:
        self.asked.append(request)
        return self.say(request)


def adds(request: dict[str, Any]) -> Any:
    last = request["messages"][-1]
    if last["role"] == "tool":
        return f"the answer is {last['content']}"
    if request["model"] == "weak":
        return "no idea"
    a, b = map(int, re.findall(r"\d+", str(last["content"]))[:2])
    call = {"name": "add", "arguments": json.dumps({"a": a, "b": b})}
    return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}


@pytest.fixture
def model() -> Iterator[Model]:
    """One that runs in a thread of its own, for as long as the test."""
    found, ready, done = Model(), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        hear = lambda request: found.keys.append(request.headers.get("authorization", ""))  # noqa: E731
        async with Double(found.answer, hear=hear) as double:
            found.base_url = double.base_url
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(5)
    yield found
    loop.call_soon_threadsafe(done.set)
    thread.join(5)
    loop.close()


@pytest.fixture
def controller() -> Any:
    """One that answers "4" to everything and acknowledges."""
    return Controller()
