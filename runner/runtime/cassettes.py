"""Tool cassettes: what the tools answered is written down, and given again without calling them.

A call is known by its row and attempt, its tool, its arguments and which of such calls of the rollout it is. An attempt
that was not recorded is given what every recorded rollout got for the same call, if that was the same. Anything else is
a miss, and a miss is a failure that says so: no tool is called in its place.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from runner.build.live import Live
from runner.build.plan import Plan
from runner.models.recording import Ordinals, Recording, digest, row_digest
from runner.records.completion import Caller, ToolSpec
from runner.records.failure import ConfigFailure, ToolError
from runner.tools.tool import Tool, ToolResult, ToolScope

ToolsMode: TypeAlias = Literal["live", "record", "replay"]
SCHEMA = "tools/1"
_CALL = {"row", "attempt", "tool", "key", "ordinal", "result"}

_Key: TypeAlias = tuple[str, str, int]
"""A tool, a digest of the arguments, and the how-manieth such call of its rollout."""


class Cassette(Protocol):
    """Stands between a tool and whoever calls it."""

    async def answer(self, tool: Tool, arguments: dict[str, Any], scope: ToolScope) -> ToolResult: ...


@asynccontextmanager
async def open_on_cassette(
    plan: Plan, mode: ToolsMode, path: Path, *, record: Path | None = None
) -> AsyncIterator[Live]:
    """`plan.open(record=…)` with its tools on a cassette: recorded to `path`, given from it, or neither.

    A replay connects no MCP server: what they offered is on the cassette too. Raises what `plan.open` does, and
    `ConfigFailure` (kind "cassette") for a file that cannot be read.
    """
    replaying = ReplayingCassette(path) if mode == "replay" else None
    async with plan.open(record=record, servers=replaying is None) as live:
        if replaying is not None:
            whole = live.plan.with_tools({spec.name: _Offered(spec) for spec in replaying.offered})
            yield replace(live, plan=_through(whole, replaying))
        elif mode == "record":
            recording = RecordingCassette(path, [tool.spec for tool in _of_servers(live.plan)])
            try:
                yield replace(live, plan=_through(live.plan, recording))
            finally:
                recording.close()
        else:
            yield live


def _through(plan: Plan, taken: Cassette) -> Plan:
    return plan.with_each_tool(lambda tool: _OnCassette(tool, taken))


def _of_servers(plan: Plan) -> list[Tool]:
    return [tool for name, tool in plan.tools.items() if name not in plan.config.tools]


@dataclass(frozen=True, slots=True)
class _Offered:
    """A tool of a server that is not connected."""

    spec: ToolSpec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        raise ToolError(f"`{self.spec.name}` is on the cassette only", kind="cassette_miss")


@dataclass(frozen=True, slots=True)
class _OnCassette:
    """A tool of the plan, asked by way of a cassette."""

    tool: Tool
    cassette: Cassette

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        return await self.cassette.answer(self.tool, arguments, scope)


class RecordingCassette:
    """Calls the tools, and writes down what they answered; a line written later counts for the same call."""

    def __init__(self, path: Path, offered: Sequence[ToolSpec] = ()) -> None:
        self._recording = Recording(path)
        self._ordinals = Ordinals()
        for spec in offered:
            self._recording.append({"schema": SCHEMA, "offered": asdict(spec)})

    async def answer(self, tool: Tool, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """As the tool; raises what it raises, which is not recorded: it ended the rollout."""
        name, asked = tool.spec.name, digest(arguments)
        ordinal = self._ordinals.next(scope.caller, f"{name} {asked}")
        line = {
            "schema": SCHEMA,
            "row": row_digest(scope.caller.row),
            "attempt": scope.caller.attempt,
            "tool": name,
            "key": asked,
            "ordinal": ordinal,
            "arguments": json.loads(json.dumps(arguments, default=str)),  # before the tool can change them
        }
        result = await tool.call(arguments, scope)
        said = {
            "content": result.content,
            "status": result.status,
            "truncated": result.truncated,
            "where": result.where,
        }
        self._recording.append({**line, "result": said})
        return result

    def close(self) -> None:
        self._recording.close()


class ReplayingCassette:
    """Gives what was recorded in `path`. Raises `ConfigFailure` for a file that is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ordinals = Ordinals()
        self._of_rollout: dict[tuple[str, int], dict[_Key, ToolResult]] = {}
        self._of_any: dict[_Key, ToolResult | None] = {}
        self._offered: dict[str, ToolSpec] = {}
        for line in _lines(path):
            self._add(line)

    @property
    def offered(self) -> list[ToolSpec]:
        """The tools of MCP servers, as they were when it was recorded."""
        return list(self._offered.values())

    async def answer(self, tool: Tool, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """The recorded answer. Raises `ToolError` (kind "cassette_miss") where there is none."""
        name, asked = tool.spec.name, digest(arguments)
        key = (name, asked, self._ordinals.next(scope.caller, f"{name} {asked}"))
        own = self._of_rollout.get((row_digest(scope.caller.row), scope.caller.attempt))
        found = own.get(key) if own is not None else self._of_any.get(key)
        if found is None:
            raise ToolError(self._miss(key, arguments, scope.caller, own is not None), kind="cassette_miss")
        return found

    def _add(self, line: Mapping[str, Any]) -> None:
        if "offered" in line:
            spec = ToolSpec(**line["offered"])
            self._offered[spec.name] = spec
            return
        key = (line["tool"], line["key"], line["ordinal"])
        result = ToolResult(**line["result"])
        self._of_rollout.setdefault((line["row"], line["attempt"]), {})[key] = result
        if key in self._of_any and self._of_any[key] != result:
            self._of_any[key] = None  # it depends on the rollout
        else:
            self._of_any[key] = result

    def _miss(self, key: _Key, arguments: Mapping[str, Any], caller: Caller, known: bool) -> str:
        tool, _, ordinal = key
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        shown = text if len(text) <= 200 else f"{text[:200]}…"
        which = "" if ordinal == 0 else f", call {ordinal + 1} of that kind,"
        where = "of this rollout " if known else f"of row {caller.rollout_id} or of any other, all alike, "
        return (
            f"`{tool}` with {shown}{which} {where}is not on the cassette {self._path}: the agent took another way than "
            "when it was recorded. Record anew with `--tools record`, or play with `--tools live`"
        )


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if text.endswith("\n"):  # a killed run may have left half a line
                    yield _line(text, f"{path}:{number}")
    except OSError as error:
        words = f"the cassette {path} cannot be read: {(error.strerror or str(error)).lower()}"
        raise ConfigFailure(f"{words}. Record one with `--tools record`", kind="cassette") from error


def _line(text: str, where: str) -> Mapping[str, Any]:
    try:
        line = json.loads(text)
        if line["schema"] == SCHEMA and (line.keys() == {"schema", "offered"} or line.keys() >= _CALL):
            return dict(line)
    except (ValueError, KeyError, TypeError):
        pass  # said below
    raise ConfigFailure(f"{where} is no line of a tool cassette (`{SCHEMA}`)", kind="cassette")
