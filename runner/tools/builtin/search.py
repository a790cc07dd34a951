"""`search`: text in files, files by name, folders by name, in the rollout's sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from fnmatch import translate
from typing import Any

from runner.records.completion import ToolSpec
from runner.sandboxes.sandbox import Sandbox
from runner.tools.builtin.hits import Hit, Request
from runner.tools.builtin.matching import Matcher, Pattern, PatternFault, alike, lines_of
from runner.tools.builtin.ripgrep import has_ripgrep, ripgrep
from runner.tools.builtin.text_file import NotText, read_text
from runner.tools.builtin.tree import EXCLUDED, Found, joined, walk
from runner.tools.tool import ToolResult

MAX_RESULTS = 100
MAX_FILE_SIZE = 1 << 20
"""Bytes of the largest file that is searched."""
RIPGREP_SECONDS = 20.0
_LONGEST_LINE = 300
_BATCH = 64
"""Files that are read before their lines are matched in a thread."""

_DESCRIPTION = (
    "Searches below `path`. `search_text` finds lines that hold `pattern`, `search_files` and `search_dir` find files "
    "and folders by name (a part of it, or a glob such as `*.py`). Hidden and ignored files are left out."
)
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"enum": ["search_text", "search_files", "search_dir"], "description": "What to look for."},
        "pattern": {"type": "string", "minLength": 1, "description": "The text, the name, or a regular expression."},
        "path": {"type": "string", "description": "Where. Default: the working folder."},
        "case_sensitive": {"type": "boolean", "description": "Default: false."},
        "regex": {"type": "boolean", "description": "Whether `pattern` is a regular expression. Default: false."},
        "whole_words": {"type": "boolean", "description": "Only whole words. Default: false."},
        "file_extensions": {
            "type": "array",
            "items": {"type": "string"},
            "description": 'Only files with these endings, such as [".py"]. Default: all.',
        },
        "context_lines": {
            "type": "integer",
            "minimum": 0,
            "maximum": 20,
            "description": "With `search_text`: lines to show around each. Default: 0.",
        },
        "max_results": {"type": "integer", "minimum": 1, "description": "At most so many."},
    },
    "required": ["command", "pattern"],
    "additionalProperties": False,
}


class Search:
    """The tool. A call may ask for less than `max_results`, never for more; sizes are in bytes.

    `ripgrep=False` never looks for ripgrep: the answers are the same.
    """

    def __init__(
        self,
        *,
        max_results: int = MAX_RESULTS,
        max_file_size: int = MAX_FILE_SIZE,
        exclude: Sequence[str] = EXCLUDED,
        extensions: Sequence[str] = (),
        ripgrep: bool = True,
    ) -> None:
        self._most = max_results
        self._largest = max_file_size
        self._excluded = tuple(exclude)
        self._extensions = tuple(extensions)
        self._ripgrep = ripgrep

    def spec(self, name: str) -> ToolSpec:
        return ToolSpec(name, _DESCRIPTION, _PARAMETERS)

    async def quick(self, sandbox: Sandbox) -> bool:
        """Whether this sandbox has ripgrep; asked once a rollout. Raises `SandboxError`."""
        return self._ripgrep and await has_ripgrep(sandbox)

    async def use(self, sandbox: Sandbox, quick: bool, arguments: Mapping[str, Any]) -> ToolResult:
        """One call. What cannot be searched is an error the model can act on. Raises `SandboxError`."""
        request = self._request(arguments)
        try:
            if arguments["command"] == "search_text":
                return ToolResult(await self._text(sandbox, quick, request, arguments.get("context_lines") or 0))
            return ToolResult(await self._names(sandbox, request, arguments["command"] == "search_dir"))
        except PatternFault as error:
            return ToolResult(f"{arguments['command']}: {error}.", "error")
        except FileNotFoundError:
            return ToolResult(f"{arguments['command']}: there is no `{request.path}`.", "error")
        except OSError as error:
            return ToolResult(f"{arguments['command']} in {request.path}: {error.strerror or error}.", "error")

    def _request(self, arguments: Mapping[str, Any]) -> Request:
        pattern = Pattern(
            arguments["pattern"],
            regex=bool(arguments.get("regex")),
            case_sensitive=bool(arguments.get("case_sensitive")),
            whole_words=bool(arguments.get("whole_words")),
        )
        endings = tuple(each if each.startswith(".") else f".{each}" for each in arguments.get("file_extensions") or ())
        most = min(arguments.get("max_results") or self._most, self._most)
        path = arguments.get("path") or "."
        return Request(pattern, path, most, self._largest, endings or self._extensions, self._excluded)

    async def _text(self, sandbox: Sandbox, quick: bool, request: Request, around: int) -> str:
        matcher = Matcher(request.pattern)
        try:
            await sandbox.list(request.path)  # ripgrep would go where this may not
            hits = await ripgrep(sandbox, request, RIPGREP_SECONDS) if quick and alike(request.pattern) else None
            if hits is None:
                hits = await self._searched(sandbox, request, matcher)
        except NotADirectoryError:
            hits = await _in_file(sandbox, request, matcher)
        shown, more = hits[: request.max_results], len(hits) > request.max_results
        if not shown:
            return "No line matches."
        blocks = [await _block(sandbox, request, path, shown, around) for path in dict.fromkeys(h.path for h in shown)]
        return "\n".join([*blocks, _closing(len(shown), len(blocks), more)])

    async def _searched(self, sandbox: Sandbox, request: Request, matcher: Matcher) -> list[Hit]:
        """By our own means; at most one hit more than is wanted."""
        hits: list[Hit] = []
        async for texts in _batches(sandbox, request):
            hits += await asyncio.to_thread(_matched, texts, matcher, request.max_results + 1 - len(hits))
            if len(hits) > request.max_results:
                break
        return hits

    async def _names(self, sandbox: Sandbox, request: Request, folders: bool) -> str:
        named = _named(request.pattern)
        found: list[str] = []
        async for each in walk(sandbox, request.path, self._excluded):
            right = each.kind == "folder" if folders else each.kind == "file" and request.wants(each.path)
            name = each.path.rpartition("/")[2]
            if right and (named.matches(name) or ("/" in request.pattern.text and named.matches(each.path))):
                found.append(joined(request.path, each.path) + ("/" if folders else ""))
                if len(found) > request.max_results:
                    break
        if not found:
            return f"No {'folder' if folders else 'file'} matches."
        if len(found) > request.max_results:
            return "\n".join([*found[: request.max_results], _more(request.max_results)])
        return "\n".join(found)


def _named(pattern: Pattern) -> Matcher:
    """What tells names: a glob has to fit the whole of one, anything else a part."""
    if not pattern.regex and any(sign in pattern.text for sign in "*?["):
        return Matcher(Pattern(translate(pattern.text), regex=True, case_sensitive=pattern.case_sensitive))
    return Matcher(pattern)


async def _batches(sandbox: Sandbox, request: Request) -> AsyncIterator[list[tuple[str, str]]]:
    """The texts of the files that count, by path, some at a time."""
    waiting: list[Found] = []
    async for each in walk(sandbox, request.path, request.excluded):
        if each.kind == "file" and request.wants(each.path) and each.size <= request.max_file_size:
            waiting.append(each)
        if len(waiting) == _BATCH:
            yield await _texts(sandbox, request, waiting)
            waiting = []
    yield await _texts(sandbox, request, waiting)


async def _texts(sandbox: Sandbox, request: Request, files: Sequence[Found]) -> list[tuple[str, str]]:
    texts = [await _text_of(sandbox, joined(request.path, each.path), request.max_file_size) for each in files]
    return [(each.path, text) for each, text in zip(files, texts, strict=True) if text is not None]


async def _text_of(sandbox: Sandbox, path: str, largest: int) -> str | None:
    """The text of a file; None for one that is none, too large, or gone by now."""
    try:
        data = await sandbox.get(path, limit=largest + 1)
    except OSError:
        return None
    if len(data) > largest:
        return None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return read_text(data).text
        except NotText:
            return None
    return None if b"\0" in data else data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def _matched(texts: Sequence[tuple[str, str]], matcher: Matcher, most: int) -> list[Hit]:
    hits: list[Hit] = []
    for path, text in texts:
        lines = None
        for match in matcher.lines(text):
            lines = lines or lines_of(text)
            hits.append(Hit(path, match.line, match.column, lines[match.line - 1].removesuffix("\r")))
            if len(hits) == most:
                return hits
    return hits


async def _in_file(sandbox: Sandbox, request: Request, matcher: Matcher) -> list[Hit]:
    """`path` is a file: it is searched whatever its name."""
    text = await _text_of(sandbox, request.path, request.max_file_size)
    if text is None:
        raise PatternFault(f"`{request.path}` is no text, or larger than {request.max_file_size:,} bytes")
    return await asyncio.to_thread(_matched, [("", text)], matcher, request.max_results + 1)


async def _block(sandbox: Sandbox, request: Request, path: str, hits: Sequence[Hit], around: int) -> str:
    """The hits of one file, under its name; with `around` lines before and after each."""
    own = [hit for hit in hits if hit.path == path]
    where = joined(request.path, path)
    lines = {hit.line: hit.text for hit in own}
    if around:
        text = lines_of(await _text_of(sandbox, where, request.max_file_size) or "")
        for hit in own:
            for number in range(max(1, hit.line - around), min(len(text), hit.line + around) + 1):
                lines.setdefault(number, text[number - 1].removesuffix("\r"))
    marked = {hit.line for hit in own}
    return "\n".join([where, *_numbered(lines, marked if around else set())])


def _numbered(lines: Mapping[int, str], marked: set[int]) -> list[str]:
    shown = []
    last = 0
    for number in sorted(lines):
        if marked and last and number > last + 1:
            shown.append("  ...")
        sign = ">" if number in marked else " "
        shown.append(f"{sign}{number:5}: {_clipped(lines[number])}")
        last = number
    return shown


def _clipped(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}[… {len(line) - _LONGEST_LINE:,} more]"


def _closing(count: int, files: int, more: bool) -> str:
    if more:
        return _more(count)
    return f"[{count} {'line' if count == 1 else 'lines'} in {files} {'file' if files == 1 else 'files'}]"


def _more(count: int) -> str:
    return f"[the first {count}; there are more: search for something rarer, or in a smaller folder]"
