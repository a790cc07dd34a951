"""The first generation's examples, to the letter, and what they were written for: a training cluster over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

import runner
from runner import RolloutContext, RolloutRequest, create_app, osmosis_reward, validate_agent_loop
from runner.build.importing import Importer

ADD = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 5, "b": 3}'}}
BAD = {"id": "c2", "type": "function", "function": {"name": "add", "arguments": "{"}}
ODD = {"id": "c3", "type": "function", "function": {"name": "divide", "arguments": "{}"}}
Seed = Callable[[str], str]


def imported(tmp_path: Path, text: str, name: str = "server.py") -> Any:
    """The module, imported as a workflow file's code is: `osmosis_ai` is not installed here."""
    (tmp_path / name).write_text(text)
    found = Importer().find(f"./{name}:__name__", tmp_path)
    return sys.modules[found.value]


def ours(text: str) -> str:
    """The same, with nothing changed but the import lines."""
    for module in ("osmosis_ai.rollout.core.schemas", "osmosis_ai.rollout.tools", "osmosis_ai.rollout.config",
                   "osmosis_ai.rollout", "osmosis_ai"):  # fmt: skip
        text = text.replace(f"from {module} import", "from runner import")
    return text


def run(text: str, **names: Any) -> dict[str, Any]:
    code = compile(ours(text), "seed", "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    ended = FunctionType(code, names)()
    if asyncio.iscoroutine(ended):  # an example that awaits outside a function
        asyncio.run(ended)
    return names


def adds(seen: Any) -> Any:
    """A cluster's model: three calls at once, then an answer."""
    last = seen.body["messages"][-1]
    if last["role"] == "tool":
        return "5 + 3 is 8"
    return {"content": None, "tool_calls": [ADD, BAD, ODD]}


def check_calculator(controller: Any, name: str) -> None:
    """What the cluster saw of the calculator's rollout."""
    (ended,) = [seen.body for seen in controller.acked if seen.rollout == name]
    assert (ended["status"], ended["finish_reason"], ended["reward"]) == ("COMPLETED", "stop", 1.0), ended
    assert [message["role"] for message in ended["final_messages"]] == ["user", "assistant", *["tool"] * 3, "assistant"]
    contents = [message["content"] for message in ended["final_messages"][2:5]]
    assert contents[0] == "8"
    assert contents[1].startswith("Error: ")
    assert contents[2] == "Error: Unknown tool: divide"
    assert ended["metrics"]["num_llm_calls"] == 2
    first = controller.chats[0].body
    assert (first["temperature"], first["rollout_id"], first["logprobs"]) == (0.5, name, True)
    assert "tools" not in first


@pytest.mark.parametrize("change", [ours, str])
def test_the_calculator_from_a_file_in_serve(stage: Any, seed: Seed, change: Callable[[str], str]) -> None:
    name = f"{change.__name__}_server.py"
    stage.write(name, change(seed("calculator")))

    async def test() -> None:
        controller = await stage.controller(adds)
        async with stage.serving("", workflow=f'agent = "./{name}:agent_loop"') as server:
            more = {"metadata": {"ground_truth": "8"}, "completion_params": {"temperature": 0.5}}
            reply = await server.start(controller.start_of("r1", 1, **more))
            assert reply.status == 202
            tools = [tool["function"]["name"] for tool in reply.body["tools"]]
            assert tools == ["add", "multiply"]
            await controller.until(1, "r1")
        check_calculator(controller, "r1")

    stage.run(test)


def test_the_calculator_stops_where_the_cluster_says(stage: Any, seed: Seed) -> None:
    stage.write("limited_server.py", seed("calculator"))

    async def test() -> None:
        controller = await stage.controller(lambda seen: {"content": None, "tool_calls": [ADD]})
        async with stage.serving("", workflow='agent = "./limited_server.py:CalculatorAgent"') as server:
            await server.start(controller.start_of("turns", 1, max_turns=2, metadata={}))
            await server.start(controller.start_of("tokens", 1, max_tokens_total=2, metadata={}))
            await controller.until(2)
        ended = {seen.rollout: seen.body for seen in controller.acked}
        assert (ended["turns"]["status"], ended["turns"]["finish_reason"]) == ("COMPLETED", "max_turns")
        assert (ended["tokens"]["status"], ended["tokens"]["finish_reason"]) == ("COMPLETED", "max_tokens")
        assert "reward" not in ended["turns"]
        assert len([seen for seen in controller.chats if seen.rollout == "turns"]) == 2

    stage.run(test)


def test_the_calculator_in_eval(project: Any, seed: Seed) -> None:
    project.write("eval_server.py", seed("calculator"))
    call = project.says(None, ("add", '{"a": 5, "b": 3}'))
    row = {"user_prompt": "add 5 and 3", "ground_truth": "8"}
    outcome = project.play("", call, project.says("8"), workflow='agent = "./eval_server.py:agent_loop"', row=row)
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    assert outcome.sample.metrics["num_tool_calls"] == 1


# -- the other examples


def test_the_quick_start(project: Any, seed: Seed) -> None:
    text = ours(seed("quick_start"))
    own = """

class Searches(MyAgentLoop):
    name = "searches"

    async def execute_tool(self, tool_call):
        return {"role": "tool", "tool_call_id": tool_call["id"], "content": "found"}
"""
    project.write("quick.py", text + own)
    found = project.says(None, ("search", "{}"))
    outcome = project.play(
        '[graders.answer]\nkind = "exact"\n', found, project.says("4"), workflow='agent = "./quick.py:Searches"'
    )
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    assert outcome.sample.messages[2]["content"] == "found"
    assert outcome.sample.metrics["num_tool_calls"] == 1


def test_the_skeleton_says_what_is_missing(tmp_path: Path, seed: Seed) -> None:
    loop = imported(tmp_path, seed("skeleton")).MyAgent()
    assert [error.code for error in validate_agent_loop(loop).errors] == ["GET_TOOLS_RETURNS_NONE"]


def test_the_schemas(seed: Seed) -> None:
    typed, plain = run(seed("schema_format"))["TOOLS"], run(seed("plain_tools"))["TOOLS"]
    dumped = typed[0].model_dump(exclude_none=True)
    assert dumped["function"].pop("strict") is False
    assert [dumped] == plain
    names = dict.fromkeys(("OpenAIFunctionToolSchema", "OpenAIFunctionSchema"))
    every = {name: getattr(runner, name) for name in dir(runner) if name.startswith("OpenAI")}
    assert names.keys() < every.keys()
    run(seed("tool_schema"), **every)


def test_the_tool_helpers(seed: Seed) -> None:
    async def do_search(query: str) -> dict[str, str]:
        return {"q": query}

    helpers = run(seed("execute_tool"), do_search=do_search, ToolArgumentError=runner.ToolArgumentError)
    execute = helpers["execute_tool"]

    async def ask(arguments: str, name: str = "search") -> str:
        call = {"id": "c1", "function": {"name": name, "arguments": arguments}}
        answer = await execute(call)
        assert answer["tool_call_id"] == "c1"
        return str(answer["content"])

    assert asyncio.run(ask('{"query": "x"}')) == '{"q": "x"}'
    assert asyncio.run(ask("{}", "other")) == "Error: Unknown tool: other"
    assert asyncio.run(ask("{")).startswith("Error: ")
    parallel = run(seed("parallel"), tool_calls=[1, 2])
    assert parallel["results"] == [None, None]


def test_the_server_options(seed: Seed) -> None:
    from runner.workflows.loop.agent_loop import RolloutAgentLoop

    class Loop(RolloutAgentLoop):
        name = "loop"

        def get_tools(self, request: Any) -> list[Any]:
            return []

        async def run(self, ctx: Any) -> Any: ...

    async def hook() -> None: ...

    names = {"agent_loop": Loop(), "async_startup_fn": hook, "async_shutdown_fn": hook, "create_app": create_app}
    for example in ("server_options", "settings", "options"):
        made = run(seed(example), **names)
        assert made["app"].title == "Osmosis RolloutServer (loop)"
    assert run(seed("settings"), **names)["settings"].client.retry_max_delay == 30.0


def test_the_reward_functions(project: Any, seed: Seed) -> None:
    made = run(seed("reward"))
    assert made["compute_reward"](" 4 ", "4", data_source="x") == 1.0
    assert made["get_last_assistant_content"]([{"role": "assistant", "content": "a"}, {"role": "user"}]) == "a"
    assert made["compute_reward_from_messages"]([{"role": "assistant", "content": "4"}], "4") == 1.0
    assert made["compute_reward_from_messages"]([], None) is None
    assert made["extract_answer"]("so #### 4\n") == "4"
    project.write("rewards.py", seed("reward"))
    toml = '[graders.own]\nkind = "python"\ncall = "./rewards.py:compute_reward"\n'
    assert project.play(toml, project.says("4")).reward == 1.0
    assert osmosis_reward is runner.osmosis_reward


@pytest.mark.parametrize(
    ("example", "status", "reward"),
    [("error", "COMPLETED", None), ("log_event", None, None), ("reward_required", "COMPLETED", 1.0),
     ("reward_optional", "COMPLETED", None)],
)  # fmt: skip
def test_fragments_of_run(seed: Seed, example: str, status: str | None, reward: float | None) -> None:
    names = {
        "RolloutContext": RolloutContext, "RolloutResult": runner.RolloutResult, "messages": [],
        "finish_reason": "stop", "compute_reward_from_messages": lambda messages, truth: 1.0, "reward": 1.0,
        "result": SimpleNamespace(has_tool_calls=False, usage={}),
    }  # fmt: skip
    heard: list[str] = []
    request = RolloutRequest(rollout_id="r", server_url="http://x", messages=[], completion_params={})
    llm: Any = SimpleNamespace(get_metrics=runner.RolloutMetrics)
    ctx = RolloutContext(request, [], llm, log=lambda name, data: heard.append(name))
    result = asyncio.run(run(seed(example), **names)["run"](None, ctx))
    assert (getattr(result, "status", None), getattr(result, "reward", None)) == (status, reward)
    assert heard == (["agent_start", "llm_response", "agent_complete"] if example == "log_event" else [])


# -- create_app


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """The port of `app`, run by an ASGI server with a lifespan."""
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


def test_an_app_serves_its_loop_to_a_cluster(stage: Any, seed: Seed, tmp_path: Path) -> None:
    module = imported(tmp_path, seed("calculator"), "app_server.py")
    told: list[str] = []

    async def hook(word: str) -> None:
        told.append(word)

    app = create_app(
        module.agent_loop, max_concurrent=1, api_key="k", debug_dir=tmp_path / "events",
        on_startup=lambda: hook("up"), on_shutdown=lambda: hook("down"),
    )  # fmt: skip

    async def test() -> None:
        controller = await stage.controller(adds)
        async with served(app) as port:
            await stage.until(lambda: told == ["up"])
            server = stage.server(port)
            path, body = controller.start_of(
                "r1", 1, metadata={"ground_truth": "8"}, completion_params={"temperature": 0.5}
            )
            assert (await server.ask("POST", path, body)).status == 401
            status, answer = await _post(port, path, body, "k")
            assert (status, [tool["function"]["name"] for tool in answer["tools"]]) == (202, ["add", "multiply"])
            await controller.until(1, "r1")
            health = await server.ask("GET", "/health")
            assert health.status == 200
            assert (await server.ask("GET", "/metrics-not-there")).status == 404
        check_calculator(controller, "r1")

    stage.run(test)
    assert told == ["up", "down"]
    (log,) = (tmp_path / "events").rglob("r1*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert "pre_llm" in [line["event"] for line in lines]


async def _post(port: int, path: str, body: Any, key: str) -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {key}\r\n"
    writer.write(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


def test_an_app_refuses_what_cannot_be(caplog: Any, tmp_path: Path, seed: Seed) -> None:
    class NoLoop:
        name = ""

    loop = imported(tmp_path, seed("calculator"), "refused_server.py").agent_loop
    with pytest.raises(ValueError, match="max_concurrent=-1"):
        create_app(loop, max_concurrent=-1)
    create_app(loop, credentials=object(), server_host="h", server_port=1)
    assert "registers the server nowhere" in caplog.text

    with pytest.raises(runner.AgentLoopValidationError, match="EMPTY_NAME"):
        create_app(NoLoop())
    with pytest.raises(TypeError, match="abstract"):
        create_app(runner.RolloutAgentLoop)


# -- the alias


def test_the_alias_is_there_for_users_code_only(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from osmosis_ai.rollout import RolloutContext, config, tools\nimport osmosis_ai.rollout.core.schemas\n"
        "def later():\n    from osmosis_ai.rollout.registry import list_agent_loops\n    return list_agent_loops\n"
    )
    (tmp_path / "wrong.py").write_text("from osmosis_ai.rollout import Nonsense\n")
    code = """
import sys, importlib.util
from pathlib import Path
from runner.build.importing import Importer, ReferenceProblem
import runner
assert importlib.util.find_spec("osmosis_ai") is None
found = Importer().find("agent:later", Path(sys.argv[1]))
agent = sys.modules["agent"]
assert agent.RolloutContext is runner.RolloutContext
assert agent.tools.execute_tool_calls is runner.execute_tool_calls
assert agent.config.__name__ == "osmosis_ai.rollout.config"
assert agent.config.RolloutSettings is runner.RolloutSettings
assert agent.osmosis_ai.__version__ == runner.__version__
assert not hasattr(agent.osmosis_ai, "build_")
assert found.value() is runner.list_agent_loops
assert not [each for each in sys.meta_path if "Alias" in type(each).__name__]
try:
    Importer().find("wrong:x", Path(sys.argv[1]))
except ReferenceProblem as problem:
    assert "Nonsense" in problem.message, problem.message
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=tmp_path)


def test_an_installed_sdk_comes_first_and_its_classes_are_taken_by_their_shape(tmp_path: Path) -> None:
    package = tmp_path / "osmosis_ai"
    (package / "rollout").mkdir(parents=True)
    (package / "__init__.py").write_text("theirs = True\n")
    (package / "rollout" / "__init__.py").write_text(
        "class RolloutResult:\n    def __init__(self, **all): self.__dict__ |= all\nclass RolloutAgentLoop: pass\n"
    )
    (tmp_path / "agent.py").write_text(
        "from osmosis_ai.rollout import RolloutAgentLoop, RolloutResult\n"
        "class Agent(RolloutAgentLoop):\n    name = 'a'\n    def get_tools(self, request): return []\n"
        "    async def run(self, ctx):\n        answer = await ctx.chat(ctx.request.messages)\n"
        "        return RolloutResult(status='COMPLETED', final_messages=[answer.message], finish_reason='stop',\n"
        "                             reward=0.5, metrics=None, error_message=None)\n"
    )
    (tmp_path / "workflow.toml").write_text(
        '[workflow]\nname = "t"\nagent = "agent:Agent"\n[dataset]\npath = "d.jsonl"\n[model]\nid = "x"\n'
        'provider = "scripted"\n[[model.rules]]\nreply = "4"\n'
    )
    (tmp_path / "d.jsonl").write_text('{"user_prompt": "2+2?"}\n')
    from runner import __file__ as door

    code = f"import sys; sys.path[:0] = [{str(Path(door).parents[1])!r}]; from runner.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "eval", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "runs" / "t" / "rollouts.jsonl").read_text().splitlines()[0])
    assert (record["outcome"], record["reward"]) == ("scored", 0.5)


def test_an_app_opens_with_the_first_request_where_a_server_has_no_lifespan(tmp_path: Path, seed: Seed) -> None:
    app = imported(tmp_path, seed("calculator"), "bare_server.py").app
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def test() -> None:
        scope = {"type": "http", "method": "GET", "path": "/health", "headers": [], "http_version": "1.1"}
        await asyncio.gather(app(scope, receive, send), app(scope, receive, send))
        await app.aclose()
        await app.aclose()

    asyncio.run(test())
    assert [message["status"] for message in sent if "status" in message] == [200, 200]


def test_settings_of_the_client_reach_the_calls(stage: Any, tmp_path: Path, seed: Seed) -> None:
    module = imported(tmp_path, seed("calculator"), "client_server.py")
    settings = runner.RolloutSettings(client=runner.RolloutClientSettings(max_retries=1, retry_base_delay=0.1))

    async def test() -> None:
        controller = await stage.controller(lambda seen: "drop")
        async with served(create_app(module.agent_loop, settings=settings)) as port:
            await stage.server(port).start(controller.start_of("r1", 1))
            await controller.until(1)
        (ended,) = [seen.body for seen in controller.acked]
        assert (ended["status"], ended["finish_reason"], len(controller.chats)) == ("ERROR", "error", 2)

    stage.run(test)


def test_serve_agent_loop_serves_until_a_signal(stage: Any, tmp_path: Path, seed: Seed) -> None:
    (tmp_path / "calculator.py").write_text(ours(seed("calculator")))
    code = "from runner import serve_agent_loop; from calculator import agent_loop; import sys\n"
    code += "sys.exit(serve_agent_loop(agent_loop, host='127.0.0.1', port=0))"
    started = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stderr is not None
    port = int(started.stderr.readline().split("127.0.0.1:")[1].split(";")[0])
    key = started.stdout.readline().strip()
    assert key.startswith("osm_rollout_")

    async def test() -> None:
        controller = await stage.controller(adds)
        more = {"metadata": {"ground_truth": "8"}, "completion_params": {"temperature": 0.5}}
        path, body = controller.start_of("r1", 1, **more)
        assert (await _post(port, path, body, "wrong"))[0] == 401
        assert (await _post(port, path, body, key))[0] == 202
        await controller.until(1, "r1")
        check_calculator(controller, "r1")

    try:
        stage.run(test)
    finally:
        started.terminate()
        said = started.communicate(timeout=20)
    assert started.returncode == 0, said
    assert key not in said[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"local_debug": True, "api_key": "k"}, "local_debug"), ({"reload": True}, "--reload"),
     ({"host": "256.0.0.1"}, "cannot serve at"), ({"log_level": "loud"}, "no log level")],
)  # fmt: skip
def test_serve_agent_loop_refuses_what_cannot_be(
    tmp_path: Path, seed: Seed, options: dict[str, Any], words: str
) -> None:
    loop = imported(tmp_path, seed("calculator"), "unserved.py").agent_loop
    with pytest.raises(runner.ServeError, match=words):
        runner.serve_agent_loop(loop, **options)
    with pytest.raises(runner.AgentLoopValidationError, match="MISSING_NAME"):
        runner.serve_agent_loop(object())


def test_a_loop_answers_every_generation(stage: Any, seed: Seed) -> None:
    stage.write("every_server.py", seed("calculator"))

    async def test() -> None:
        controller = await stage.controller(adds)
        async with stage.serving("", workflow='agent = "./every_server.py:agent_loop"') as server:
            reply = await server.start(controller.start_of("r3", 3, label="8"))
            assert reply.status in (200, 202), reply
            await controller.until(2, "r3")
        assert controller.told("r3") == [("completion", "success", None), ("grader", "success", 1.0)]
        assert [tool["function"]["name"] for tool in controller.chats[0].body["tools"]] == ["add", "multiply"]

    stage.run(test)


def test_the_page_about_agent_loops(project: Any) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agent-loops.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    project.write("page.py", example)
    assert project.play("", project.says("4"), workflow='agent = "./page.py:Echo"').reward == 1.0
