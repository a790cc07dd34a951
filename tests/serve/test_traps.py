"""Traps of the wire that are about agents with samples of their own, settings, and the process: one test for each.

The others are where what they are about is tested; `test_traps_covered.py` says which trap is tested where.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from runner import RolloutAgentLoop, create_app
from runner.config.serve import ServeSection
from runner.serve.dialects.single_sample import SingleSample
from runner.serve.house import Opening, open_house
from runner.serve.http.server import hypercorn_config, listen
from runner.workflows.loop.settings import RolloutClientSettings, RolloutSettings

AGENTS = """
    from runner import AgentWorkflow, RolloutSample, get_rollout_context

    class Source:
        def __init__(self, *content, fault=None):
            self.content, self.fault = content, fault

        async def get_sample(self):
            if self.fault:
                raise self.fault
            return RolloutSample(messages=[{"role": "user", "content": "q"}, *self.content])

    class Agent:
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "4"}]
        system_prompt = "Be brief."

    class Play(AgentWorkflow):
        async def run(self, ctx):
            turn = await ctx.chat(ctx.prompt)
            context = get_rollout_context()
            %s
"""
PLAY = 'agent = "./agents.py:Play"'
SAID, GRADED = ("completion", "success", None), ("grader", "success", 1.0)
FAILED = [("completion", "failure", None), ("grader", "failure", None)]


def bodies(stage: Any, line: str, generation: int = 3, toml: str | None = None, **more: Any) -> list[dict[str, Any]]:
    """The callbacks of one rollout of an agent whose `run` goes on with `line`."""
    stage.write("agents.py", AGENTS % line)
    found: list[dict[str, Any]] = []

    async def test() -> None:
        controller = await stage.controller()
        settings = {} if toml is None else {"toml": toml}
        async with stage.serving(workflow=PLAY, serve='archive = "archive"', **settings) as server:
            assert (await server.start(controller.start_of("r", generation, **more))).status == 202
            await server.quiet()
            found.extend(seen.body for seen in controller.acked)

    stage.run(test)
    return found


@pytest.mark.parametrize("generation", [2, 3])
def test_trap_32_the_same_sample_name_twice_fails_and_names_the_agent(stage: Any, generation: int) -> None:
    twice = 'context.register_agent("solver", Agent()); context.register_agent("solver", Agent())'
    completion, grader = bodies(stage, twice, generation)
    assert completion["status"] == grader["status"] == "failure"
    assert "`solver` is registered already" in completion["err_message"]


@pytest.mark.parametrize("generation", [2, 3])
def test_trap_33_two_sample_sources_are_one_too_many(stage: Any, generation: int) -> None:
    two = 'context.register_sample_source("a", Source()); context.register_sample_source("b", Source())'
    completion, grader = bodies(stage, two, generation)
    assert completion["status"] == grader["status"] == "failure"
    assert "`a`, `b`" in completion["err_message"] and completion["err_category"] == "validation_error"


@pytest.mark.parametrize("generation", [2, 3])
def test_trap_34_the_system_prompt_is_the_first_message_of_the_sample(stage: Any, generation: int) -> None:
    grader = bodies(stage, 'context.register_agent("main", Agent())', generation)[-1]
    sample = grader["sample"] if generation == 3 else grader["samples"]["main"]
    assert sample["messages"][0] == {"role": "system", "content": "Be brief."} and sample["reward"] == 1.0
    archived = json.loads((stage.folder / "archive" / "r" / "trajectory.json").read_text())
    assert archived["steps"][0] == archived["steps"][0] | {"source": "system", "message": "Be brief."}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "4"},
        {"role": "assistant", "content": [{"type": "text", "text": "4"}]},
        {"role": "assistant", "content": [{"text": "4"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4", "annotations": []}]},
    ],
    ids=["a string", "parts", "blocks", "items of Responses"],
)
def test_trap_35_graders_read_the_answer_in_whatever_form_it_is(stage: Any, message: dict[str, Any]) -> None:
    grader = bodies(stage, f"context.set_sample_source(Source({message!r}))")[-1]
    assert (grader["status"], grader["sample"]["reward"]) == ("success", 1.0), grader


def test_trap_36_graders_see_the_label_of_the_start_though_the_sample_has_none(stage: Any) -> None:
    stage.write("code.py", "def labelled(ctx):\n    return 1.0 if ctx.label == '4' else 0.0\n")
    toml = '[graders.any]\nkind = "python"\ncall = "./code.py:labelled"\n'
    line = 'context.set_sample_source(Source({"role": "assistant", "content": "?"}))'
    grader = bodies(stage, line, toml=toml)[-1]
    assert (grader["status"], grader["sample"]["reward"]) == ("success", 1.0), grader


@pytest.mark.parametrize("generation", [2, 3])
def test_trap_97_a_source_that_raises_fails_the_rollout_and_what_was_said_is_kept(stage: Any, generation: int) -> None:
    completion, grader = bodies(stage, 'context.set_sample_source(Source(fault=ValueError("torn")))', generation)
    assert completion["status"] == grader["status"] == "failure" and "ValueError: torn" in completion["err_message"]
    archived = json.loads((stage.folder / "archive" / "r" / "trajectory.json").read_text())
    assert [step["message"] for step in archived["steps"]] == ["2+2?", "4"]  # as the engine has recorded it


def test_trap_107_after_a_failed_completion_the_grade_is_a_failure_too_and_that_is_all(stage: Any) -> None:
    """A controller of the second generation listens no more by then; it still acknowledges."""
    assert [body["status"] for body in bodies(stage, 'raise ValueError("no")', 2)] == ["failure", "failure"]


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_trap_70_more_than_can_play_are_taken_and_wait(stage: Any, generation: int) -> None:
    """Callers of the second generation know of no refusal."""
    assert ServeSection().max_queue >= 4096

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve="max_concurrent = 2") as server:
            starts = [controller.start_of(f"r{number}", generation) for number in range(60)]
            answers = await asyncio.gather(*map(server.start, starts))
            assert {answer.status for answer in answers} == {202}
            await server.quiet()
            assert len({seen.rollout for seen in controller.acked}) == 60

    stage.run(test)


def test_trap_74_arguments_that_are_no_object_are_kept_as_they_were_in_the_trajectory(stage: Any) -> None:
    def chat(seen: Any) -> Any:
        if seen.body["messages"][-1]["role"] == "tool":
            return "4"
        made = enumerate(("{", "[1]", "7", ""))
        function = {"name": "add"}
        return {"tool_calls": [{"id": f"c{place}", "type": "function", "function": {**function, "arguments": text}}
                               for place, text in made]}  # fmt: skip

    stage.write("code.py", 'def add(a: int) -> int:\n    "Adds."\n    return a\n')

    async def test() -> None:
        controller = await stage.controller(chat=chat)
        toml = '[tools.add]\ncall = "./code.py:add"\n[graders.answer]\nkind = "exact"\n'
        async with stage.serving(toml, serve='archive = "archive"') as server:
            await server.start(controller.start_of("r"))
            await server.quiet()
            assert controller.told("r") == [SAID, GRADED]
            told = [each for each in controller.chats[-1].body["messages"] if each["role"] == "tool"]
            assert [each["tool_call_id"] for each in told] == ["c0", "c1", "c2", "c3"]

    stage.run(test)
    steps = json.loads((stage.folder / "archive" / "r" / "trajectory.json").read_text())["steps"]
    calls = next(step["tool_calls"] for step in steps if step.get("tool_calls"))
    assert [call["arguments"] for call in calls[:3]] == [{"_raw": "{"}, {"_raw": "[1]"}, {"_raw": "7"}]


def test_trap_77_one_of_several_calls_raises_and_the_others_have_their_results(stage: Any) -> None:
    def chat(seen: Any) -> Any:
        return "4" if seen.body["messages"][-1]["role"] == "tool" else stage.calls("good", "bad", "good")

    stage.write("code.py", 'def good() -> str:\n    return "fine"\ndef bad() -> str:\n    raise ValueError("torn")\n')
    tools = "".join(f'[tools.{name}]\ncall = "./code.py:{name}"\ndescription = "x"\n' for name in ("good", "bad"))

    async def test() -> None:
        controller = await stage.controller(chat=chat)
        async with stage.serving(tools + '[graders.answer]\nkind = "exact"\n') as server:
            await server.start(controller.start_of("r"))
            await server.quiet()
            assert controller.told("r") == [SAID, GRADED]
            told = [each["content"] for each in controller.chats[-1].body["messages"] if each["role"] == "tool"]
            assert told[0] == told[2] == "fine" and "torn" in told[1]

    stage.run(test)


def test_trap_91_health_tells_the_true_numbers(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(0.3, "4"))
        async with stage.serving(serve="max_concurrent = 3") as server:
            for number in range(5):
                await server.start(controller.start_of(f"r{number}"))
            health = (await server.ask("GET", "/health")).body
            assert health["concurrency"] == health["concurrency"] | {"max_concurrent": 3, "running": 3, "queued": 2}
            await server.quiet()
            health = (await server.ask("GET", "/health")).body
            assert health["concurrency"] == health["concurrency"] | {"max_concurrent": 3, "running": 0, "queued": 0}

    stage.run(test)


def test_trap_93_event_logs_have_timestamps_in_order(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with open_house(stage.plan(), Opening(events=stage.folder / "events")) as house:
            body = controller.start_of("r")[1]
            assert (await house.engine.start(SingleSample(), body, json.dumps(body).encode())).status == 202
            await controller.until(2)

    stage.run(test)
    (log,) = (stage.folder / "events").rglob("*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    times = [line["ts"] for line in lines]
    assert len(lines) >= 4 and times == sorted(times) and times[0] > 1.7e9
    assert {line["rollout_id"] for line in lines} == {"r"} and all(line["event"] for line in lines)


def test_trap_94_the_port_is_9000_or_what_the_variable_says(tmp_path: Path) -> None:
    assert ServeSection().port == 9000
    (tmp_path / "workflow.toml").write_text('[workflow]\nname = "t"\n[graders.answer]\nkind = "exact"\n')
    listening = listen("127.0.0.1", 0)
    port = listening[0].getsockname()[1]
    for each in listening:
        each.close()
    command = [sys.executable, "-P", "-m", "runner.cli.main", "serve", str(tmp_path)]
    environ = {**os.environ, "_OSMOSIS_ROLLOUT_PORT": str(port)}
    served = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert served.stdout is not None
        assert json.loads(served.stdout.readline())["url"] == f"http://127.0.0.1:{port}"
    finally:
        served.terminate()
        served.communicate(timeout=20)


@pytest.mark.parametrize("words", [["--set", "serve.max_concurrent=0"], ["--set", "serve.max_concurrent=-1"]])
def test_trap_68_no_concurrency_at_all_is_a_mistake_and_no_default(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "workflow.toml").write_text('[workflow]\nname = "t"\n[graders.answer]\nkind = "exact"\n')
    command = [sys.executable, "-P", "-m", "runner.cli.main", "serve", str(tmp_path), *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1 and ended.stdout == ""
    assert re.search(r"max_concurrent.*at least 1|at least 1.*max_concurrent", ended.stderr, re.DOTALL), ended.stderr


class Once(RolloutAgentLoop):
    name = "once"

    def get_tools(self, request: Any) -> list[Any]:
        return []

    async def run(self, ctx: Any) -> Any:
        await ctx.chat(list(ctx.request.messages))
        return ctx.complete(list(ctx.request.messages))


@pytest.mark.parametrize(("retries", "chats"), [(0, 1), (2, 3)])
def test_trap_86_the_clients_part_of_the_settings_is_honoured(stage: Any, retries: int, chats: int) -> None:
    client = RolloutClientSettings(max_retries=retries, retry_base_delay=0.1, complete_rollout_retries=10)
    app = create_app(Once(), settings=RolloutSettings(client=client))
    acks = [500, 500, 200]

    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: "drop", ack=lambda seen: acks.pop(0))
        sockets, over = listen("127.0.0.1", 0), asyncio.Event()
        from hypercorn.asyncio import serve

        config = hypercorn_config({}, sockets)
        task = asyncio.ensure_future(serve(app, config, shutdown_trigger=over.wait, mode="asgi"))  # type: ignore[arg-type]
        try:
            server = stage.server(sockets[0].getsockname()[1])
            assert (await server.start(controller.start_of("r", 1))).status == 202
            await controller.until(1, seconds=10)
        finally:
            over.set()
            await task
            for each in sockets:
                each.close()
        assert len(controller.chats) == chats
        assert [seen.body["status"] for seen in controller.callbacks] == ["ERROR"] * 3

    stage.run(test)


def test_trap_95_each_event_loop_of_a_process_has_its_own_connections(tmp_path_factory: Any, stage: Any) -> None:
    """Two servers in two threads at once, and a third when they are gone: of one process, on three loops."""
    made = type(stage)
    stages = [made(tmp_path_factory.mktemp("loop")) for _ in range(3)]
    told: dict[int, Any] = {}

    def serve(number: int) -> None:
        own = stages[number]

        async def test() -> None:
            controller = await own.controller()
            async with own.serving() as server:
                for each in range(5):
                    await server.start(controller.start_of(f"r{each}", 2 + each % 2))
                await server.quiet()
                told[number] = [controller.told(f"r{each}") for each in range(5)]

        own.run(test)

    threads = [threading.Thread(target=serve, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    serve(2)
    assert told == dict.fromkeys(range(3), [[SAID, GRADED]] * 5)
