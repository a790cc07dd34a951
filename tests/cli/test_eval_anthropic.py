"""Every agent of ours in an eval over litellm's Anthropic provider, against a server that speaks the Messages API.

Requests and answers are shaped as the API's documentation has them (platform.claude.com/docs: messages, tool use,
extended thinking, stop reasons, errors), and the server refuses what the API says it refuses: a tool call that is not
answered in the next message, and a tool loop whose thinking does not come back as it was given. In one process of its
own, as importing litellm takes seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = '''
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

THOUGHT = {"type": "thinking", "thinking": "Two sums.", "signature": "EqQBCkYIBxgC"}
HIDDEN = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3p"}
overloaded = threading.Event()
bodies = []


def use(number, name, **given):
    return {"type": "tool_use", "id": f"toolu_{number:02}", "name": name, "input": given}


def text(words):
    return {"type": "text", "text": words}


def turn_of(body):
    """The content and the stop reason of the next turn, by the task and by how many turns there were."""
    task = body["messages"][0]["content"][0]["text"]
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    script = {
        "sums": [
            ([THOUGHT, HIDDEN, text("Let me add."), use(1, "add", a=1, b=2), use(2, "add", a=3, b=4)], "tool_use"),
            ([{**THOUGHT, "thinking": "And both.", "signature": "second"}, use(3, "add", a=3, b=7)], "tool_use"),
            ([text("#### 10")], "end_turn"),
        ],
        "text": [
            ([THOUGHT, text("Thought: I add.\\nAction: add(a=3, b=7)")], "stop_sequence"),
            ([text("Thought: So it is.\\nFinal Answer: 10")], "end_turn"),
        ],
        "repair": [
            ([THOUGHT, use(1, "editor", command="str_replace", path="a.txt", old_str="nine", new_str="ten")],
             "tool_use"),
            ([use(2, "finish", answer="10")], "tool_use"),
        ],
        "chat": [([THOUGHT, text("10")], "end_turn")],
        "refused": [([], "refusal")],
        "long": [([text("It is")], "model_context_window_exceeded")],
    }[task]
    return script[turn]


def refusal_of(body):
    """Why the API would not have this conversation; None if it would."""
    messages = body["messages"]
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        blocks = message["content"]
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        after = messages[index + 1]["content"] if index + 1 < len(messages) else []
        answered = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
        if asked != answered:
            return f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after"
        given = turn_of({"messages": messages[:index]})[0]
        if "thinking" in body and asked and blocks != given:
            return f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks cannot be modified"
    return None


class Messages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        bodies.append(body)
        wrong, known = refusal_of(body), self.headers["x-api-key"] == "none" and "anthropic-version" in self.headers
        if self.path != "/v1/messages" or not known:
            self.answer(401, "authentication_error", "invalid x-api-key")
        elif wrong:
            self.answer(400, "invalid_request_error", wrong)
        elif not overloaded.is_set():
            overloaded.set()
            self.answer(529, "overloaded_error", "Overloaded")
        else:
            content, stop = turn_of(body)
            usage = {"input_tokens": 20, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100,
                     "output_tokens": 50, "output_tokens_details": {"thinking_tokens": 30}}
            self.send(200, {"id": "msg_013Zva", "type": "message", "role": "assistant", "model": body["model"],
                            "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage})

    def answer(self, status, kind, words):
        self.send(status, {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_011"})

    def send(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, said in (("content-type", "application/json"), ("content-length", len(data)), ("retry-after", "0")):
            self.send_header(name, str(said))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Messages)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"

from runner.cli.table import run
from runner.models.litellm import load

load()
for agent in ("tools", "react", "coding", "chat"):
    code = run(["eval", "-q", "-w", f"{agent}.toml", "--set", f"model.base_url={url}"])
    assert not code, (agent, code)
open("bodies.json", "w").write(json.dumps(bodies))
'''

WORKFLOW = """
[workflow]
name = "{name}"
agent = "{name}"
user = "{{{{ row.task }}}}"

[dataset]
path = "{name}.jsonl"

[model]
id = "anthropic/claude-sonnet-4-5-20250929"
provider = "litellm"
api_key = {{ env = "ANTHROPIC_API_KEY" }}
price = {{ input = 3.0, output = 15.0, cached = 0.3 }}

[sampling]
max_tokens = 4096
extra = {{ thinking = {{ type = "enabled", budget_tokens = 1024 }} }}

[graders.answer]
kind = "contains"
expect = "10"
{more}
"""
ADD = '[tools.add]\ncall = "./mine.py:add"\n'
CODING = """
[sandboxes.work]
kind = "none"
copy = { "repository" = "." }
[tools.editor]
builtin = "file_editor"
[tools.finish]
builtin = "finish"
"""
TASKS = {"tools": ["sums"], "react": ["text"], "coding": ["repair"], "chat": ["chat", "refused", "long"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("anthropic")
    (folder / "mine.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    (folder / "repository").mkdir()
    (folder / "repository" / "a.txt").write_text("nine\n")
    for name, more in {"tools": ADD, "react": ADD, "coding": CODING, "chat": ""}.items():
        (folder / f"{name}.toml").write_text(WORKFLOW.format(name=name, more=more))
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"task": task}) + "\n" for task in TASKS[name]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OSMOSIS")}
    done = subprocess.run(
        [sys.executable, "-c", SERVER], capture_output=True, text=True, timeout=120, cwd=folder, check=False,
        env={**environment, "ANTHROPIC_API_KEY": "none"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def records(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = (folder / "runs" / name / "rollouts.jsonl").read_text().splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda record: record["row"])


def test_parallel_calls_with_thinking_that_goes_back_as_it_came(folder: Path) -> None:
    [record] = records(folder, "tools")
    assert (record["outcome"], record["stop_reason"], record["reward"]) == ("scored", "final_answer", 1.0), record
    assert [message["role"] for message in record["messages"]] == [
        "user", "assistant", "tool", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    first = record["messages"][1]
    assert first["content"] == "Let me add."
    assert [block["type"] for block in first["thinking_blocks"]] == ["thinking", "redacted_thinking"]
    assert [call["id"] for call in first["tool_calls"]] == ["toolu_01", "toolu_02"]
    assert [(span["name"], span["status"]) for span in record["tools"]] == [("add", "ok")] * 3
    assert [call["reasoning"] for call in record["calls"][:2]] == ["Two sums.", "And both."]
    assert [call["finish_reason"] for call in record["calls"]] == ["tool_calls", "tool_calls", "stop"]
    assert "reasoning" not in record["calls"][2]
    assert record["calls"][0]["retries"] == 1  # it was overloaded
    assert record["calls"][0]["id"] == "msg_013Zva"
    assert "thinking_blocks" not in json.dumps(record["calls"][0].get("extra", {}))


def test_tokens_as_the_provider_counted_them(folder: Path) -> None:
    [record] = records(folder, "tools")
    usage = record["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (3 * 125, 3 * 50)
    assert (usage["cached_tokens"], usage["reasoning_tokens"]) == (3 * 100, 3 * 30)
    assert record["cost"] == pytest.approx(3 * (25 * 3 + 100 * 0.3 + 50 * 15) / 1e6)


def test_what_was_asked(folder: Path) -> None:
    asked = json.loads((folder / "bodies.json").read_text())
    last = next(body for body in reversed(asked) if body["messages"][0]["content"][0]["text"] == "sums")
    _, called, answered, again, last_answers = last["messages"]
    assert [block["type"] for block in called["content"]] == [
        "thinking", "redacted_thinking", "text", "tool_use", "tool_use",
    ]  # fmt: skip
    assert answered["role"] == "user"  # both results in one message
    assert [(block["tool_use_id"], block["content"]) for block in answered["content"]] == [
        ("toolu_01", "3"), ("toolu_02", "7"),
    ]  # fmt: skip
    assert (again["content"][0]["signature"], last_answers["content"][0]["content"]) == ("second", "10")
    assert last["tools"][0]["input_schema"]["required"] == ["a", "b"]
    [text] = [body for body in asked if body["messages"][0]["content"][0]["text"] == "text"][1:]
    assert "tools" not in text
    assert text["stop_sequences"] == ["\nObservation:"]


def test_calls_in_text(folder: Path) -> None:
    [record] = records(folder, "react")
    assert (record["outcome"], record["stop_reason"], record["reward"]) == ("scored", "final_answer", 1.0), record
    assert [(span["name"], span["arguments"]) for span in record["tools"]] == [("add", '{"a": 3, "b": 7}')]


def test_a_repository(folder: Path) -> None:
    [record] = records(folder, "coding")
    assert (record["outcome"], record["stop_reason"], record["reward"]) == ("scored", "finish_tool", 1.0), record
    assert "+ten" in record["info"]["patch"]


def test_how_an_answer_ended(folder: Path) -> None:
    said, refused, full = records(folder, "chat")
    assert (said["stop_reason"], said["reward"]) == ("final_answer", 1.0)
    assert (refused["stop_reason"], refused["reward"]) == ("content_filter", 0.0)
    assert (full["stop_reason"], full["reward"]) == ("max_tokens", 0.0)
