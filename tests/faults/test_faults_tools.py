"""Tools that raise, hang, say too much or what JSON cannot hold, block, exit: the others never notice."""

from __future__ import annotations

import json
import time
from typing import Any

WORKFLOW = """\
[workflow]
name  = "it"
user  = "{{ row.how }}"
label = "done"

[model]
id       = "scripted/pupil"
provider = "scripted"

[[model.rules]]
when       = "turn == 0"
tool_calls = [
    { name = "thread", arguments = { how = "{{ row.how }}" } },
    { name = "loop", arguments = { how = "{{ row.how }}" } },
]
[[model.rules]]
reply = "done"

[tools.thread]
call    = "./tools.py:thread"
timeout = "400ms"
[tools.loop]
call    = "./tools.py:loop"
timeout = "400ms"

[graders.answer]
kind = "exact"

[dataset]
path = "rows.jsonl"
id   = "how"
"""

TOOLS = """\
import asyncio, ctypes, sys, time

def _do(how):
    if how == "raise": raise ValueError("it is broken")
    if how == "raise a group": raise ExceptionGroup("both", [ValueError("a"), OSError("b")])
    if how == "exit": sys.exit(7)
    if how == "cancel": raise asyncio.CancelledError
    if how == "stop": raise StopIteration("enough")
    if how == "generator exit": raise GeneratorExit
    if how == "recurse": return _do(how)
    if how == "huge": return "x" * 50_000_000
    if how == "huge list": return ["x" * 1000] * 50_000
    if how == "object": return object()
    if how == "nan": return {"value": float("nan")}
    if how == "cycle": x = []; x.append(x); return x
    if how == "surrogate": return "half \\ud83d of it"
    if how == "bytes": return bytes(range(256))
    if how == "nothing": return None
    if how == "print": print("a tool prints"); sys.stdout.write("and writes\\n"); return "printed"
    if how == "bad message": raise Unspeakable()
    return "fine"

class Unspeakable(Exception):
    def __str__(self): raise RuntimeError("no words")

def thread(how: str):
    "Do it in a thread."
    if how in ("hang", "block"): time.sleep(30)
    if how == "block in C": ctypes.CDLL(None).usleep(30_000_000)
    return _do(how)

async def loop(how: str):
    "Do it on the loop."
    if how == "hang": await asyncio.sleep(30)
    if how == "will not be cancelled":
        for _ in range(30):
            try: await asyncio.sleep(1)
            except asyncio.CancelledError: pass
    if how == "block": time.sleep(0.3)
    return _do(how)
"""

ERRORS = {
    "raise": "ValueError: it is broken",
    "raise a group": "ExceptionGroup",
    "exit": "SystemExit",
    "cancel": "CancelledError",
    "stop": "StopIteration",
    "generator exit": "GeneratorExit",
    "recurse": "RecursionError",
    "object": "`object` has no JSON form",
    "nan": "NaN",
    "cycle": "contains itself",
    "bad message": "Unspeakable",
}
ANSWERS = {
    "huge": "characters cut",
    "huge list": "characters cut",
    "surrogate": "half \ufffd of it",
    "bytes": "not UTF-8",
    "nothing": "",
    "print": "printed",
    "fine": "fine",
}
TIMEOUTS = {"hang": ("timeout", "timeout"), "block": ("timeout", "ok"), "block in C": ("timeout", "ok"),
            "will not be cancelled": ("ok", "timeout")}  # fmt: skip


def test_every_misbehaviour_is_an_answer_and_the_others_are_unharmed(project: Any) -> None:
    hows = [*ERRORS, *ANSWERS, *TIMEOUTS, *(f"fine {n}" for n in range(40))]
    project.write("workflow.toml", WORKFLOW)
    project.write("tools.py", TOOLS)
    project.write("rows.jsonl", "".join(json.dumps({"how": how}) + "\n" for how in hows))
    started = time.monotonic()
    done = project.run("eval", "--json")
    assert time.monotonic() - started < 10, "a thread that hangs must not hold the process"
    assert json.loads(done.out)["outcomes"]["scored"] == len(hows)
    lines = {line["row_id"]: line for line in project.lines()}
    for how in hows:
        line = lines[how]
        assert (line["outcome"], line["reward"]) == ("scored", 1.0), how
        said = [message["content"] for message in line["messages"] if message["role"] == "tool"]
        ended = {span["name"]: span["status"] for span in line["tools"]}
        statuses = (ended["thread"], ended["loop"])
        expected = TIMEOUTS.get(how, ("error", "error") if how in ERRORS else ("ok", "ok"))
        assert statuses == expected, (how, statuses, said)
        for text, status in zip(said, statuses, strict=True):
            words = {"error": ERRORS.get(how, "?"), "timeout": "did not answer within 0.4 s"}
            assert words.get(status, ANSWERS.get(how, "fine")) in text, how
            assert len(text) < 101_000, how
    assert all(line["timing"]["total"] < 5 for line in lines.values())
    assert project.journal().stat().st_size < 2_000_000, "what was cut is not kept elsewhere"


def test_a_hanging_tool_is_cut_by_the_limit_of_its_rollout_too(project: Any) -> None:
    project.write("workflow.toml", WORKFLOW.replace('timeout = "400ms"', ""))
    project.write("tools.py", TOOLS)
    project.write("rows.jsonl", '{"how": "hang"}\n{"how": "fine"}\n')
    started = time.monotonic()
    project.run("eval", "-q", "--set", 'limits.time="600ms"', code=3)
    assert time.monotonic() - started < 8
    lines = project.last()
    assert (lines["hang", 0]["outcome"], lines["hang", 0]["stop_reason"]) == ("failed", "rollout_timeout")
    assert lines["hang", 0]["reward"] is None
    assert lines["fine", 0]["reward"] == 1.0


def test_a_tool_that_hangs_again_and_again(project: Any, in_a_row: Any) -> None:
    """Its threads cannot be stopped, so there are only so many: the run ends and says why, and nothing is scored 0."""
    project.write("workflow.toml", WORKFLOW)
    project.write("tools.py", TOOLS.replace('if how in ("hang", "block")', 'if how.startswith("hang")'))
    hows = [f"{how} {n}" for n in range(60) for how in ("hang", "fine")]
    project.write("rows.jsonl", "".join(json.dumps({"how": how}) + "\n" for how in hows))
    started = time.monotonic()
    done = project.run("eval", code=3)
    assert time.monotonic() - started < 8
    assert in_a_row(done.err, "tool/") >= 8 and "`thread`" in done.err
    lines = project.last().values()
    assert {line["outcome"] for line in lines} == {"scored", "failed"}
    assert all(line["reward"] == (1.0 if line["outcome"] == "scored" else None) for line in lines)

    project.run("eval", "-q", "--retry-failed", "--set", "tools.thread.concurrency=200")
    assert {line["reward"] for line in project.last().values()} == {1.0} and len(project.last()) == 120


def test_what_user_code_prints_is_not_among_the_data(project: Any) -> None:
    project.write("workflow.toml", WORKFLOW)
    project.write("tools.py", 'print("imported")\n' + TOOLS)
    project.write("rows.jsonl", '{"how": "print"}\n')
    done = project.run("eval", "--json")
    assert json.loads(done.out)["rows"] == 1
    assert "a tool prints" in done.err and "imported" in done.err
    assert json.loads(project.run("plan", "--json").out)["reuse"] == 1


def test_a_tool_that_ends_the_process(project: Any) -> None:
    """`os._exit` cannot be survived, but it costs no more than a kill does."""
    project.write("workflow.toml", WORKFLOW)
    project.write("tools.py", TOOLS.replace("sys.exit(7)", "__import__('os')._exit(7)"))
    hows = [*(f"fine {n}" for n in range(30)), "exit"]
    project.write("rows.jsonl", "".join(json.dumps({"how": how}) + "\n" for how in hows))
    project.run("eval", "-q", "--concurrency", "2", code=7)
    kept = len(project.last())
    assert 20 < kept < 31
    project.write("tools.py", TOOLS.replace("sys.exit(7)", "pass"))
    done = project.run("eval")
    assert "tools.thread" in done.err, "the changed code is named"
    assert len(project.last()) == 31
