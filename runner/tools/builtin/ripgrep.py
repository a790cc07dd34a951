"""Search by ripgrep where the sandbox has it: the same answers as our own search gives, sooner."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from runner.sandboxes.sandbox import Command, Sandbox
from runner.tools.builtin.hits import Hit, Request

_MOST_OUTPUT = 16 << 20


async def has_ripgrep(sandbox: Sandbox) -> bool:
    """Whether `rg` runs there, in a version that knows what we ask of it (13 on)."""
    ran = await sandbox.exec(Command(["sh", "-c", "rg --version 2>/dev/null"], timeout=10.0, max_output=4096))
    words = ran.stdout.split()
    return ran.code == 0 and len(words) > 1 and words[0] == b"ripgrep" and int(words[1].split(b".")[0] or b"0") >= 13


async def ripgrep(sandbox: Sandbox, request: Request, timeout: float) -> list[Hit] | None:
    """The hits in the order of the files, or None when ripgrep cannot tell (our own search then answers)."""
    argv = ["sh", "-c", 'cd -- "$0" && exec rg "$@"', request.path, *_argv(request)]
    ran = await sandbox.exec(Command(argv, timeout=timeout, max_output=_MOST_OUTPUT))
    if ran.code not in (0, 1) or ran.timed_out or ran.dropped_out:
        return None
    return list(_hits(ran.stdout, request))


def _argv(request: Request) -> list[str]:
    pattern = request.pattern
    argv = ["--json", "--no-config", "--no-messages", "--no-require-git", "--no-ignore-global"]
    argv += ["--no-ignore-parent", "--no-ignore-exclude", "--sort", "path", "--no-follow", "--crlf"]
    argv += ["--case-sensitive" if pattern.case_sensitive else "--ignore-case"]
    argv += [f"--max-filesize={request.max_file_size}", f"--max-count={request.max_results + 1}"]
    argv += [f"--glob=!**/{folder}/" for folder in request.excluded]
    text = pattern.text if pattern.regex else _escaped(pattern.text)
    argv += ["--regexp", rf"\b(?:{text})\b" if pattern.whole_words else text, "./"]
    return argv


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in r"\.+*?()|[]{}^$#&-~" else sign for sign in text)


def _hits(output: bytes, request: Request) -> Iterator[Hit]:
    """Hits of files that are text to the end: ripgrep says of a file that is not so when it is through with it."""
    held: list[Hit] = []
    for line in output.splitlines():
        event: dict[str, Any] = json.loads(line)
        data = event["data"]
        if event["type"] == "begin":
            held = []
        elif event["type"] == "match":
            held.append(_hit(data))
        elif event["type"] == "end" and data["binary_offset"] is None:
            yield from (hit for hit in held if request.wants(hit.path))


def _hit(data: dict[str, Any]) -> Hit:
    line = _text(data["lines"])
    start = data["submatches"][0]["start"] if data["submatches"] else 0
    column = len(_bytes(data["lines"])[:start].decode("utf-8", "replace")) + 1
    return Hit(_text(data["path"]).removeprefix("./"), data["line_number"], column, line.rstrip("\r\n"))


def _bytes(data: dict[str, str]) -> bytes:
    return data["text"].encode() if "text" in data else base64.b64decode(data["bytes"])


def _text(data: dict[str, str]) -> str:
    return _bytes(data).decode("utf-8", "replace")
