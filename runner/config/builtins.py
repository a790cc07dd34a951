"""`[tools.NAME] builtin = "…"`: the tools that come with the runner, and the keys of each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.config.quantity import Bytes
from runner.config.section import OPERATION, Array
from runner.config.tools import ToolSection

MEBIBYTE = 1 << 20


class CalculatorTool(ToolSection):
    """Computes: an expression, or an operation and its numbers. Exact for whole numbers, bounded for all."""

    builtin: Literal["calculator"]
    """`calculator`."""
    precision: Annotated[int, Field(ge=0, le=15)] = 10
    """Decimal places of a result that is no whole number."""


class SandboxedTool(ToolSection):
    """What every tool has that works in a sandbox."""

    sandbox: str | None = None
    """Which of `[sandboxes]`; all tools that name it share it, within a rollout. Default: the only one there is."""


class BashTool(SandboxedTool):
    """A shell that keeps its directory, its variables and its background jobs from call to call."""

    builtin: Literal["bash"]
    """`bash`."""


class PythonTool(SandboxedTool):
    """An interpreter that keeps its variables from call to call."""

    builtin: Literal["python"]
    """`python`."""
    interpreter: Annotated[str, Field(min_length=1)] = "python3"
    """The program, looked up in the sandbox."""


class FileEditorTool(SandboxedTool):
    """Views files and folders, creates files, replaces and inserts text, takes edits back. Byte for byte."""

    builtin: Literal["file_editor"]
    """`file_editor`."""
    max_file_size: Bytes = MEBIBYTE
    """The largest file that is viewed or written. Default 1 MiB: nobody edits a larger one by hand."""
    allowed_extensions: Array[str] = ()
    """The endings of the files that may be written, such as `[".py"]`. Default: any."""
    overwrite: bool = False
    """Whether `create` may replace a file that is there."""
    check_syntax: bool = False
    """Whether an edit is refused that leaves a `.py` file which does not compile."""


class SearchTool(SandboxedTool):
    """Finds text in files, and files and folders by name. Ignored and hidden files are left out."""

    builtin: Literal["search"]
    """`search`."""
    max_results: Annotated[int, Field(ge=1, le=10_000)] = 100
    """The most that one call gives."""
    max_file_size: Bytes = MEBIBYTE
    """The largest file that is searched."""
    exclude: Array[str] | None = None
    """Names of folders that are never entered. Default: those of version control, caches and virtual environments."""
    extensions: Array[str] = ()
    """The endings of the files that are searched, such as `[".py"]`. Default: any."""
    ripgrep: Annotated[bool, OPERATION] = True
    """Whether `rg` is used where the sandbox has it. The answers are the same without, only later."""


class ThinkTool(ToolSection):
    """A place to think: does nothing."""

    builtin: Literal["think"]
    """`think`."""


class FinishTool(ToolSection):
    """Ends the work with an answer. Where `[workflow] stop_when` says nothing, calling it ends the rollout."""

    builtin: Literal["finish"]
    """`finish`."""


BUILTINS: dict[str, type[ToolSection]] = {
    "calculator": CalculatorTool,
    "bash": BashTool,
    "python": PythonTool,
    "file_editor": FileEditorTool,
    "search": SearchTool,
    "think": ThinkTool,
    "finish": FinishTool,
}
"""Every built-in tool and its table."""
