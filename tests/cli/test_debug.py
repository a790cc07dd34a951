"""`osmosis-run debug`: under a real terminal, keys in and screen out; and through a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROMPT = "› "

AGENT = '''
async def run(ctx):
    """Asks twice, and sends its own copies of the messages each time."""
    said = [dict(message) for message in ctx.prompt]
    first = await ctx.chat([dict(message) for message in said])
    said += [dict(first.message), {"role": "user", "content": "Are you sure?"}]
    ctx.log_event("asked", times=1)
    await ctx.chat([dict(message) for message in said])
'''

TOOLS = '''
from pathlib import Path

def add(a: int, b: int) -> int:
    """Add two numbers, which fails the first time."""
    if not Path("mended").exists():
        Path("mended").touch()
        raise ValueError("not yet")
    return a + b
'''

HEAD = """
[model]
provider = "scripted"
[[model.rules]]
when = "row.q == 'down'"
error = "the endpoint is on fire"
[[model.rules]]
when = "row.q == 'slow'"
reply = "late"
delay = "60s"
[[model.rules]]
when = "'add' in row.q and turn == 0"
tool_calls = [{ name = "add", arguments = { a = 2, b = 3 } }]
[[model.rules]]
reply = "[{{ last }}]"
[graders.answer]
kind = "contains"
[dataset]
path = "rows.jsonl"
id = "id"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": "one", "user_prompt": "1", "q": "one", "ground_truth": "1"},
            {"id": "down", "user_prompt": "down", "q": "down", "ground_truth": "x"},
            {"id": "slow", "user_prompt": "slow", "q": "slow", "ground_truth": "x"},
            {"id": "add", "user_prompt": "2 and 3", "q": "add", "ground_truth": "5"}]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "agent.py").write_text(textwrap.dedent(AGENT))
    (tmp_path / "tools.py").write_text(textwrap.dedent(TOOLS))
    own = '[workflow]\nagent = "./agent.py:run"\n[limits]\ntime = "1s"\n'
    (tmp_path / "own.toml").write_text(own + HEAD)
    (tmp_path / "tools.toml").write_text('[tools.add]\ncall = "./tools.py:add"\n[limits]\nturns = 1\n' + HEAD)
    return tmp_path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "runner.cli.main", "debug", *words]


def environment(**more: str) -> dict[str, str]:
    kept = {
        key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "EDITOR", "VISUAL")
    }
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more}


class Terminal:
    """A person at a terminal. `screen` is all that was drawn."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor, self._pid = descriptor, pid
        self.screen = ""
        self._read = 0

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def until(self, text: str = PROMPT) -> str:
        """Wait for `text`, and give what was drawn since the last time."""
        deadline = time.monotonic() + 20
        while text not in self.screen[self._read :]:
            assert time.monotonic() < deadline, f"no {text!r} in {self.screen[self._read :]!r}"
            assert self._more(), f"ended without {text!r}: {self.screen[self._read :]!r}"
        at = self.screen.index(text, self._read) + len(text)
        drawn, self._read = self.screen[self._read : at], at
        return plain(drawn)

    def do(self, keys: str, text: str = PROMPT) -> str:
        self.type(keys)
        return self.until(text)

    def end(self) -> int:
        while self._more():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _more(self) -> bool:
        if not select.select([self._descriptor], [], [], 20)[0]:
            return False
        try:
            block = os.read(self._descriptor, 65536)
        except OSError:  # Linux says EIO when the other side has closed
            return False
        self.screen += block.decode()
        return bool(block)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text).replace("\r", "")


@contextmanager
def at_terminal(folder: Path, *words: str, **more: str) -> Iterator[Terminal]:
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(sys.executable, command(*words), environment(**more))
    try:
        yield Terminal(descriptor, pid)
    finally:
        os.close(descriptor)


def piped(folder: Path, keys: str, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run(
        command(*words),
        input=keys,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=environment(),
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_person_walks_through_a_rollout_and_on_to_the_next(folder: Path) -> None:
    with at_terminal(folder, "own.toml") as terminal:
        first = terminal.until()
        assert "row 0 (one), attempt 0" in first and "── 0 user ──" in first and "1 message · no tools" in first
        assert "\x1b[" in terminal.screen
        answer = terminal.do("\n")
        assert "── assistant ──" in answer and "  [1]\n" in answer and "turn 1 answer › " in answer
        second = terminal.do("n\n")
        assert 'log asked {"times": 1}' in second
        assert "── 2 user ──" in second and "3 messages, 1 new" in second
        assert "── 0 user ──" not in second  # only what is new
        assert "── 0 user ──" in terminal.do("m\n")
        ended = terminal.do("c\n")
        assert "scored · final_answer" in ended and re.search(r"reward +0\.000", ended)
        assert "answer    0.000  does not contain '1'" in ended
        assert "row 1 (down), attempt 0" in terminal.do("n\n")
        assert "there is no row `nowhere` among the 4" in terminal.do("g nowhere\n", "among the 4")
        assert "row 0 (one), attempt 2" in terminal.do("g one/2\n", "attempt 2")
        terminal.until()
        terminal.type("\x04")
        assert terminal.end() == 0


def test_no_line_is_wider_than_the_screen_and_long_texts_are_folded(folder: Path) -> None:
    prompt = (
        "word " * 40 + "\n" + "日本語" * 40 + "\n" + "\n".join(f"line {number}" for number in range(30)) + "\x1b[2J"
    )
    (folder / "rows.jsonl").write_text(json.dumps({"id": "one", "user_prompt": prompt, "q": "", "ground_truth": "w"}))
    with at_terminal(folder, "own.toml") as terminal:
        folded = terminal.until()
        assert "more lines, " in folded and "m 0 shows all" in folded and "line 12" not in folded
        whole = terminal.do("m 0\n")
        assert "line 12" in whole and "line 29\\x1b[2J" in whole and "more lines, " not in whole
        terminal.do("c\n", "ended › ")
        from runner.cli.debug.paper import columns

        assert max(columns(line) for line in plain(terminal.screen).splitlines()) <= 80
        terminal.type("q\n")
        assert terminal.end() == 0


@pytest.mark.parametrize("where", ["at a prompt", "in a call"])
def test_ctrl_c_ends_with_130_and_one_word(folder: Path, where: str) -> None:
    with at_terminal(folder, "own.toml", "--row", "slow") as terminal:
        terminal.until()
        if where == "in a call":
            terminal.do("\n", "asking the model")
        started = time.monotonic()
        terminal.type("\x03")
        assert terminal.end() == 130
        assert time.monotonic() - started < 5
        last = terminal.screen.splitlines()[-1].rpartition("\x1b[2K")[2]  # the notice that somebody waits is erased
        assert last.endswith("interrupted")  # after the notice, if the signal came before it was erased
        assert "Traceback" not in terminal.screen and "never retrieved" not in terminal.screen


def test_the_time_a_person_thinks_is_not_the_rollouts(folder: Path) -> None:
    with at_terminal(folder, "own.toml", "--row", "one", "--json") as terminal:
        terminal.until()
        time.sleep(1.5)  # `[limits] time` is one second
        terminal.do("\n")
        ended = terminal.do("c\n", "ended › ")
        assert "scored · final_answer" in ended
        (line,) = [line for line in terminal.screen.splitlines() if line.startswith('{"schema"')]
        assert json.loads(line)["timing"]["total"] < 1
        # The limit itself still holds: the model's minute is cut short.
        terminal.do("g slow\n")
        assert "failed · rollout_timeout" in terminal.do("c\n", "ended › ")
        terminal.type("q\n")
        assert terminal.end() == 0


def test_the_editor_of_the_person_edits_text_and_whole_messages(folder: Path) -> None:
    editor = folder / "editor.py"
    editor.write_text("import sys\nfile = open(sys.argv[1], 'r+')\ntext = file.read()\nfile.seek(0)\nfile.truncate()\n"
                      "file.write(text.replace('3', '40').replace('2 and', '20 and'))\n")  # fmt: skip
    (folder / "mended").touch()
    with at_terminal(folder, "tools.toml", "--row", "add", EDITOR=f"{sys.executable} {editor}") as terminal:
        terminal.until()
        assert "  20 and 40\n" in terminal.do("e\n", "turn 1 › ")
        terminal.do("\n")
        assert "add(a=2, b=40)" in terminal.do("e\n", "turn 1 answer › ")
        assert "  42\n" in terminal.do("\n", "turn 2 › ")
        terminal.type("q\n")
        assert terminal.end() == 0


def test_a_pipe_is_read_line_by_line_and_stdout_is_data(folder: Path) -> None:
    code, records, screen = piped(folder, "e hello\nn\nr\n1\nn\n\nq\n", "own.toml", "--row", "0", "--json")
    assert code == 0
    (record,) = records
    assert [message["content"] for message in record["messages"]] == [
        "hello",
        "[hello]",
        "Are you sure?",
        "[Are you sure?]",
    ]
    assert record["info"] == {"edited": True, "asked_again": 1}
    assert (record["outcome"], len(record["calls"]), record["metrics"]["turns"]) == ("scored", 2, 2)
    assert "this is no real rollout" in screen and "turn 1 › e hello\n" in screen and "\x1b" not in screen
    assert piped(folder, "c\nq\n", "own.toml")[1] == []  # no --json: nothing on stdout


def test_the_end_of_the_input_cancels_what_has_not_ended(folder: Path) -> None:
    code, (record,), _ = piped(folder, "n\n", "own.toml", "--json")
    assert (code, record["outcome"], record["stop_reason"]) == (0, "cancelled", "cancelled")


def test_a_model_that_fails_is_shown_and_tried_again(folder: Path) -> None:
    code, (record,), screen = piped(folder, "n\nr\nn\nq\n", "own.toml", "--row", "down", "--json")
    assert screen.count("the endpoint is on fire") == 3  # each try, and the outcome
    assert "model_unavailable › r\n" in screen
    assert (code, record["outcome"], record["stop_reason"]) == (0, "failed", "model_unavailable")
    assert (record["metrics"]["turns"], len(record["calls"])) == (1, 2)


def test_a_tool_that_fails_is_run_again_and_a_limit_is_set_aside(folder: Path) -> None:
    code, (record,), screen = piped(folder, "n\nn\nr\nn\nr\nn\nq\n", "tools.toml", "--row", "add", "--json")
    assert "ValueError: not yet" in screen and "tools.py:8 in add" in screen and "tools › r\n" in screen
    assert "limit: max_turns" in screen and "`limits.turns` was set aside" in screen
    assert (code, record["outcome"], record["reward"]) == (0, "scored", 1.0)
    assert [message["role"] for message in record["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [span["status"] for span in record["tools"]] == ["error", "ok"]
    assert record["info"] == {"asked_again": 2, "limits_lifted": ["turns"]}


def test_schemas_sampling_help_and_keys_that_are_none(folder: Path) -> None:
    code, _, screen = piped(
        folder,
        "t\nt nope\ns\n?\nr\nx\ng\nm 9\nq\n",
        "tools.toml",
        "--set",
        "sampling.temperature=0.5",
        "--color",
        "never",
    )
    assert code == 0
    assert '"required": [' in screen and "no tool `nope` is offered: add" in screen
    assert "  temperature  0.5\n" in screen and "leave for another row" in screen
    assert "n sends the request" in screen and "`x` is no key here" in screen
    assert "g takes a row" in screen and "there is no message 9: they are 0 to 0" in screen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("own.toml", "--row", "9"), "there is no row `9` among the 4 of `rows.jsonl`"),
        (("own.toml", "--rows", "1-2", "--row", "0"), "there is no row `0` among the 2 of `rows.jsonl`"),
        (("own.toml", "--model", "openai/x"), "this file's answers are its own"),
        (("own.toml", "--dataset", "none.jsonl"), "there is no dataset"),
        (("served.toml",), "the file names no dataset"),
        (("own.toml", "--set", "sampling.temprature=1"), "temprature"),
    ],
)
def test_mistakes_cost_nothing(folder: Path, words: tuple[str, ...], said: str) -> None:
    (folder / "served.toml").write_text((folder / "own.toml").read_text().partition("[dataset]")[0])
    code, records, screen = piped(folder, "", *words)
    assert (code, records) == (1, [])
    assert said in screen and "Traceback" not in screen


def test_a_broken_row_is_told_and_another_may_follow(folder: Path) -> None:
    (folder / "rows.jsonl").write_text('{"id": "none", "q": ""}\n{"id": "one", "q": "", "user_prompt": "1"}\n')
    code, _, screen = piped(folder, "n\nc\nq\n", "own.toml")
    assert code == 0
    assert "the row has neither `messages` nor `user_prompt`" in screen and "row 1 (one), attempt 0" in screen
    assert "ungraded · no_label" in screen
