"""Applications and commands that serve, under servers of others and our own, against a controller over real sockets."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

SCRIPT = str(Path(sys.executable).parent / "osmosis-run")
MAIN = """
from contextlib import asynccontextmanager
from runner import (
    AgentWorkflow, AgentWorkflowConfig, ConcurrencyConfig, Grader, GraderConfig, GraderContext, LocalBackend,
    create_rollout_server,
)


class MyConfig(AgentWorkflowConfig):
    name: str = "mine"
    suffix: str = ""


class Mine(AgentWorkflow[MyConfig]):
    async def run(self, ctx):
        answer = await ctx.chat(ctx.prompt)
        return [*ctx.prompt, {"role": "assistant", "content": answer.message["content"] + ctx.config.suffix}]


class JudgeConfig(GraderConfig):
    wanted: str = "!"


class Judge(Grader):
    async def grade(self, ctx: GraderContext):
        for sample_id, sample in ctx.get_samples().items():
            good = ctx.label in sample.messages[-1]["content"] and self.config.wanted in sample.messages[-1]["content"]
            ctx.set_sample_reward(sample_id, float(good))


@asynccontextmanager
async def lifespan(app):
    print("up", app.title, flush=True)
    yield
    print("down", flush=True)


backend = LocalBackend(
    workflow=Mine,
    workflow_config=MyConfig(suffix="!"),
    grader=Judge,
    grader_config=JudgeConfig(),
    concurrency=ConcurrencyConfig(max_concurrent=3),
)
app = create_rollout_server(backend=backend, lifespan=lifespan)
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def get(url: str, key: str = "") -> tuple[int, Any]:
    asked = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, None


def post(url: str, body: Any, key: str = "") -> int:
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


class Server:
    """A command that serves; `out` is what it printed when it ended."""

    def __init__(self, process: subprocess.Popen[str], url: str = "", first: dict[str, Any] | None = None) -> None:
        self.process, self.url, self.first, self.out = process, url, first or {}, ""

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.out = "".join(self.process.communicate(timeout=15))
        return self.process.returncode


@asynccontextmanager
async def started(words: Sequence[str], folder: Path, port: int | None = None) -> AsyncIterator[Server]:
    """Ours says its URL on stdout; another one's is known, and answers when it is up."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(  # noqa: ASYNC220 (it only starts it)
        list(words), cwd=folder, stdout=pipe, stderr=pipe, text=True
    )
    server = Server(process)
    try:
        if port is None:
            assert process.stdout is not None
            line = await asyncio.to_thread(process.stdout.readline)
            assert line, process.communicate()[1]
            server.first = json.loads(line)
            server.url = server.first["url"]
        else:
            server.url = f"http://127.0.0.1:{port}"
            await asyncio.to_thread(until_up, server.url, process)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def until_up(url: str, process: subprocess.Popen[str]) -> None:
    for _ in range(150):
        try:
            get(f"{url}/health")
            return
        except OSError:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)
    raise AssertionError("it does not answer")


async def drive(controller: Any, url: str, generation: int, name: str, key: str = "", **more: Any) -> list[Any]:
    path, body = controller.start_of(name, generation, **more)
    assert await asyncio.to_thread(post, url + path, body, key) in (200, 202)
    await controller.until(1 if generation == 1 else 2, name)
    return list(controller.told(name))


@pytest.mark.parametrize("server", ["uvicorn", "hypercorn"])
def test_a_script_with_a_backend_runs_under_any_server(server: str, tmp_path: Path, controller: Any) -> None:
    (tmp_path / "main.py").write_text(MAIN)
    port = free_port()
    bind = ["--port", str(port)] if server == "uvicorn" else ["--bind", f"127.0.0.1:{port}"]

    async def play() -> Server:
        await controller.start()
        async with started([sys.executable, "-m", server, "main:app", *bind], tmp_path, port) as found:
            status, health = await asyncio.to_thread(get, f"{found.url}/health")
            assert (status, health["concurrency"]["max_concurrent"]) == (200, 3)
            second = await drive(controller, found.url, 2, "two")
            third = await drive(controller, found.url, 3, "three")
            assert second == third == [("completion", "success", None), ("grader", "success", 1.0)]
            assert found.end() in (0, -15)
        await controller.stop()
        return found

    found = asyncio.run(play())
    assert "up mine" in found.out
    assert "down" in found.out


def test_serve_m_takes_an_application_and_a_backend(tmp_path: Path, controller: Any) -> None:
    (tmp_path / "main.py").write_text(MAIN.replace("from runner import", "from osmosis_ai.rollout import"))

    async def play(name: str) -> None:
        async with started([SCRIPT, "serve", "-m", f"main:{name}", "-p", "0"], tmp_path) as found:
            assert (await drive(controller, found.url, 3, f"r-{name}"))[1] == ("grader", "success", 1.0)
            assert found.end() == 0

    async def both() -> None:
        await controller.start()
        await play("app")
        await play("backend")
        await controller.stop()

    asyncio.run(both())


def test_serve_m_makes_a_key_and_serves_every_generation(folder: Path, controller: Any) -> None:
    words = [SCRIPT, "serve", "-m", "server:agent_loop", "-p", "0", "--log", "logs", "--skip-register",
             "--no-validate", "--log-level", "trace"]  # fmt: skip

    async def play() -> Server:
        await controller.start()
        async with started(words, folder) as found:
            key = found.first["api_key"]
            assert found.url.startswith("http://127.0.0.1:"), "what is told can be asked from here"
            assert post(f"{found.url}/v1/rollout/init", {}, "") == 401
            told = await drive(controller, found.url, 1, "one", key)
            assert [(channel, status) for channel, status, _ in told] == [("completion", "COMPLETED")]
            assert found.end() == 0
        await controller.stop()
        return found

    found = asyncio.run(play())
    assert "--no-validate changes nothing" in found.out
    (log,) = (folder / "logs").rglob("*.jsonl")
    assert log.parent.name.isdigit(), "the folder of the start"
    assert found.first["api_key"] not in log.read_text()


def test_local_serves_this_machine_without_a_key(folder: Path) -> None:
    async def play() -> None:
        async with started([SCRIPT, "serve", "-m", "server:agent_loop", "-p", "0", "--local"], folder) as found:
            assert "api_key" not in found.first
            status, health = get(f"{found.url}/health")
            assert (status, health["agent_loop"]) == (200, "calculator")
            assert found.end() == 0

    asyncio.run(play())


def test_debug_dir_has_no_folder_of_the_start(folder: Path, controller: Any) -> None:
    text = (folder / "server.py").read_text()
    (folder / "server.py").write_text(
        text.replace("create_app(agent_loop)", "create_app(agent_loop, debug_dir='logs')")
    )

    async def play() -> None:
        await controller.start()
        async with started([SCRIPT, "serve", "-m", "server:app", "-p", "0"], folder) as found:
            await drive(controller, found.url, 1, "rollout-abc123")
            assert found.end() == 0
        await controller.stop()

    asyncio.run(play())
    lines = [json.loads(line) for line in (folder / "logs" / "rollout-abc123.jsonl").read_text().splitlines()]
    assert {"event": "pre_llm", "rollout_id": "rollout-abc123", "turn": 0}.items() <= lines[1].items()


def test_what_is_wrong_with_a_backend_is_said_at_once() -> None:
    from runner import AgentWorkflow, GraderConfig, LocalBackend, create_rollout_server

    class Half(AgentWorkflow):  # type: ignore[type-arg]
        pass

    with pytest.raises(TypeError, match=r"`Half` is abstract.*no grader to hand it to"):
        LocalBackend(workflow=Half, grader_config=GraderConfig())
    with pytest.raises(TypeError, match="there is no module `nowhere_at_all`"):
        LocalBackend(workflow="nowhere_at_all:Mine")
    with pytest.raises(TypeError, match="create_rollout_server serves a LocalBackend, found str"):
        create_rollout_server(backend="x")  # type: ignore[arg-type]


def test_execute_plays_one_rollout_here_and_tells_of_both_ends(model: Any) -> None:
    from runner import AgentWorkflow, ExecutionRequest, ExecutionResult, Grader, LocalBackend, RolloutContext

    class Mine(AgentWorkflow):  # type: ignore[type-arg]
        async def run(self, ctx: Any) -> Any:
            if ctx.prompt[0]["content"] == "fail":
                raise ValueError("no")
            return [*ctx.prompt, (await ctx.chat(ctx.prompt)).message]

    class Judge(Grader):
        async def grade(self, ctx: Any) -> None:
            ctx.set_artifacts({"seen": ctx.metadata["level"]})
            ctx.set_reward(float(ctx.label in ctx.output))

    model.say = lambda request: "it is 4"
    backend = LocalBackend(workflow=Mine, grader=Judge)
    told: list[tuple[str, str, float | None]] = []

    async def agent(result: ExecutionResult) -> None:
        told.append(("agent", result.status, result.sample.reward if result.sample else None))

    async def grader(result: ExecutionResult) -> None:
        told.append(("grader", result.status, result.sample.reward if result.sample else None))

    async def play(text: str) -> ExecutionResult:
        prompt = [{"role": "user", "content": text}]
        request = ExecutionRequest(id="r1", prompt=prompt, label="4", metadata={"level": "easy"})
        with RolloutContext(chat_completions_url=model.base_url, api_key="k"):
            return await backend.execute(request, agent, grader)

    assert asyncio.run(play("2+2?")).sample is not None
    failed = asyncio.run(play("fail"))
    assert told[:2] == [("agent", "success", None), ("grader", "success", 1.0)]
    assert [each[1] for each in told[2:]] == ["failure", "failure"]
    assert failed.samples == {}
    assert model.keys == ["Bearer k"]

    with pytest.raises(RuntimeError, match="nobody says where completions come from"):
        asyncio.run(backend.execute(ExecutionRequest(id="r", prompt=[]), agent))
