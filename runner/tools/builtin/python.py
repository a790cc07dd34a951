"""`python`: an interpreter of the rollout's own, which keeps its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.records.completion import ToolSpec
from runner.sandboxes.sandbox import Sandbox
from runner.tools.builtin.bash import MAX_OUTPUT, TIMEOUT, said
from runner.tools.builtin.session import Session
from runner.tools.tool import ToolResult

_PROGRAM = r"""
import ast, io, linecache, os, sys, traceback
def main():
    source, out = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(1, 2)
    os.set_inheritable(out, False)
    sys.stdin = open(0, closefd=False)
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    sys.argv = [""]
    sys.path[0:1] = [""]
    buffer = b""
    count = 0
    while True:
        while buffer.count(b"\0") < 2:
            data = source.read1(65536)
            if not data:
                return
            buffer += data
        mark, work, buffer = buffer.split(b"\0", 2)
        count += 1
        code = run(work.decode(), "<call %d>" % count, names)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # the code closed it, which is its own affair
                pass
        os.write(out, b"\n%s %d\n" % (mark, code))
def run(work, name, names):
    linecache.cache[name] = (len(work), None, work.splitlines(True), name)
    try:
        tree = ast.parse(work, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                names["_"] = value
                print(repr(value))
        return 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 255
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        sys.stdout.flush()
        traceback.print_exception(type(error), error, trace)
        return 1
main()
"""
_DESCRIPTION = (
    "Runs Python code. The interpreter stays: variables, functions and imports are there in the next call. What the "
    "code prints is shown, and the value of its last line if that is an expression."
)


class PythonTool:
    """The tool. Code may ask for a shorter time than `timeout`, in seconds; `max_output` is in bytes.

    `interpreter` is looked up in the sandbox.
    """

    def __init__(self, *, timeout: float = TIMEOUT, max_output: int = MAX_OUTPUT, interpreter: str = "python3") -> None:
        self._timeout = timeout
        self._max_output = max_output
        self._interpreter = interpreter

    def spec(self, name: str) -> ToolSpec:
        properties = {
            "code": {"type": "string", "description": "The code."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": self._timeout,
                "description": f"Seconds after which it is killed. Default: {self._timeout:g}.",
            },
        }
        schema = {"type": "object", "properties": properties, "required": ["code"], "additionalProperties": False}
        return ToolSpec(name, _DESCRIPTION, schema)

    def open(self, sandbox: Sandbox) -> Session:
        """An interpreter, started with the first code."""
        return Session(sandbox, [self._interpreter, "-u", "-c", _PROGRAM])

    async def use(self, session: Session, arguments: Mapping[str, Any]) -> ToolResult:
        """One call. Raises `SandboxError`."""
        code = arguments["code"]
        if "\0" in code:
            return ToolResult("Code cannot hold a NUL.", "error")
        timeout = min(float(arguments.get("timeout") or self._timeout), self._timeout)
        done = await session.run(code, timeout, self._max_output)
        return said(done, f"{timeout:g} s", "The interpreter was restarted: its variables are gone.")
