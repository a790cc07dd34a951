"""`FunctionModel`: a Python function that answers, sync or async: a model that no endpoint serves, or a stand-in.

What it is called with is what it takes: `messages`, and of `tools`, `temperature`, `max_tokens`, `top_p`, `stop`,
`seed`, the keys of `[sampling] extra`, `rollout_id`, `row`, `attempt` and `role` those it has parameters for; a
`**kwargs` takes all that is set.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

from runner.models.attempts import Persistence
from runner.models.limiter import Limiter
from runner.models.price import Price
from runner.models.refusal import Setback, Veil, is_overflow
from runner.models.retry import Clock, Retries, SystemClock, worth_retrying
from runner.models.wire import parse_answer
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ContextOverflow, ModelGarbled, ModelRefused, ModelUnavailable, RolloutError
from runner.records.message import Message

if TYPE_CHECKING:
    from asyncio import Future

_SAMPLING = ("temperature", "max_tokens", "top_p", "seed")
_ABOUT = ("rollout_id", "row", "attempt", "role")


class FunctionMisfit(ValueError):
    """A function that cannot be a model. The message says why."""


@dataclass(kw_only=True, eq=False)
class FunctionModel:
    """Asks `function`, which `name` names. `timeout` is in seconds for each try.

    It may return a text; a dictionary with `content` (an assistant message) or with `choices` (a completion); an object
    with `.choices`, `.content` or `.text`; or a `Completion`. An error that looks like one of the network or has a
    status that passes (`status_code`) is tried again; any other ends the rollout as failed, and is never taken for an
    answer. Raises `FunctionMisfit` for what cannot be called so.
    """

    function: Callable[..., Any]
    name: str
    timeout: float = 120.0
    retries: Retries = field(default_factory=Retries)
    limiter: Limiter | None = None
    price: Price | None = None
    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        self._takes = _taken(self.function, self.name)
        self._veil = Veil(())
        self._persistence = Persistence(self.retries, self.limiter, self.clock, self.rng)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """The function's answer. Raises a `ModelError`."""
        words = self._words(messages, tools, sampling, caller)

        async def once() -> Completion:
            return await self._once(words)

        return await self._persistence(once)

    async def aclose(self) -> None:
        """Nothing is held between calls."""

    def _words(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> dict[str, Any]:
        given: dict[str, Any] = {"messages": [dict(message) for message in messages]}
        if tools:
            given["tools"] = [tool.wire() for tool in tools]
        given |= {key: value for key in _SAMPLING if (value := getattr(sampling, key)) is not None}
        if sampling.stop:
            given["stop"] = list(sampling.stop)
        given |= sampling.extra
        if self._takes is None:
            return given
        about = {key: getattr(caller, key) for key in _ABOUT}
        return {key: value for key, value in {**about, **given}.items() if key in self._takes}

    async def _once(self, words: dict[str, Any]) -> Completion:
        import asyncio

        began = perf_counter()
        try:
            async with asyncio.timeout(self.timeout) as deadline:
                returned = await _called(self.function, words)
        except TimeoutError as error:
            if deadline.expired():
                late = ModelUnavailable(f"`{self.name}` did not answer within {self.timeout:g} s", kind="model_timeout")
                raise Setback(late, retry=True) from error
            raise self._setback(error) from error
        except Exception as error:
            raise self._setback(error) from error
        try:
            return _completion(returned, perf_counter() - began, self.price)
        except ModelGarbled as error:
            raise Setback(ModelGarbled(f"`{self.name}`: {error}"), retry=False) from error

    def _setback(self, error: Exception) -> Setback | RolloutError:
        """What an error of the function comes to; one of ours passes as it is."""
        if isinstance(error, RolloutError):
            return error
        said = self._veil(f"`{self.name}` raised {type(error).__name__}: {error}")
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) else None
        if is_overflow(str(error)):
            return Setback(ContextOverflow(said, status=status), retry=False)
        passing = worth_retrying(status) if status is not None else _of_network(error)
        if passing:
            return Setback(ModelUnavailable(said, status=status), retry=True, throttled=status == 429)
        return Setback(ModelRefused(said, status=status), retry=False)


def _taken(function: Any, name: str) -> frozenset[str] | None:
    """The keywords a function takes; None for one with `**kwargs`. Raises `FunctionMisfit`."""
    if not callable(function):
        raise FunctionMisfit(f"`{name}` is a {type(function).__name__}, not something to call")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    named = {each.name: each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    if "messages" not in named:
        raise FunctionMisfit(f"`{name}` takes no `messages`: the first thing that a model is given")
    known = {"messages", "tools", "stop", *_SAMPLING, *_ABOUT}
    needed = [key for key, each in named.items() if each.default is each.empty and key not in known]
    if needed:
        raise FunctionMisfit(f"`{name}` requires `{needed[0]}`, which no model is given: give it a default")
    return frozenset(named)


async def _called(function: Callable[..., Any], words: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(**words)
    returned = await _in_thread(lambda: function(**words))
    return await returned if inspect.isawaitable(returned) else returned


async def _in_thread(call: Callable[[], Any]) -> Any:
    """The result of a call that may block. Its thread is a daemon: one that never returns keeps nobody from exiting."""
    from asyncio import get_running_loop

    loop, context = get_running_loop(), copy_context()
    heard: Future[Any] = loop.create_future()

    def tell(result: Any, error: BaseException | None) -> None:
        if not heard.done():
            heard.set_result(result) if error is None else heard.set_exception(error)

    def work() -> None:
        result: Any = None
        failed: BaseException | None = None
        try:
            result = context.run(call)
        except StopIteration as error:  # no future takes it
            failed = RuntimeError(f"the function raised StopIteration: {error}")
        except BaseException as error:  # it travels to whoever waits
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result, failed)

    threading.Thread(target=work, name="model function", daemon=True).start()
    return await heard


def _completion(returned: Any, latency: float, price: Price | None) -> Completion:
    """What the function returned, as a completion. Raises `ModelGarbled`."""
    if isinstance(returned, Completion):
        return returned
    if isinstance(returned, str):
        return _of_message({"content": returned}, latency, price)
    if not isinstance(returned, Mapping):
        returned = _plain(returned)
    table = dict(returned)
    if "choices" in table:
        return parse_answer(table, latency=latency, price=price)
    if "content" in table or "tool_calls" in table:
        return _of_message(table, latency, price)
    raise ModelGarbled(f"it returned a table without `content` or `choices`: {', '.join(map(str, table)) or 'empty'}")


def _of_message(message: Mapping[str, Any], latency: float, price: Price | None) -> Completion:
    whole = {"role": "assistant", "content": None, **message}
    usage = whole.pop("usage", None)
    reason = whole.pop("finish_reason", None) or ("tool_calls" if whole.get("tool_calls") else "stop")
    answer = {"choices": [{"message": whole, "finish_reason": reason}], "usage": usage}
    return parse_answer(answer, latency=latency, price=price)


def _plain(returned: Any) -> Mapping[str, Any]:
    """An object of some client's, as a table."""
    dump = getattr(returned, "model_dump", None)
    if hasattr(returned, "choices") and callable(dump):
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else {}
    for name in ("content", "text"):
        value = getattr(returned, name, None)
        if isinstance(value, str):
            return {"content": value}
    raise ModelGarbled(f"it returned {type(returned).__name__}: return a text, a message, or a completion")


def _of_network(error: Exception) -> bool:
    """Whether an error is one of connections and times, by its class or the name of one of its bases."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, ConnectionError | TimeoutError) or bool(
        names & {"APIConnectionError", "TransportError", "ClientConnectionError"}
    )
