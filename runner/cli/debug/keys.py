"""What a person types: one command a line, from a terminal or from a pipe, and the editor they are used to.

Reading blocks the event loop on purpose: while somebody decides, nothing else may happen.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from runner.cli.console import Console
from runner.cli.interrupt import raising_interrupts
from runner.records.message import Message, text_of
from runner.records.quick import quick


@quick
class Typed:
    """A command: its first letter, and what stands behind it. An empty line is the key `n`."""

    key: str
    rest: str = ""


class EditProblem(Exception):
    """The edited text cannot be used; its words say why."""


class Keys:
    """Where commands come from. What is asked goes to stderr: stdout is data."""

    def __init__(self, console: Console, stream: TextIO | None = None) -> None:
        self._console = console
        self._stream = sys.stdin if stream is None else stream
        self.terminal = self._stream.isatty()
        if isinstance(self._stream, TextIOWrapper):
            self._stream.reconfigure(errors="replace")  # a slip of the fingers is no crash

    def ask(self, prompt: str) -> Typed | None:
        """The next command, None at the end of the input (Ctrl-D). Raises KeyboardInterrupt."""
        line = self._line(prompt)
        if line is None:
            return None
        word, _, rest = line.strip().partition(" ")
        return Typed(word or "n", rest.strip())

    def _line(self, prompt: str) -> str | None:
        self._console.flush()
        sys.stderr.write(prompt)
        sys.stderr.flush()
        try:
            with raising_interrupts():
                line = self._stream.readline()
        except KeyboardInterrupt:
            sys.stderr.write("\n")  # the terminal has echoed `^C` behind the prompt
            raise
        if not self.terminal:
            sys.stderr.write(line if line.endswith("\n") else f"{line}\n")  # a log shows what was answered
        elif not line:
            sys.stderr.write("\n")
        return line.rstrip("\r\n") if line else None

    def edit(self, message: Message, text: str) -> Message:
        """`message` with other content: `text`, or what an editor or the next lines say. Raises `EditProblem`."""
        if text:
            return {**message, "content": text}
        whole = not isinstance(message.get("content"), str) or bool(message.get("tool_calls"))
        before = json.dumps(message, ensure_ascii=False, indent=2) if whole else text_of(message)
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        after = _edited(editor, before, whole) if editor and self.terminal else self._lines(whole)
        return _read(message, after) if whole else {**message, "content": after}

    def _lines(self, whole: bool) -> str:
        what = "the message as JSON" if whole else "the new text"
        sys.stderr.write(f"{what}, then a line that holds only a dot:\n")
        found: list[str] = []
        while (line := self._line("… ")) is not None and line != ".":
            found.append(line)
        if line is None:
            raise EditProblem("the input ended before the line with the dot")
        return "\n".join(found)


def _edited(editor: str, text: str, whole: bool) -> str:
    handle, name = tempfile.mkstemp(prefix="message-", suffix=".json" if whole else ".txt")
    file = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as stream:
            stream.write(text + "\n")
        # The screen is stderr: stdout may be a file.
        with raising_interrupts():
            done = subprocess.run([*shlex.split(editor), name], check=False, stdout=sys.stderr.fileno())
        if done.returncode != 0:
            raise EditProblem(f"`{editor}` ended with {done.returncode}; nothing was changed")
        return file.read_text(encoding="utf-8", errors="surrogatepass").removesuffix("\n")
    except (OSError, ValueError) as error:
        raise EditProblem(f"`{editor}` could not be used: {error}") from error
    finally:
        file.unlink(missing_ok=True)


def _read(message: Message, text: str) -> Message:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise EditProblem(f"this is no JSON: {error}") from None
    if not isinstance(found, Mapping) or not isinstance(found.get("role"), str):
        raise EditProblem("a message is a JSON object with a `role`")
    if found["role"] != message.get("role"):
        raise EditProblem(f"the role stays `{message.get('role')}`, found `{found['role']}`")
    return dict(found)
