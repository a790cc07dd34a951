"""Every example of the four seed documents, over real HTTP against the simulated controller.

Nothing is changed but the import line, and not even that where our own loader imports the module. A fragment (a bare
`async def run`, a statement) is put, as it stands, where its document says that it belongs.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import validate_agent_loop
from runner.build.importing import Importer
from runner.simulate.starts import AGENT_LOOP, DIALECTS, MULTI_SAMPLE, SINGLE_SAMPLE

Block = Callable[[str], str]
ROLLOUTS = (MULTI_SAMPLE, SINGLE_SAMPLE)
LOOP = """
from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutResult
{before}

class Fragment(RolloutAgentLoop):
    name = "fragment"

    def get_tools(self, request):
        return []

{run}
"""
OK = {"label": "OK", "metadata": {}}


def ours(text: str) -> str:
    """The same, with nothing changed but the import lines."""
    for module in ("osmosis_ai.rollout.integrations.agents.strands", "osmosis_ai.rollout.core.schemas",
                   "osmosis_ai.rollout.tools", "osmosis_ai.rollout.config", "osmosis_ai.rollout",
                   "osmosis_ai"):  # fmt: skip
        text = text.replace(f"from {module} import", "from runner import")
    assert "osmosis_ai" not in text
    return text


def told(histories: list[Any]) -> list[tuple[str, float | None]]:
    assert all(history.accepted for history in histories), [history.answer for history in histories]
    return [(history.verdict.status, history.verdict.reward) for history in histories]


def loop_of(run: str, before: str = "") -> str:
    return LOOP.replace("{before}", before).replace("{run}", textwrap.indent(run, "    "))


def roles(wire: Any, history: Any) -> list[str]:
    """Of the messages that came back, whatever the dialect calls them."""
    sample = wire.sample_of(history)
    return [message["role"] for message in sample.get("messages") or sample["final_messages"]]


# -- the guide to agent loops


@pytest.mark.parametrize("change", [ours, str])
def test_the_calculator(stage: Any, wire: Any, block: Block, change: Callable[[str], str]) -> None:
    name = f"{change.__name__}_calculator"
    stage.write(f"{name}.py", change(block("agent-loop-guide/calculator.py")))
    model = wire.uses("add", {"a": 5, "b": 3}, "5 + 3 is 8")
    workflow = f'agent = "./{name}.py:agent_loop"'
    histories = wire.played(stage, model, workflow=workflow, label="8", metadata={})
    assert told(histories) == [("success", 1.0)] * 3
    for history in histories:
        assert roles(wire, history) == ["user", "assistant", "tool", "assistant"]
        assert wire.sample_of(history)["metrics"]["num_tool_calls"] == 1
        offered = [tool["function"]["name"] for tool in history.asked[0].get("tools", [])]
        assert offered == ([] if history.dialect == AGENT_LOOP else ["add", "multiply"])
    (wrong,) = wire.played(stage, wire.Says(lambda messages: "7"), workflow=workflow, label="8", dialects=[AGENT_LOOP])
    assert told([wrong]) == [("success", 0.0)]


def test_the_skeleton_says_what_is_missing(stage: Any, block: Block) -> None:
    stage.write("skeleton.py", block("agent-loop-guide/skeleton.py"))
    found = Importer().find("./skeleton.py:MyAgent", stage.folder)
    assert [error.code for error in validate_agent_loop(found.value()).errors] == ["GET_TOOLS_RETURNS_NONE"]
    with pytest.raises(runner.AgentLoopValidationError, match="GET_TOOLS_RETURNS_NONE"):
        runner.create_app(found.value())


@pytest.mark.parametrize("schemas", ["agent-loop-guide/schema_format.py", "agent-loop-guide/plain_tools.py"])
def test_schemas_and_tool_helpers(stage: Any, wire: Any, block: Block, schemas: str) -> None:
    """`TOOLS`, `execute_tool` and the parallel execution, as parts of one agent."""
    name = schemas.split("/")[1].removesuffix(".py")
    parallel = textwrap.indent(block("agent-loop-guide/parallel.py"), "    ")
    stage.write(
        f"{name}.py",
        f"""
from osmosis_ai.rollout import RolloutAgentLoop
from osmosis_ai.rollout.tools import ToolArgumentError, execute_tool_calls
{block(schemas)}

async def do_search(query):
    return {{"found": query}}

{block("agent-loop-guide/execute_tool.py")}

async def at_once(tool_calls):
{parallel}
    return results


class Searches(RolloutAgentLoop):
    name = "searches"

    def get_tools(self, request):
        return TOOLS

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        while True:
            result = await ctx.chat(messages)
            messages.append(result.message)
            if not result.has_tool_calls:
                return ctx.complete(messages, reward=1.0)
            assert await at_once(result.tool_calls) == [None] * len(result.tool_calls)  # its own tool does nothing
            messages += await execute_tool_calls(result.tool_calls, execute_tool)
""",
    )
    asked = wire.calls(("search", {"query": "x"}), ("search", "{"), ("other", {}))
    model = wire.Says(lambda messages: "done" if messages[-1]["role"] == "tool" else asked)
    histories = wire.played(stage, model, workflow=f'agent = "./{name}.py:Searches"')
    assert told(histories) == [("success", 1.0)] * 3
    for history in histories:
        found, torn, other = (message["content"] for message in history.asked[1]["messages"][-3:])
        assert (found, other) == ('{"found": "x"}', "Error: Unknown tool: other")
        assert torn.startswith("Error: ")
        if history.dialect != AGENT_LOOP:
            schema = history.asked[0]["tools"][0]["function"]["parameters"]
            assert schema["properties"]["query"] == {"type": "string", "description": "Search query"}


@pytest.mark.parametrize(
    ("fragment", "before", "status", "reward"),
    [
        ("reward_required", "messages = [{'role': 'assistant', 'content': 'OK'}]\nfinish_reason = 'stop'\n"
         "def compute_reward_from_messages(messages, metadata):\n    return 0.5\n", "success", 0.5),
        ("reward_optional", "messages = [{'role': 'assistant', 'content': 'OK'}]\nfinish_reason = 'stop'\n",
         "success", None),
        ("error", "messages = [{'role': 'assistant', 'content': 'OK'}]\n", "success", None),
        # Without `messages` its own handler answers: the rollout failed, and the cluster reads why.
        ("error", "", "failure", None),
    ],
)  # fmt: skip
def test_fragments_of_run(
    stage: Any, wire: Any, block: Block, fragment: str, before: str, status: str, reward: float | None
) -> None:
    name = f"{fragment}{len(before)}"
    stage.write(f"{name}.py", loop_of(block(f"agent-loop-guide/{fragment}.py"), before))
    workflow = f'agent = "./{name}.py:Fragment"'
    (history,) = wire.played(stage, wire.Says(lambda messages: "OK"), workflow=workflow, dialects=[AGENT_LOOP])
    assert told([history]) == [(status, reward)]
    if status == "failure":
        assert "Agent failed: name 'messages' is not defined" in history.verdict.message


def test_log_events_are_written(stage: Any, wire: Any, block: Block, tmp_path: Path) -> None:
    """The fragment has no end of its own: a class below it gives one. Its log is a file for each rollout."""
    before = "from types import SimpleNamespace\nfinish_reason, reward = 'stop', 1.0\n"
    before += "result = SimpleNamespace(has_tool_calls=False, usage={'total_tokens': 3})\n"
    text = loop_of(block("agent-loop-guide/log_event.py"), before) + textwrap.dedent("""
        class Ends(Fragment):
            async def run(self, ctx):
                await super().run(ctx)
                return ctx.complete([{"role": "assistant", "content": "OK"}])
    """)
    stage.write("logs_event.py", text)
    found = Importer().find("./logs_event.py:Ends", stage.folder)
    app = runner.create_app(found.value(), debug_dir=str(tmp_path / "logs"))
    plan = stage.plan("", "", 'agent = "./logs_event.py:Ends"')
    histories: list[Any] = []

    async def test() -> None:
        async with served(app) as port, wire.wired(plan, port, wire.Says(lambda messages: "OK")) as line:
            histories.append(await line.play(AGENT_LOOP))

    stage.run(test)
    assert told(histories) == [("success", None)]
    (log,) = (tmp_path / "logs").rglob("*.jsonl")
    assert histories[0].rollout_id in log.name
    events = log.read_text()
    for event in ("agent_start", "llm_response", "agent_complete"):
        assert f'"{event}"' in events


@pytest.mark.parametrize(
    ("grader", "answer", "reward"),
    [
        ("compute_reward", " OK ", 1.0),
        ("compute_reward", "no", 0.0),
        ("compute_reward_from_messages", "OK", 1.0),
        ("extracted", "so it is\n#### OK\n", 1.0),
    ],
)
def test_reward_functions(stage: Any, wire: Any, block: Block, grader: str, answer: str, reward: float) -> None:
    texts = [block(f"agent-loop-guide/{name}.py") for name in ("reward", "helpers", "extract")]
    texts.append(
        "\ndef extracted(solution_str, ground_truth):\n    return extract_answer(solution_str) == ground_truth\n"
    )
    stage.write("rewards.py", "\n\n".join(texts))
    toml = f'[graders.own]\nkind = "python"\ncall = "./rewards.py:{grader}"\n'
    histories = wire.played(stage, wire.Says(lambda messages: answer), workflow='agent = "chat"', toml=toml, **OK)
    assert told(histories) == [("success", reward)] * 3


# -- the SDK's overview, and applications of one's own


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """The port of `app`, run by an ASGI server."""
    from hypercorn.asyncio import serve

    from runner.serve.http.server import hypercorn_config, listen

    sockets, over = listen("127.0.0.1", 0), asyncio.Event()
    task = asyncio.ensure_future(serve(app, hypercorn_config({}, sockets), shutdown_trigger=over.wait, mode="asgi"))  # type: ignore[arg-type]
    try:
        yield sockets[0].getsockname()[1]
    finally:
        over.set()
        await task
        for each in sockets:
            each.close()


QUICK = ("remote-rollout-sdk/agent_loop.py", "remote-rollout-sdk/create_app.py")
WITH_TOOL = """

class Searches(MyAgentLoop):
    async def execute_tool(self, tool_call):
        return {"role": "tool", "tool_call_id": tool_call["id"], "content": "found"}
"""


def test_the_quick_start_from_a_file(stage: Any, wire: Any, block: Block) -> None:
    """Its `execute_tool` is left to the reader: called without one, the rollout fails and says so."""
    stage.write("quick.py", "\n\n".join(map(block, QUICK)) + WITH_TOOL)
    model = wire.uses("search", {}, "OK")
    histories = wire.played(stage, model, workflow='agent = "./quick.py:Searches"')
    assert histories[0].verdict.status == "success"
    assert [roles(wire, history) for history in histories[:1]] == [["user", "assistant", "tool", "assistant"]]
    (left,) = wire.played(stage, model, workflow='agent = "./quick.py:MyAgentLoop"', dialects=[AGENT_LOOP])
    assert left.verdict.status == "failure"
    assert "execute_tool" in left.verdict.message


def test_the_quick_start_is_graded_by_the_file(stage: Any, wire: Any, block: Block) -> None:
    stage.write("graded_quick.py", "\n\n".join(map(block, QUICK)))
    toml = '[graders.answer]\nkind = "exact"\n'
    workflow = 'agent = "./graded_quick.py:MyAgentLoop"'
    histories = wire.played(stage, wire.Says(lambda messages: "OK"), workflow=workflow, toml=toml, **OK)
    assert told(histories) == [("success", 1.0)] * 3


@pytest.mark.parametrize(
    "example",
    [
        "remote-rollout-sdk/create_app.py",
        "remote-rollout-sdk/options.py",
        "agent-loop-guide/server_options.py",
        "agent-loop-guide/settings.py",
    ],
)
def test_applications_serve_a_cluster(
    stage: Any, wire: Any, block: Block, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # `debug_dir="./logs"`
    stage.write("app.py", block(QUICK[0]))
    loop = Importer().find("./app.py:MyAgentLoop", stage.folder).value
    called: list[str] = []

    async def start() -> None:
        called.append("start")

    async def stop() -> None:
        called.append("stop")

    names: dict[str, Any] = {
        "MyAgentLoop": loop, "agent_loop": loop(), "create_app": runner.create_app,
        "async_startup_fn": start, "async_shutdown_fn": stop,
    }  # fmt: skip
    exec(compile(ours(block(example)), example, "exec"), names)  # noqa: S102 (the example itself)
    histories: list[Any] = []

    async def test() -> None:
        plan = stage.plan("", "", 'agent = "./app.py:MyAgentLoop"')
        async with served(names["app"]) as port, wire.wired(plan, port, wire.Says(lambda messages: "OK")) as line:
            histories.append(await line.play(AGENT_LOOP))
            assert line.breaches == []

    stage.run(test)
    assert told(histories) == [("success", None)]
    assert called == (["start", "stop"] if "server_options" in example else [])


def test_the_tool_schema_is_what_a_cluster_is_told(stage: Any, wire: Any, block: Block) -> None:
    names = "OpenAIFunctionToolSchema, OpenAIFunctionSchema, OpenAIFunctionParametersSchema, "
    text = f"from osmosis_ai.rollout import {names}OpenAIFunctionPropertySchema\nTOOL = "
    text += block("remote-rollout-sdk/tool_schema.py")
    text += loop_of("async def run(self, ctx):\n    return ctx.complete(list(ctx.request.messages))\n")
    stage.write("schema.py", text.replace("return []", "return [TOOL]"))
    (history,) = wire.played(
        stage, wire.Says(lambda messages: "OK"), workflow='agent = "./schema.py:Fragment"', dialects=[AGENT_LOOP]
    )
    assert b'"tool_name"' in history.answer
    assert b'"arg1"' in history.answer


@contextmanager
def process(*words: str, folder: Path, shell: str = "", **more: str) -> Iterator[subprocess.Popen[str]]:
    """A command in `folder`; with `shell`, after those lines of shell."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OSMOSIS_")} | more
    command = list(words) if not shell else ["/bin/sh", "-c", shell]
    running = subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield running
    finally:
        running.terminate()
        running.communicate(timeout=20)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_uvicorn_runs_the_application(stage: Any, wire: Any, block: Block) -> None:
    """The command of the document, on a port that is free."""
    pytest.importorskip("uvicorn")
    stage.write("main.py", ours("\n\n".join(map(block, QUICK))))
    port = free_port()
    command = block("remote-rollout-sdk/run.sh").strip().replace("9000", str(port))
    histories: list[Any] = []

    async def test() -> None:
        plan = stage.plan("", "", 'agent = "./main.py:MyAgentLoop"')
        async with wire.wired(plan, port, wire.Says(lambda messages: "OK")) as line:
            await until_it_listens(port)
            histories.append(await line.play(AGENT_LOOP))
            health = await line.client.send("GET", "/health")
            metrics = await line.client.send("GET", "/metrics")
            assert (health.status, metrics.status) == (200, 200)

    with process(sys.executable, "-m", *command.split(), folder=stage.folder):
        stage.run(test)
    assert told(histories) == [("success", None)]


async def until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


@pytest.mark.parametrize(
    ("example", "settings"),
    [
        ("remote-rollout-sdk/settings.sh",
         {"serve.log.level": "info", "serve.metrics.enabled": "true", "serve.metrics.prefix": "my_agent"}),
        ("agent-loop-guide/environment.sh", {"serve.chat.timeout": "120", "serve.chat.retries.attempts": "6"}),
    ],
)  # fmt: skip
def test_settings_of_the_environment(stage: Any, block: Block, example: str, settings: dict[str, str]) -> None:
    stage.plan("")
    lines = [line for line in block(example).splitlines() if line.startswith("export ")]
    assert lines
    for key, value in settings.items():
        asks = f"{sys.executable} -m runner.cli.main explain {key} --color never"
        ended = subprocess.run(
            ["/bin/sh", "-c", "\n".join([*lines, asks])], cwd=stage.folder, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert value in ended.stdout, ended.stdout
        assert "OSMOSIS_ROLLOUT_" in ended.stdout


@pytest.mark.parametrize("example", ["agent-loop-guide/environment.sh", "agent-loop-guide/log.sh"])
def test_commands_of_the_first_generation(stage: Any, wire: Any, block: Block, example: str) -> None:
    """`osmosis serve -m server:agent_loop`, with our name for the command and a free port."""
    stage.write("server.py", block("agent-loop-guide/calculator.py"))
    port = free_port()
    text = block(example).replace("osmosis serve", f"exec {sys.executable} -m runner.cli.main serve --port {port}")
    histories: list[Any] = []

    async def test() -> None:
        plan = stage.plan("", "", 'agent = "./server.py:agent_loop"')
        async with wire.wired(plan, port, wire.uses("add", {"a": 5, "b": 3}, "8"), key=key) as line:
            histories.append(await line.play(AGENT_LOOP, label="8"))

    with process(folder=stage.folder, shell=text) as running:
        assert running.stdout is not None
        told_it = next(line for line in running.stdout if line.startswith("{"))
        key = json.loads(told_it)["api_key"]  # as its first generation did, it makes one that callers must bring
        stage.run(test)
    assert told(histories) == [("success", 1.0)]
    assert bool(list((stage.folder / "logs").rglob("*.jsonl"))) == ("--log" in text)


# -- AgentWorkflow and Strands


STRANDS = {
    "agent-workflow/tools.py": ("SearchWorkflow", "search", {"query": "x"}, "results for x"),
    "strands-integration/search.py": ("SearchWorkflow", "search", {"query": "x"}, "Results for: x"),
    "strands-integration/math.py": ("MathAgentWorkflow", "calculator", {"expression": "6*7"}, "42"),
}


@pytest.mark.parametrize("change", [ours, str])
@pytest.mark.parametrize("example", STRANDS)
def test_strands_agents(stage: Any, wire: Any, block: Block, example: str, change: Callable[[str], str]) -> None:
    pytest.importorskip("strands")
    workflow, tool, arguments, result = STRANDS[example]
    name = f"{change.__name__}_{example.split('/')[1]}"
    stage.write(name, change(block(example)))
    grader = f'kind = "python"\ncall = "./{name}:MathGrader"' if "math" in name else 'kind = "exact"'
    histories = wire.played(
        stage,
        wire.uses(tool, arguments, "OK"),
        workflow=f'agent = "./{name}:{workflow}"',
        toml=f"[graders.answer]\n{grader}\n",
        **OK,
    )
    assert told(histories) == [("success", 1.0)] * 3
    for history in histories:
        assert history.asked[1]["messages"][-1]["content"] == result
        assert {asked["temperature"] for asked in history.asked} == {1.0}


@pytest.mark.parametrize("maximum", [None, 3])
def test_the_config_of_a_workflow(stage: Any, wire: Any, block: Block, maximum: int | None) -> None:
    """As it stands it asks nobody; below it, a class does, with the values that the file gave."""
    below = """

class Asks(ConfigurableWorkflow):
    async def run(self, ctx):
        assert await super().run(ctx) is None
        ask = {"role": "user", "content": f"{ctx.config.max_iterations} {ctx.config.temperature}"}
        await ctx.chat([*ctx.prompt, ask])
"""
    stage.write("configured.py", block("agent-workflow/config.py") + below)
    config = "" if maximum is None else f"\nconfig = {{ max_iterations = {maximum} }}"
    toml = '[graders.answer]\nkind = "exact"\n'
    model = wire.Says(lambda messages: "OK")
    histories = wire.played(stage, model, workflow=f'agent = "./configured.py:Asks"{config}', toml=toml, **OK)
    assert told(histories) == [("success", 1.0)] * 3
    assert {history.asked[0]["messages"][-1]["content"] for history in histories} == {f"{maximum or 10} 0.7"}
    bare = wire.played(
        stage, model, workflow=f'agent = "./configured.py:ConfigurableWorkflow"{config}', toml=toml, **OK
    )
    assert [history.chats for history in bare] == [0, 0, 0]


def test_migrating_an_agent(stage: Any, wire: Any, block: Block) -> None:
    """The four changes of the guide: two import lines, the class, and a workflow around it."""
    pytest.importorskip("strands")
    text = block("strands-integration/agent_import.py") + block("strands-integration/model_import.py")
    stage.write(
        "migrated.py",
        f"""
{text}
from osmosis_ai.rollout import AgentWorkflow

class Migrated(AgentWorkflow):
    async def run(self, ctx):
        agent = OsmosisStrandsAgent(model=model, system_prompt="Be brief.", messages=ctx.prompt, callback_handler=None)
        await agent.invoke_async()
""",
    )
    toml = '[graders.answer]\nkind = "exact"\n'
    model = wire.Says(lambda messages: "OK")
    histories = wire.played(stage, model, workflow='agent = "./migrated.py:Migrated"', toml=toml, **OK)
    assert told(histories) == [("success", 1.0)] * 3
    assert [roles(wire, history) for history in histories] == [["system", "user", "assistant"]] * len(DIALECTS)
