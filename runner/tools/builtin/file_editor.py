"""`file_editor`: look at files and change them, byte for byte, in the rollout's sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import ToolSpec
from runner.sandboxes.sandbox import Entry, Sandbox
from runner.tools.builtin.editing import CONTEXT, EditFault, inserted, line_count, numbered, replaced
from runner.tools.builtin.text_file import NotText, TextFile, read_text
from runner.tools.tool import ToolResult

MAX_FILE_SIZE = 1 << 20
"""Bytes of the largest file that is read or written."""
_MOST_ENTRIES = 500
_MOST_UNDONE = 50
"""Edits of one file that can be taken back."""

_COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")
_DESCRIPTION = (
    "Views and edits files. `view` shows a file with line numbers (part of it with `view_range`) or what a folder "
    "holds; `create` writes a new file; `str_replace` replaces `old_str`, which must be there exactly once, with "
    "`new_str`; `insert` puts `new_str` after line `insert_line` (0: at the top); `undo_edit` takes back the last edit "
    "of the file."
)
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"enum": list(_COMMANDS), "description": "What to do."},
        "path": {"type": "string", "description": "The file or folder."},
        "file_text": {"type": "string", "description": "With `create`: the whole content."},
        "old_str": {"type": "string", "description": "With `str_replace`: the text to replace, to the letter."},
        "new_str": {"type": "string", "description": "With `str_replace` and `insert`: the new text."},
        "insert_line": {"type": "integer", "minimum": 0, "description": "With `insert`: the line it goes after."},
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 2,
            "maxItems": 2,
            "description": "With `view`: the first and the last line, from 1; -1 is the end.",
        },
    },
    "required": ["command", "path"],
    "additionalProperties": False,
}


class History:
    """What the files of one rollout were before each edit; None: the file was not there."""

    def __init__(self) -> None:
        self._before: dict[str, list[bytes | None]] = {}

    def add(self, path: str, before: bytes | None) -> None:
        kept = self._before.setdefault(path, [])
        kept.append(before)
        del kept[:-_MOST_UNDONE]

    def take(self, path: str) -> bytes | None:
        """What the file was before its last edit. Raises `EditFault` when there is none."""
        kept = self._before.get(path)
        if not kept:
            raise EditFault(f"no edit of `{path}` is left to take back")
        return kept.pop()


class FileEditor:
    """The tool. `allowed_extensions` (".py"; none: all) bounds what is written, `max_file_size` is in bytes.

    With `check_syntax`, an edit that leaves a Python file that does not compile is refused.
    """

    def __init__(
        self,
        *,
        max_file_size: int = MAX_FILE_SIZE,
        allowed_extensions: Sequence[str] = (),
        overwrite: bool = False,
        check_syntax: bool = False,
    ) -> None:
        self._largest = max_file_size
        self._extensions = tuple(allowed_extensions)
        self._overwrite = overwrite
        self._check_syntax = check_syntax

    def spec(self, name: str) -> ToolSpec:
        return ToolSpec(name, _DESCRIPTION, _PARAMETERS)

    async def use(self, sandbox: Sandbox, history: History, arguments: Mapping[str, Any]) -> ToolResult:
        """One call. What cannot be done is an error the model can act on. Raises `SandboxError`."""
        path = arguments["path"]
        try:
            return ToolResult(await self._use(_At(sandbox, history, path), arguments))
        except (EditFault, NotText) as error:
            return ToolResult(f"{arguments['command']} {path}: {error}.", "error")
        except OSError as error:
            return ToolResult(f"{arguments['command']} {path}: {_said(error)}.", "error")

    async def _use(self, at: _At, arguments: Mapping[str, Any]) -> str:
        match arguments["command"]:
            case "view":
                return await self._view(at, arguments.get("view_range"))
            case "create":
                return await self._create(at, _given(arguments, "file_text"))
            case "str_replace":
                old, new = _given(arguments, "old_str"), arguments.get("new_str") or ""
                return await self._edit(at, new, lambda file: replaced(file, old, new))
            case "insert":
                line, new = _given(arguments, "insert_line"), _given(arguments, "new_str")
                return await self._edit(at, new, lambda file: inserted(file, line, new))
            case _:
                return await self._undo(at)

    async def _view(self, at: _At, lines: Sequence[int] | None) -> str:
        try:
            file = await self._read(at)
        except IsADirectoryError:
            if lines is not None:
                raise EditFault("it is a folder, `view_range` is for files") from None
            return _listed(at.path, await at.sandbox.list(at.path))
        count = line_count(file.text)
        first, last = _range(lines, count)
        if not count:
            return f"`{at.path}` is empty."
        return numbered(file.text, first, last)

    async def _create(self, at: _At, text: str) -> str:
        self._may_write(at.path)
        before = await _bytes_or_none(at)
        if before is not None and not self._overwrite:
            raise EditFault("it exists already: change it with `str_replace` or `insert`, or choose another name")
        file = TextFile(text)
        await self._write(at, file, before)
        return f"Created `{at.path}`, {line_count(text)} lines."

    async def _edit(self, at: _At, new: str, edit: Any) -> str:
        self._may_write(at.path)
        data = await at.sandbox.get(at.path, limit=self._largest + 1)
        file = self._text(data)
        edited, line = edit(file)
        await self._write(at, edited, data)
        last = line + max(1, line_count(new)) - 1
        shown = numbered(edited.text, max(1, line - CONTEXT), last + CONTEXT)
        return f"Edited `{at.path}`. It now reads:\n{shown}"

    async def _undo(self, at: _At) -> str:
        before = at.history.take(at.path)
        if before is None:
            await at.remove()
            return f"Took back the creation of `{at.path}`: it is gone."
        await at.sandbox.put(at.path, before)
        return f"Took back the last edit of `{at.path}`."

    async def _read(self, at: _At) -> TextFile:
        return self._text(await at.sandbox.get(at.path, limit=self._largest + 1))

    def _text(self, data: bytes) -> TextFile:
        if len(data) > self._largest:
            raise EditFault(f"the file is larger than {self._largest:,} bytes: look at parts of it by a command")
        return read_text(data)

    async def _write(self, at: _At, file: TextFile, before: bytes | None) -> None:
        data = file.data()
        if len(data) > self._largest:
            raise EditFault(f"the file would be larger than {self._largest:,} bytes")
        if self._check_syntax and at.path.endswith(".py"):
            _compiles(file.text, at.path)
        await at.sandbox.put(at.path, data)
        at.history.add(at.path, before)

    def _may_write(self, path: str) -> None:
        if self._extensions and not path.endswith(self._extensions):
            raise EditFault(f"only files that end in {', '.join(self._extensions)} may be written")


class _At:
    """One call's place: the sandbox, the history, and the path as the model wrote it."""

    def __init__(self, sandbox: Sandbox, history: History, path: str) -> None:
        self.sandbox = sandbox
        self.history = history
        self.path = path

    async def remove(self) -> None:
        await self.sandbox.remove(self.path)


async def _bytes_or_none(at: _At) -> bytes | None:
    try:
        return await at.sandbox.get(at.path)
    except FileNotFoundError:
        return None


def _given(arguments: Mapping[str, Any], key: str) -> Any:
    value = arguments.get(key)
    if value is None:
        raise EditFault(f"`{arguments['command']}` needs `{key}`")
    return value


def _range(lines: Sequence[int] | None, count: int) -> tuple[int, int]:
    if lines is None:
        return 1, count
    first, last = lines
    last = count if last == -1 else last
    if not 1 <= first <= max(count, 1) or last < first:
        raise EditFault(f"`view_range` is {json.dumps(list(lines))}, and the file has {count} lines")
    return first, min(last, count)


def _listed(path: str, entries: Sequence[Entry]) -> str:
    shown = [each for each in entries if not each.name.startswith(".")]
    marks = {"folder": "/", "link": "@"}
    lines = [f"{each.name}{marks.get(each.kind, '')}" for each in shown[:_MOST_ENTRIES]]
    hidden = len(entries) - len(shown)
    if len(shown) > _MOST_ENTRIES:
        lines.append(f"[{len(shown) - _MOST_ENTRIES:,} more]")
    if hidden:
        lines.append(f"[{hidden} hidden]")
    return "\n".join(lines) or f"`{path}` is empty."


def _compiles(text: str, path: str) -> None:
    try:
        compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise EditFault(f"the file would no longer be valid Python{where}: {what}. Nothing was changed") from None


def _said(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file or folder"
        case IsADirectoryError():
            return "it is a folder"
        case NotADirectoryError():
            return "a part of the path is a file, not a folder"
        case PermissionError():
            return "it is outside of what may be touched here, or not permitted"
        case _:
            return error.strerror or str(error)
