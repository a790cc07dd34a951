"""Between LLM functions and models: a function as the engine's model, and the engine as a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.agentic.reply import Reply, completion_of
from runner.workflows.loop.tool_schemas import spec_of

if TYPE_CHECKING:
    from runner.models.model import Model
    from runner.workflows.workflow import AgentWorkflowContext

NAME = "llm_generate_func"
SECONDS = 600.0
"""How long one call of a function may take."""


def model_of(function: Callable[..., Any] | None) -> Model:
    """The model that `function` is; without one, the model that the environment names.

    Raises ValueError for what cannot be called with messages, and for an environment that names no model.
    """
    from runner.agentic.clients import LLMClient, create_llm_client
    from runner.models.function import FunctionModel

    if function is None:
        return create_llm_client().model
    if isinstance(function, LLMClient):
        function = function.generate
    name = getattr(function, "__name__", NAME)
    return FunctionModel(function=_with_completions(function), name=name, timeout=SECONDS)


def takes_tools(function: Callable[..., Any] | None) -> bool:
    """Whether the function takes tools: it has a parameter of that name. One with `**kwargs` did not ask for them."""
    if function is None:
        return True  # a client of ours
    try:
        return "tools" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _with_completions(function: Any) -> Callable[..., Any]:
    """The same function; of a `Reply` that it returns, the completion, which has more than the text."""
    if not callable(function):
        raise ValueError(f"{NAME} is of type {type(function).__name__}: give a function of messages")

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004

        @_like(function)
        async def ask(*arguments: Any, **words: Any) -> Any:
            given = await function(*arguments, **words)
            return completion_of(given) or given

        return ask

    @_like(function)
    def ask_in_thread(*arguments: Any, **words: Any) -> Any:
        given = function(*arguments, **words)
        return _awaited(given) if inspect.isawaitable(given) else completion_of(given) or given

    return ask_in_thread


async def _awaited(given: Any) -> Any:
    value = await given
    return completion_of(value) or value


def _like(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: with the signature of `function`."""

    def dress(made: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function, updated=())(made) if hasattr(function, "__name__") else _signed(made, function)

    return dress


def _signed(made: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    made.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return made


class EngineFunction:
    """The model of a rollout as an LLM function: `await f(messages, max_tokens=…, temperature=…)` gives a text.

    Every call is one of the rollout's: counted, limited, recorded. Other keywords are sampling. `tools`, as OpenAI has
    them, are offered for this call. Raises a `ModelError` when there is no answer, and `LimitReached`: let both pass.
    """

    def __init__(self, ctx: AgentWorkflowContext[Any]) -> None:
        self._ctx = ctx

    async def __call__(
        self,
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int | None = None,
        temperature: float | None = None,
        tools: Sequence[Any] | None = None,
        **sampling: Any,
    ) -> Reply:
        said = {"max_tokens": max_tokens, "temperature": temperature}
        said = {key: value for key, value in said.items() if value is not None}
        offered = [spec_of(tool) for tool in tools or ()]
        asked = [dict(message) for message in messages]
        return Reply(await self._ctx.chat(asked, tools=offered, **{**sampling, **said}))
