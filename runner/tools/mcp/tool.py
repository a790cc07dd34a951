"""`McpTool`: one tool of a server. Whatever the server does, the rollout goes on: its faults are answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.records.completion import ToolSpec
from runner.tools.mcp.connection import Connection, ServerLost, ServerRefused
from runner.tools.mcp.result import text_of
from runner.tools.output import cap, sendable
from runner.tools.tool import ToolResult, ToolScope


class McpTool:
    """Calls the server's tool `name`. With `connect`, each rollout has a connection of its own, which ends with it.

    `max_output` is in characters.
    """

    def __init__(
        self,
        spec: ToolSpec,
        name: str,
        connection: Connection,
        *,
        max_output: int,
        connect: Callable[[], Connection] | None = None,
    ) -> None:
        self._spec = spec
        self._name = name
        self._connection = connection
        self._max_output = max_output
        self._connect = connect

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """Call it. Never raises but for cancellation."""
        connection = self._of(scope)
        try:
            result = await connection.call(self._name, arguments)
        except TimeoutError:
            return ToolResult(f"`{self._spec.name}` did not answer within {connection.timeout:g} s.", "timeout")
        except ServerLost as error:
            return ToolResult(f"{_capital(str(error))}. Try again, or do without it.", "error")
        except ServerRefused as error:
            return ToolResult(self._capped(f"`{self._spec.name}` was refused: {error}")[0], "error")
        content, cut = self._capped(text_of(result))
        return ToolResult(content, "error" if result.is_error else "ok", truncated=cut)

    def _of(self, scope: ToolScope) -> Connection:
        if self._connect is None:
            return self._connection
        key = f"mcp {self._connection.name}"
        found = scope.state.get(key)
        if not isinstance(found, Connection):
            found = scope.state[key] = self._connect()
            scope.on_close(found.aclose)
        return found

    def _capped(self, text: str) -> tuple[str, bool]:
        content, cut = cap(text, self._max_output)
        return sendable(content), cut


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
