"""`CallableTool`: a Python function as a tool.

A function's exception is an answer to the model, not the end of the rollout. Synchronous functions run in threads of
their own. A thread cannot be stopped: when a call times out or its rollout is cancelled, the thread is abandoned, runs
on unheard, and keeps its slot of the shared limit until it returns, so that hanging calls are bounded in number. The
processes that it has started are killed (`processes.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from runner.records.completion import ToolSpec
from runner.records.failure import RolloutError
from runner.records.quick import quick
from runner.tools.fault import faulted
from runner.tools.injection import Injector
from runner.tools.output import DEFAULT_MAX_OUTPUT, Unsayable, cap, say, sendable
from runner.tools.processes import Processes
from runner.tools.signature import Misconverted, converters
from runner.tools.slots import Slots
from runner.tools.threads import Threads
from runner.tools.tool import ToolResult, ToolScope

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

DEFAULT_THREADS = 32
"""How many calls of one synchronous tool run at once when the file sets no `concurrency`."""

DEFAULT_PATIENCE = 30.0
"""Seconds to wait for a slot of a tool without a `timeout` whose slots are all held by abandoned calls."""

_GRACE = 0.5
"""Seconds that a cancelled asynchronous tool gets to clean up before it counts as abandoned."""

_MOST_ITEMS = 10_000
"""How many items of a generator are read: an endless one must end somewhere."""

_LATE = 0.1
_LONGEST_WAIT = 2.0


@quick
class Retry:
    """Call again after an exception whose class, or a base of it, `on` names: `"TimeoutError"`, `"httpx.ReadError"`.

    `attempts` counts all tries, the first included. The tool's own timeout counts as `TimeoutError`. The wait before a
    new try is `backoff` seconds, doubled each time, at most 2.
    """

    attempts: int = 1
    on: Sequence[str] = ()
    backoff: float = 0.1

    def wants(self, error: BaseException) -> bool:
        kinds = type(error).__mro__
        return any(
            name in (kind.__name__, f"{kind.__module__}.{kind.__qualname__}") for name in self.on for kind in kinds
        )

    def wait(self, tries: int) -> float:
        """Seconds to wait after `tries` tries."""
        return float(min(_LONGEST_WAIT, self.backoff * 2 ** (tries - 1)))


@quick
class _Ended:
    """How one try ended: with a value or with an error."""

    value: Any = None
    error: BaseException | None = None


class _TimedOut(TimeoutError):
    """Our own clock ran out; a `TimeoutError` of the tool itself is the tool's error."""


class CallableTool:
    """Calls `function` with the arguments of the model and those of `inject`.

    `timeout` is in seconds for each try, counted from when it has a slot; `limit` is how many calls run at once over
    all rollouts (default: 32 for a synchronous function, unbounded for an asynchronous one); `max_output` is in
    characters. Arguments are made into what the hints of the function ask for: a date, an enum, a dataclass.

    A `RolloutError` that the function raises passes through and ends the rollout, and so does a KeyboardInterrupt.
    """

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[..., Any],
        *,
        inject: Mapping[str, Injector] | None = None,
        timeout: float | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        max_output: int | None = None,
    ) -> None:
        self._spec = spec
        self._function = function
        self._inject = dict(inject or {})
        self._timeout = timeout
        self._retry = retry or Retry()
        self._max_output = DEFAULT_MAX_OUTPUT if max_output is None else max_output
        self._convert = converters(function, injected=self._inject)
        self._threads = None if runs_on_loop(function) else Threads(spec.name)
        self._limit = limit if limit is not None or self._threads is None else DEFAULT_THREADS
        self._slots = self._new_slots()
        self._loop: AbstractEventLoop | None = None

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """Call the function, again if it fails in a way that `retry` names, and say what it returned."""
        tries = 0
        while True:
            tries += 1
            try:
                taken = deepcopy(arguments) if self._retry.attempts > 1 else arguments
                ended = await self._try(self._keywords(taken, scope))
            except Misconverted as error:
                return ToolResult(sendable(f"Bad arguments: {error}"), "bad_call")
            if ended.error is None or tries >= self._retry.attempts or not self._retry.wants(ended.error):
                return self._result(ended)
            import asyncio

            await asyncio.sleep(self._retry.wait(tries))

    def _keywords(self, arguments: dict[str, Any], scope: ToolScope) -> dict[str, Any]:
        for name, convert in self._convert.items():
            if name in arguments:
                arguments = {**arguments, name: convert(arguments[name])}
        return {**arguments, **{name: take(scope) for name, take in self._inject.items()}}

    def _new_slots(self) -> Slots:
        # A call that has outrun its own time often ends soon after: whoever waits gives it as long again.
        return Slots(self._limit, self._spec.name, DEFAULT_PATIENCE if self._timeout is None else self._timeout)

    async def _try(self, keywords: dict[str, Any]) -> _Ended:
        import asyncio

        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a plan may outlive an event loop; what waits on a slot cannot
            self._loop, self._slots = loop, self._new_slots()
        call = partial(self._function, **keywords)
        await self._slots.take()
        processes = Processes()
        with processes:
            work: Future[_Ended] = (
                loop.create_task(_on_loop(call))
                if self._threads is None
                else self._threads.start(partial(_in_thread, call))
            )
        ended = await self._hear(work, processes)
        if self._threads is None or not _needs_loop(ended.value):
            return ended
        await self._slots.take()
        with processes:
            work = loop.create_task(_on_loop(lambda: ended.value))
        return await self._hear(work, processes)

    async def _hear(self, work: Future[_Ended], processes: Processes) -> _Ended:
        """Wait for a started call; its slot is given back when it has really ended."""
        import asyncio

        loop, slots = asyncio.get_running_loop(), self._slots
        woken: Future[None] = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        def ended(_: Any) -> None:
            slots.give()
            wake()

        work.add_done_callback(ended)
        timer = None if self._timeout is None else loop.call_later(self._timeout, wake)
        try:
            await woken
        except asyncio.CancelledError:
            await self._let_go(work, slots, processes)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if not work.done():
            await self._let_go(work, slots, processes)
            return _Ended(error=_TimedOut())
        if work.cancelled():
            # Nobody outside cancelled it, so the tool did that to itself: an error of the tool like any other.
            return _Ended(error=asyncio.CancelledError("the tool cancelled itself"))
        return work.result()

    async def _let_go(self, work: Future[_Ended], slots: Slots, processes: Processes) -> None:
        import asyncio

        try:
            if isinstance(work, asyncio.Task):
                work.cancel()
                await asyncio.wait({work}, timeout=_GRACE)
        finally:
            processes.end()
            if not work.done():
                slots.abandon()
                work.add_done_callback(lambda _: slots.recover())
                # One that was announced in this very moment exists a moment later.
                asyncio.get_running_loop().call_later(_LATE, processes.end)

    def _result(self, ended: _Ended) -> ToolResult:
        error = ended.error
        if isinstance(error, (RolloutError, KeyboardInterrupt)):
            raise error
        if isinstance(error, _TimedOut):
            return ToolResult(f"`{self._spec.name}` did not answer within {self._timeout:g} s.", "timeout")
        result = ended.value if error is None else faulted(error)
        content, cut = cap(result.content, self._max_output)
        content = sendable(content)
        if content is result.content and not cut:
            return result
        return replace(result, content=content, truncated=result.truncated or cut)


def runs_on_loop(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives something to await, so that it needs no thread."""
    while isinstance(function, partial):
        function = function.func
    plain = inspect.unwrap(function)
    candidates = [plain] if inspect.isroutine(plain) else [plain, type(plain).__call__]
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in candidates)


def _needs_loop(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isasyncgen(value)


def _in_thread(call: Callable[[], Any]) -> _Ended:
    # The text is made here too: 50 MB of JSON on the loop would hold every other rollout.
    try:
        value = call()
        if _needs_loop(value):
            return _Ended(value)
        return _Ended(_answer(_listed(value) if inspect.isgenerator(value) else value))
    except BaseException as error:
        return _Ended(error=error)


async def _on_loop(call: Callable[[], Any]) -> _Ended:
    import asyncio

    try:
        value = call()
        if inspect.isasyncgen(value):
            value = [item async for item in _first(value)]
            value = _joined(value)
        elif inspect.isawaitable(value):
            value = await value
        return _Ended(_answer(value))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # SystemExit too: an `exit()` in a tool must not end a run of thousands.
        return _Ended(error=error)


async def _first(values: Any) -> Any:
    count = 0
    async for item in values:
        count += 1
        if count > _MOST_ITEMS:
            await values.aclose()
            raise _too_many()
        yield item


def _listed(values: Any) -> Any:
    items: list[Any] = []
    for item in values:
        if len(items) == _MOST_ITEMS:
            values.close()
            raise _too_many()
        items.append(item)
    return _joined(items)


def _too_many() -> Unsayable:
    return Unsayable(f"a generator gave more than {_MOST_ITEMS:,} items")


def _joined(items: list[Any]) -> Any:
    return "".join(items) if items and all(isinstance(item, str) for item in items) else items


def _answer(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value if isinstance(value.content, str) else replace(value, content=say(value.content))
    return ToolResult(say(value))
