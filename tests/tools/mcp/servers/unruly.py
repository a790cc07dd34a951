"""A server of our own that speaks the protocol by hand, and then misbehaves as its argument says."""

# ruff: noqa: T201, PTH110, PTH123

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

HOW = sys.argv[1]
TOOL = {"name": "go", "description": "Go.", "inputSchema": {"type": "object", "properties": {}}}


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> None:
    method, number = request["method"], request.get("id")
    if method == "initialize":
        info = {"name": "unruly", "version": "1"}
        version = request["params"]["protocolVersion"]
        say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        say(id=number, result={"tools": [TOOL, {**TOOL, "name": "odd name!"}]})
    elif method == "tools/call":
        called(number)
    elif number is not None:
        say(id=number, error={"code": -32601, "message": "no such method"})


def called(number: Any) -> None:
    if HOW == "hang":
        time.sleep(600)
    elif HOW == "die":
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(1)
    elif HOW == "garbage":
        print("this is not JSON\n{}\n[1, 2", flush=True)
        say(id=number, result={"content": [{"type": "text", "text": "after all"}]})
    elif HOW == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    elif HOW == "notify":
        while True:
            say(method="notifications/progress", params={"progressToken": 1, "progress": 0.5})
    elif HOW == "stderr":
        for _ in range(3000):
            print("y" * 1000, file=sys.stderr)
        say(id=number, result={"content": [{"type": "text", "text": "quiet"}]})
    elif HOW == "child":
        child = subprocess.Popen(["setsid", "sleep", "500"])
        say(id=number, result={"content": [{"type": "text", "text": str(child.pid)}]})
    elif HOW == "wrong":
        say(id=number, result={"content": "no list"})
    elif HOW == "refuse":
        say(id=number, error={"code": -32000 - 42, "message": "not today"})
    elif HOW == "once":
        flag = sys.argv[2]
        if not os.path.exists(flag):
            open(flag, "w").close()
            os._exit(1)
        say(id=number, result={"content": [{"type": "text", "text": "second time"}]})


if HOW == "deaf":
    time.sleep(600)
if HOW == "stillborn":
    print("no licence", file=sys.stderr, flush=True)
    sys.exit(2)
for line in sys.stdin:
    answer(json.loads(line))
if HOW == "stays":
    time.sleep(600)
