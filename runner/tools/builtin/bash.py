"""`bash`: a shell of the rollout's own, which keeps its directory, its variables and what it runs in the background."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from runner.records.completion import ToolSpec
from runner.sandboxes.sandbox import Sandbox
from runner.tools.builtin.session import Done, Session
from runner.tools.tool import ToolResult

TIMEOUT = 60.0
"""Seconds that one command may take where the file says nothing."""
MAX_OUTPUT = 16_000
"""Bytes of a command's output that are kept: its head and its tail."""

_PROGRAM = r"""
exec 3<&0 4>&1 </dev/null
__file=${TMPDIR:-/tmp}/.shell-$1
[ ! -f "$__file" ] || . "$__file" 2>/dev/null
__keep() { { export -p; printf 'cd -- %q\n' "$PWD"; } >"$__file" 2>/dev/null; }
trap __keep EXIT
while IFS= read -r -d '' __mark <&3 && IFS= read -r -d '' __work <&3; do
  eval "$__work" </dev/null 2>&1 3<&- 4>&-
  __code=$?
  __keep
  printf '\n%s %d\n' "$__mark" "$__code" >&4
done
"""
_DESCRIPTION = (
    "Runs a command in bash. The shell stays: directory, variables and background jobs are there in the next call. "
    "Commands get no input and no terminal, so use flags that ask nothing; start servers with `&`."
)
_AFTER_END = "The shell was restarted: it keeps its variables and directory, and nothing that ran in the background."


class Bash:
    """The tool. A command may ask for a shorter time than `timeout`, in seconds; `max_output` is in bytes."""

    def __init__(self, *, timeout: float = TIMEOUT, max_output: int = MAX_OUTPUT) -> None:
        self._timeout = timeout
        self._max_output = max_output

    def spec(self, name: str) -> ToolSpec:
        properties = {
            "command": {"type": "string", "description": "What to run. It may have several lines."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": self._timeout,
                "description": f"Seconds after which it is killed. Default: {self._timeout:g}.",
            },
            "restart": {"type": "boolean", "description": "Begin with a new shell; `command` may then be left out."},
        }
        return ToolSpec(name, _DESCRIPTION, {"type": "object", "properties": properties, "additionalProperties": False})

    def open(self, sandbox: Sandbox) -> Session:
        """A shell, started with its first command."""
        return Session(sandbox, ["bash", "--noprofile", "--norc", "-c", _PROGRAM, "bash", token_hex(6)])

    async def use(self, session: Session, arguments: Mapping[str, Any]) -> ToolResult:
        """One call. Raises `SandboxError`."""
        command = arguments.get("command")
        if arguments.get("restart"):
            await session.close()
            if command is None:
                return ToolResult("The shell was restarted.")
        if command is None:
            return ToolResult("bash needs `command`.", "error")
        if "\0" in command:
            return ToolResult("A command cannot hold a NUL.", "error")
        timeout = min(float(arguments.get("timeout") or self._timeout), self._timeout)
        done = await session.run(command, timeout, self._max_output)
        return said(done, f"{timeout:g} s", _AFTER_END)


def said(done: Done, limit: str, after_end: str) -> ToolResult:
    """A piece of work as the model reads it: what it said, then how it ended, if not well."""
    output = done.output.rstrip("\n")
    if done.timed_out:
        return _result(output, f"[killed after {limit}. {after_end}]", "timeout", done)
    if done.code is None or done.code:
        return _result(output, f"[exit code {done.code}]", "error", done)
    return ToolResult(output or "[no output]", truncated=bool(done.dropped))


def _result(output: str, closing: str, status: Any, done: Done) -> ToolResult:
    return ToolResult(f"{output}\n{closing}".lstrip("\n"), status, truncated=bool(done.dropped))
