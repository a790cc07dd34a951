"""`FakeServer`: a small hand-written rollout server that keeps the protocol, but for what it is told to get wrong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from runner.models.double_http import Connection, Request, response
from runner.simulate.client import Client, Unreachable

CONFORMANCE = "test_conformance.py"
_started: list[subprocess.Popen[bytes]] = []


@pytest.hookimpl(trylast=True)  # what -k and -m leave out is out by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The conformance suite is played once, beside the other tests: it waits more than it works. Its own come last."""
    cases = [item for item in items if item.path.name == CONFORMANCE and hasattr(item, "callspec")]
    items[:] = [*(item for item in items if item not in set(cases)), *cases]
    if config.option.collectonly:
        return
    names = dict.fromkeys(item.callspec.params["case"].name for item in cases if "case" in item.callspec.params)  # type: ignore[attr-defined]
    if names:
        _play(_shared(config), list(names))


def _shared(config: pytest.Config) -> Path:
    """A folder of this run that all of its worker processes share."""
    base: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def _play(folder: Path, names: list[str]) -> None:
    """Start the suite, unless another process of this run has done so."""
    try:
        (folder / "conformance.began").open("x").close()
    except FileExistsError:
        return
    file = Path(__file__).parents[2] / "configs" / "arithmetic"
    command = [sys.executable, "-P", "-m", "runner.cli.main", "simulate", str(file), "--conformance", "--json"]
    command += [word for name in names for word in ("--case", name)]
    # Renamed when it is whole: who waits sees all of it or nothing.
    script = '"$@" > conformance.part 2> conformance.err; mv conformance.part conformance.json'
    _started.append(subprocess.Popen(["/bin/sh", "-c", script, "sh", *command], cwd=folder))


def pytest_sessionfinish(exitstatus: int) -> None:
    for process in _started:
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            process.terminate()
        process.wait(150)  # another worker may wait for what it says


@pytest.fixture(scope="session")
def conformance(pytestconfig: pytest.Config) -> Path:
    """The file that the suite's outcomes will be in."""
    return _shared(pytestconfig) / "conformance.json"


def sse_message(body: bytes) -> dict[str, Any]:
    """The message of a stream; {} when it holds an error."""
    message: dict[str, Any] = {"content": ""}
    for line in body.decode().splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        for choice in json.loads(line[6:]).get("choices", []):
            message["content"] += choice["delta"].get("content") or ""
    return message


class FakeServer:
    """`wrong` names what it gets wrong; see where each word is looked for."""

    def __init__(self, *wrong: str) -> None:
        self.wrong = set(wrong)
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.states: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.refused = 0
        self.clients: dict[str, Client] = {}

    async def __aenter__(self) -> FakeServer:
        self.connections: set[Connection] = set()
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self.handle, self.connections, lambda connection: None), "127.0.0.1", 0
        )
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        self.server.close()
        for connection in list(self.connections):
            connection.abort()
        for client in self.clients.values():
            await client.aclose()
        await asyncio.sleep(0)

    def handle(self, connection: Connection, request: Request) -> None:
        status, body, headers = self.answer(request)
        connection.finish(response(status, body, headers=tuple(headers.items())))

    def answer(self, request: Request) -> tuple[int, bytes, dict[str, str]]:
        path = request.path.partition("?")[0]
        if path == "/health":
            return 200, b'{"status":"ok"}', {}
        if path.endswith("/status"):
            return 200, json.dumps(self.state(unquote(path.split("/")[2]))).encode(), {}
        if path == "/rollout/cancel":
            return self.cancel(json.loads(request.body))
        dialect = "agent-loop" if path == "/v1/rollout/init" else ""
        try:
            body = json.loads(request.body)
        except ValueError:
            return 422, b'{"detail":"no JSON"}', {}
        return (*self.start(dialect, body), {}) if "full" not in self.wrong else self.full(dialect, body)

    def full(self, dialect: str, body: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
        self.refused += 1
        if self.refused > 1:
            return (*self.start(dialect, body), {})
        if "no-retry-after" in self.wrong:
            return 429, b"{}", {}
        return 429, b"{}", {"retry-after": "soon" if "bad-retry-after" in self.wrong else "0.1"}

    def start(self, dialect: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if "start-500" in self.wrong:
            return 500, b"oops"
        dialect = dialect or ("single-sample" if "llm_api_key" in body else "multi-sample")
        name = body["rollout_id"]
        if name in self.seen and "runs-twice" not in self.wrong:
            return (202, b'{"other":1}') if "other-answer" in self.wrong else self.seen[name]
        answer: Any = {"rollout_id": name, "tools": []} if dialect == "agent-loop" else {}
        if "other-id" in self.wrong:
            answer["rollout_id"] = "another"
        status = 204 if "start-204" in self.wrong else 202
        self.seen[name] = (status, json.dumps("text" if "start-text" in self.wrong else answer).encode())
        self.states[name] = {"rollout_id": name, "status": "running", "reward": None, "err_message": None}
        self.tasks[f"{name} {len(self.tasks)}"] = asyncio.ensure_future(self.play(dialect, name, body))
        return self.seen[name]

    def state(self, name: str) -> dict[str, Any]:
        state = self.states.get(name, {"rollout_id": name, "status": "unknown", "reward": None, "err_message": None})
        if "status-lies" in self.wrong and state["status"] == "success":
            return {**state, "reward": 0.125}
        return {"status": state["status"]} if "status-short" in self.wrong else state

    def cancel(self, selector: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
        if "cancel-list" in self.wrong:
            return 200, b"[]", {}
        names = selector.get("ids") or [name for name in self.states if name.startswith(selector.get("prefix") or "")]
        found = {}
        for name in names:
            running = self.state(name)["status"] == "running"
            found[name] = "cancelled_running" if running or "cancel-lies" in self.wrong else "not_found"
            if running and "cancel-deaf" not in self.wrong:
                self.states[name]["status"] = "cancelled"
                for key, task in self.tasks.items():
                    if key.startswith(name):
                        task.cancel()
        return 200, json.dumps({"dispositions": found}).encode(), {}

    async def send(self, url: str, value: Any, key: str | None, headers: dict[str, str] | None = None) -> Any:
        """One POST, repeated after 429, 5xx and broken connections as the protocol wants it."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        client = self.clients.setdefault(origin, Client(origin, timeout=2.0))
        ours = {"authorization": f"Bearer {key}"} if key else {}
        body = value if isinstance(value, bytes) else json.dumps(value, allow_nan=True).encode()
        for _ in range(40):
            try:
                answer = await client.send("POST", parts.path, body, {**ours, **(headers or {})})
            except Unreachable:
                await asyncio.sleep(0.05)
                continue
            if answer.status in (307,) and "follows" in self.wrong:
                await client.send("POST", answer.headers["location"], body, ours)
            if answer.status == 429:
                wait = answer.headers["retry-after"]
                await asyncio.sleep(0.0 if "hasty" in self.wrong else float(wait) + 0.05)
            elif answer.status >= 500:
                await asyncio.sleep(0.0 if "hammers" in self.wrong else 0.05)
            else:
                return answer
            if "changes-its-mind" in self.wrong and isinstance(value, dict):
                value = {**value, "status": "ERROR" if "final_messages" in value else "failure"}
                value |= {"error_message": "not delivered", "err_message": "not delivered"}
                body = json.dumps(value).encode()
            if "other-words" in self.wrong and isinstance(value, dict):
                body = json.dumps({**value, "extra_fields": {"again": True}}).encode()
        return None

    async def play(self, dialect: str, name: str, body: dict[str, Any]) -> None:
        wrong, first = self.wrong, dialect == "agent-loop"
        key = body.get("api_key") if first else body.get("controller_api_key")
        base = (body["server_url"].rstrip("/") + "/v1") if first else body["chat_completions_url"].rstrip("/")
        prompt = body["messages"] if first else body["initial_messages"]
        said = "no answer"
        if "no-chat" not in wrong:
            said = await self.ask(dialect, name, base, prompt, body.get("llm_api_key") or key)
        if "dies" in wrong:
            return
        messages = [*prompt, {"role": "assistant", "content": said}]
        if "bad-key" in wrong:
            key = "another"
        scheme = {"authorization": f"bearer {key}"} if "small-bearer" in wrong else {}
        if "text-callback" in wrong:
            scheme["content-type"] = "text/plain"
        if "no-bearer" in wrong:
            key = None
        if first:
            await self.completed(name, body, messages, key, scheme)
        else:
            await self.called_back(dialect, name, body, messages, key, scheme)
        self.states[name].update(status="success", reward=1.0)
        if "chats-on" in wrong:
            await self.ask(dialect, name, base, prompt, body.get("llm_api_key") or key)
        if "posts-again" in wrong:
            await asyncio.sleep(0.4)
            if first:
                await self.completed(name, body, messages, key, scheme)
            else:
                await self.called_back(dialect, name, body, messages, key, scheme)

    async def ask(self, dialect: str, name: str, base: str, prompt: Any, key: str | None) -> str:
        headers = {"x-rollout-id": name, "x-sample-id": "main"} if "no-headers" not in self.wrong else {}
        chat: dict[str, Any] = {"model": "default", "messages": prompt}
        if dialect == "agent-loop":
            chat |= {"rollout_id": "nobody" if "stranger" in self.wrong else name}
            if "tools-along" in self.wrong:
                chat["tools"] = [{"type": "function", "function": {"name": "x"}}]
            if "no-chat-id" in self.wrong:
                del chat["rollout_id"]
        elif "no-stream-word" not in self.wrong:
            chat["stream"] = True
        if "parts" in self.wrong:
            chat["messages"] = [{"role": "user", "content": [{"type": "text", "text": "a"}] * 2}]
        if "bad-chat-key" in self.wrong:
            key = "another"
        answer = await self.send(f"{base}/chat/completions", chat, key, headers)
        if answer is None or answer.status != 200:
            return "no answer"
        if "event-stream" in answer.headers["content-type"]:
            return str(sse_message(answer.body).get("content"))
        return str(json.loads(answer.body)["choices"][0]["message"]["content"])

    async def completed(self, name: str, body: Any, messages: Any, key: str | None, headers: dict[str, str]) -> None:
        names = ("total_latency_ms", "llm_latency_ms", "tool_latency_ms", "num_llm_calls", "num_tool_calls",
                 "prompt_tokens", "response_tokens", "max_context_tokens")  # fmt: skip
        payload = {"rollout_id": name, "status": "COMPLETED", "final_messages": messages, "finish_reason": "stop",
                   "reward": 1.0, "metrics": dict.fromkeys(names, 1), "extra_fields": {}}  # fmt: skip
        await self.send(f"{body['server_url']}/v1/rollout/completed", self.spoiled(payload, body, key), key, headers)

    async def called_back(
        self, dialect: str, name: str, body: Any, messages: Any, key: str | None, headers: dict[str, str]
    ) -> None:
        done = {"status": "success", "rollout_id": name, "extra_fields": None, "err_message": None,
                "err_category": None}  # fmt: skip
        sample = {"messages": messages, "label": body.get("label"), "reward": 1.0, "remove_sample": False,
                  "metrics": {}, "extra_fields": {}}  # fmt: skip
        for word, change in (("sample-nan-metric", {"metrics": {"x": 1e400}}), ("sample-text", {"reward": "1.0"}),
                             ("no-reward", {"reward": None}), ("removed", {"remove_sample": True})):  # fmt: skip
            if word in self.wrong:
                sample |= change
        if "sample-shape" in self.wrong:
            del sample["metrics"]
        sampled: dict[str, Any] = {"sample": sample}
        if dialect == "multi-sample":
            called = "another" if "other-sample" in self.wrong else "main"
            sampled = {"samples": {called: {"id": "odd" if "sample-key" in self.wrong else called, **sample}}}
            if "no-sample" in self.wrong:
                sampled = {"samples": {}}
        grade = {"status": "success", "rollout_id": name, **sampled, "err_message": None, "err_category": None}
        if "sudden-failure" in self.wrong:
            done["status"] = "failure"
        if "failed-with-reward" in self.wrong:
            grade |= {"status": "failure", "err_message": "no"}
        steps = [(body["completion_callback_url"], self.spoiled(done, body, key)),
                 (body["grader_callback_url"], self.spoiled(grade, body, key))]  # fmt: skip
        if "grade-first" in self.wrong:
            steps.reverse()
        if "no-grade" in self.wrong:
            steps.pop()
        for url, payload in steps:
            if url:
                await self.send(url, payload, key, headers)

    def spoiled(self, payload: dict[str, Any], body: Any, key: str | None) -> Any:
        wrong, failure = self.wrong, "ERROR" if "final_messages" in payload else "failure"
        changes: dict[str, dict[str, Any]] = {
            "mismatch": {"rollout_id": "another"},
            "word": {"status": "fine"},
            "category": {"err_category": "cosmic rays"},
            "silent": {"status": failure, "reward": None},
            "long": {"status": failure, "err_message": "x" * 10_000, "error_message": "x" * 10_000},
            "leak": {"status": failure, "err_message": f"401 for {key}", "error_message": f"401 for {key}"},
            "null": {"error_message": None},
            "text-reward": {"reward": "1.0"},
            "error-with-reward": {"status": "ERROR", "error_message": "no"},
        }
        for word, change in changes.items():
            if word in wrong:
                payload = {**payload, **change}
        if "short" in wrong:
            payload.pop("final_messages", None)
            payload.pop("err_category", None)
        text = json.dumps(payload)
        for word, (old, new) in {
            "nan": ('"reward": 1.0', '"reward": NaN'),
            "surrogate": ('"role": "assistant"', '"role": "assistant", "x": "\\ud83d"'),
            "broken": ("{", "["),
        }.items():
            if word in wrong:
                return text.replace(old, new).encode()
        return payload


@pytest.fixture
def fake_server() -> type[FakeServer]:
    return FakeServer
