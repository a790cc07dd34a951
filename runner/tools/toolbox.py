"""`Toolbox`: the tools of a plan, and how the calls of one turn are run.

Nothing a model writes can raise: a name that is none, arguments that do not fit and a tool that fails are all answers.
The argument validators are compiled here, once for a plan; a toolbox is shared by all rollouts.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from time import perf_counter
from typing import Any, TypeAlias

from runner.records.completion import ToolSpec
from runner.records.failure import ConfigFailure, RolloutError
from runner.records.message import Message, ToolCall
from runner.tools.arguments import Arguments, BadCall
from runner.tools.fault import faulted
from runner.tools.output import sendable
from runner.tools.tool import Tool, ToolResult, ToolScope

Started: TypeAlias = Callable[[ToolCall], None]
Ended: TypeAlias = Callable[[ToolCall, ToolResult, float], None]

_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Answer:
    """One call, answered. `message` is the OpenAI tool message; `call` has the id that was used; `seconds` all told."""

    call: ToolCall
    message: Message
    result: ToolResult
    seconds: float


class Toolbox:
    """`tools` by the name that the model calls them; at most `parallel` calls of one turn run at once.

    Raises what jsonschema raises for parameters that are no JSON Schema; `schema_faults` finds those beforehand.
    """

    def __init__(self, tools: Mapping[str, Tool], parallel: int = 8) -> None:
        self._tools = dict(tools)
        self._arguments = {name: Arguments(tool.spec.parameters) for name, tool in self._tools.items()}
        self._parallel = max(1, parallel)

    def with_tools(self, tools: Mapping[str, Tool]) -> Toolbox:
        """These and more."""
        return Toolbox({**self._tools, **tools}, self._parallel)

    def with_each(self, wrap: Callable[[Tool], Tool]) -> Toolbox:
        """The same tools, with something around each."""
        return Toolbox({name: wrap(tool) for name, tool in self._tools.items()}, self._parallel)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them, under the names they are called by here."""
        return tuple(
            tool.spec if tool.spec.name == name else replace(tool.spec, name=name) for name, tool in self._tools.items()
        )

    async def run(
        self,
        calls: Sequence[ToolCall],
        scope: ToolScope,
        on_start: Started | None = None,
        on_end: Ended | None = None,
        *,
        turn: int = 0,
    ) -> list[Answer]:
        """Run `calls` in parallel; the answers are in the order of `calls`.

        A call without an id, or with that of an earlier call, gets one made of its content and `turn`. Raises
        `RolloutError` when a tool says that the rollout cannot go on, and cancellation: then its siblings are
        cancelled and have ended.
        """
        named = _with_ids(calls, turn)
        if len(named) == 1:
            return [await self._answer(named[0], scope, on_start, on_end)]
        import asyncio

        room = asyncio.Semaphore(self._parallel)

        async def in_turn(call: ToolCall) -> Answer:
            async with room:
                return await self._answer(call, scope, on_start, on_end)

        return await _together([in_turn(call) for call in named])

    async def _answer(self, call: ToolCall, scope: ToolScope, on_start: Started | None, on_end: Ended | None) -> Answer:
        if on_start is not None:
            on_start(call)
        started = perf_counter()
        failure: RolloutError | None = None
        try:
            result = await self._result(call, scope)
        except RolloutError as error:
            failure, result = error, ToolResult(str(error), "error", where=error.where)
        seconds = perf_counter() - started
        if on_end is not None:
            on_end(call, result, seconds)
        if failure is not None:
            raise failure
        return Answer(call, _message(call, result), result, seconds)

    async def _result(self, call: ToolCall, scope: ToolScope) -> ToolResult:
        import asyncio

        if call.fault:
            return ToolResult(sendable(call.fault), "bad_call")
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult(self._stranger(call.name), "bad_call")
        try:
            arguments = self._arguments[call.name].read(call.arguments)
        except BadCall as error:
            return ToolResult(sendable(error.sentence), "bad_call")
        except Exception as error:  # a schema that `schema_faults` would have refused: no fault of the model
            raise ConfigFailure(f"the parameters of `{call.name}` cannot be checked: {error}") from error
        try:
            return await tool.call(arguments, scope)
        except RolloutError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return faulted(error)  # nobody cancelled the rollout: the tool did this to itself
        except Exception as error:  # a tool that breaks its promise not to raise hurts nobody but itself
            return faulted(error)

    def _stranger(self, name: str) -> str:
        names = sorted(self._tools)
        said = f"There is no tool called `{sendable(name[:80])}`" if name else "The call names no tool"
        if not names:
            return f"{said}: no tools are offered. Answer without one."
        near = get_close_matches(name, names, n=1, cutoff=0.6)
        guess = f"; did you mean `{near[0]}`?" if near else "."
        more = ", …" if len(names) > _MOST_NAMES else ""
        listed = ", ".join(f"`{each}`" for each in names[:_MOST_NAMES])
        return f"{said}{guess} Tools: {listed}{more}."


def _message(call: ToolCall, result: ToolResult) -> Message:
    message: Message = {"role": "tool", "tool_call_id": call.id}
    if call.name:
        message["name"] = call.name
    message["content"] = result.content
    return message


def _with_ids(calls: Sequence[ToolCall], turn: int) -> list[ToolCall]:
    """`calls`, each with an id that no other has: endpoints refuse a conversation in which they are not unique."""
    seen: set[str] = set()
    named = []
    for index, call in enumerate(calls):
        if not call.id or call.id in seen:
            from hashlib import sha256

            # The same in every run of the same conversation, so that a recording still matches.
            content = f"{turn}/{index}/{call.name}/{call.arguments}".encode("utf-8", "surrogatepass")
            named.append(replace(call, id=f"call_{sha256(content).hexdigest()[:16]}"))
        else:
            named.append(call)
        seen.add(named[-1].id)
    return named


async def _together(work: Sequence[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """All results in order, or the first error when all the others have ended."""
    import asyncio

    tasks = [asyncio.create_task(each) for each in work]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        errors = [error for task in tasks if task in done and (error := task.exception()) is not None]
        if errors:
            raise errors[0]
        return [task.result() for task in tasks]
    finally:
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)
