"""Rollouts per second of an agent of Strands: through our engine, and with Strands' own LiteLLMModel.

The same versions, the same agent with one tool, the same two calls to the same endpoint, streamed by litellm as it is
by default; each kind in a process of its own, on the same core, in turn. Ours also renders the prompt, records and
grades. Imports are timed in processes of their own: what a workflow costs before its first call.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness import measure, model_server, sound, write_report

PAIRS = 3
OURS, PLAIN, IN_FLIGHT = 1500, 150, 32
WARM = 5
ARGUMENTS = '{"a": 2, "b": 2}'
CODE = '''
from strands import tool
from runner import AgentWorkflow, OsmosisRolloutModel, OsmosisStrandsAgent

@tool
def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return str(a + b)

class Play(AgentWorkflow):
    async def run(self, ctx):
        agent = OsmosisStrandsAgent(name="adder", model=OsmosisRolloutModel(params={"temperature": 1.0}), tools=[add],
                                    system_prompt="Use the tool.", messages=ctx.prompt, callback_handler=None)
        await agent.invoke_async()
'''
TOML = """
[workflow]
agent = "./agents.py:Play"
user = "{{ row.user_prompt }}"
[model]
id = "openai/bench"
base_url = "URL"
[dataset]
path = "rows.jsonl"
[graders.answer]
kind = "contains"
expect = "4"
"""


async def in_turn(play: Any, count: int) -> float:
    """Rollouts per second after a few that are not counted."""
    for _ in range(WARM):
        await play()
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with room:
            await play()

    started = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(count)])
    return count / (time.perf_counter() - started)


async def ours(folder: Path) -> float:
    from runner import build, load, run_rollout

    plan = build(load(folder / "workflow.toml"))
    assert plan.dataset is not None
    row = next(iter(plan.dataset.rows()))
    async with plan.open() as live:

        async def play() -> None:
            outcome = await run_rollout(live, plan.request(row, 0))
            assert outcome.reward == 1.0, outcome
            assert len(outcome.sample.calls) == 2
            assert len(outcome.sample.tool_spans) == 1

        return await in_turn(play, OURS)


async def plain(folder: Path, url: str) -> float:
    from strands import Agent
    from strands.models.litellm import LiteLLMModel

    sys.path.append(str(folder))
    from agents import add

    async def play() -> None:
        model = LiteLLMModel({"api_base": url, "api_key": "none"}, model_id="openai/bench", params={"temperature": 1.0})
        agent = Agent(model=model, tools=[add], system_prompt="Use the tool.", callback_handler=None,
                      messages=[{"role": "user", "content": [{"text": "2+2?"}]}])  # fmt: skip
        result = await agent.invoke_async()
        assert "4" in str(result)
        assert len(agent.messages) == 4

    return await in_turn(play, PLAIN)


IMPORTS = {
    "our Strands classes": "from runner import OsmosisRolloutModel, OsmosisStrandsAgent",
    "strands alone": "import strands",
    "strands and its LiteLLMModel": "import strands; from strands.models.litellm import LiteLLMModel",
}


def import_cost(code: str) -> tuple[float, int, int]:
    """CPU seconds, modules and peak MB, of the best of three; an interpreter's own start is taken off."""
    runs = [sound(measure([sys.executable, "-c", f"{code}; import sys; print(len(sys.modules))"])) for _ in range(3)]
    empty = min(sound(measure([sys.executable, "-c", "pass"])).cpu for _ in range(3))
    best = min(runs, key=lambda run: run.cpu)
    return round(best.cpu - empty, 2), int(best.out.split()[-1]), round(best.peak / 1e6)


def main() -> None:
    figures: dict[str, object] = {name: version(name) for name in ("strands-agents", "litellm")}
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    with tempfile.TemporaryDirectory() as place, model_server("--two-step", ARGUMENTS, "--fixed", "4") as url:
        folder = Path(place)
        (folder / "agents.py").write_text(CODE)
        (folder / "workflow.toml").write_text(TOML.replace("URL", url))
        (folder / "rows.jsonl").write_text(json.dumps({"user_prompt": "2+2?", "ground_truth": "4"}) + "\n")
        for _ in range(PAIRS):
            for kind, rate in rates.items():
                rate.append(float(sound(measure([sys.executable, __file__, kind, place, url])).out.split()[-1]))
    ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates["plain"], strict=True))
    figures["ours, rollouts/s"] = round(statistics.median(rates["ours"]))
    figures["Strands with LiteLLM, rollouts/s"] = round(statistics.median(rates["plain"]))
    figures["ratio"] = round(ratio, 1)
    figures["wanted"] = ">= 4"
    for name, code in IMPORTS.items():
        figures[f"import {name}: CPU s, modules, peak MB"] = import_cost(code)
    write_report("strands_rate", figures)
    if ratio < 4:
        raise SystemExit("an agent of Strands is less than 4 times as fast as with litellm")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        kind, folder, url = sys.argv[1:]
        print(asyncio.run(ours(Path(folder)) if kind == "ours" else plain(Path(folder), url)))
    else:
        main()
