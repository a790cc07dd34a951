"""Interactions: who answers an agent after its final answer, as a user would. What verl called by that name.

An interaction is an object with `generate_response(instance_id, messages, **row)`, which gives whether it is over, a
response, a score and anything else; or a function of the messages, which gives the response, or None when it is over.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.records.message import Message
from runner.workflows.calling import Calling
from runner.workflows.tools import ToolsWorkflow
from runner.workflows.workflow import AgentWorkflowContext, AgentWorkflowOutput

if TYPE_CHECKING:
    from runner.agentic.context import AgentContext

_ENDED = ("final_answer", "finish_tool")


class Response(NamedTuple):
    """What an interaction says: `text` None when it is over. `score` is what the answer was worth."""

    text: str | None
    score: float | None = None


def interactions_of(config: Mapping[str, Any] | Sequence[Any] | None) -> dict[str, Any]:
    """The interactions of `interactions_config`: by name a class's path and its settings (`{"class": …, …}`), an
    object or a function; or verl's list, `[{"name", "class_name", "config"}]`. Raises ValueError and TypeError.
    """
    if not config:
        return {}
    if isinstance(config, Mapping) and isinstance(config.get("interaction"), list | tuple):
        config = config["interaction"]
    if not isinstance(config, Mapping):
        config = {str(dict(each).get("name") or place): each for place, each in enumerate(config)}
    return checked({name: _made(name, each) for name, each in config.items()})


def checked(interactions: Mapping[str, Any]) -> dict[str, Any]:
    """The same. Raises TypeError for what can answer nobody."""
    for name, each in interactions.items():
        if not (callable(getattr(each, "generate_response", None)) or callable(each)):
            found = type(each).__name__
            raise TypeError(
                f"the interaction {name!r} is of type {found}: it needs `generate_response`, or is a function"
            )
    return dict(interactions)


def _made(name: str, section: Any) -> Any:
    if not isinstance(section, Mapping):
        return section
    from runner.agentic.staging import named

    path = section.get("class") or section.get("class_name")
    if not path:
        raise ValueError(f"interactions_config[{name!r}] needs `class`, as `module:Class`")
    rest = {key: value for key, value in section.items() if key not in ("class", "class_name", "name")}
    try:
        return named(str(path))(**rest)
    except TypeError as error:
        raise ValueError(f"the interaction {path} cannot be made of its settings: {error}") from error


class TalkingWorkflow(ToolsWorkflow):
    """The tool loop, whose final answers somebody answers until they are content."""

    def __init__(self, stop_when: Sequence[str], calling: Calling, interactions: Mapping[str, Any]) -> None:
        super().__init__(stop_when, calling)
        self._interactions = interactions

    async def _play(self, ctx: AgentWorkflowContext[Any], messages: list[Message]) -> AgentWorkflowOutput:
        output = await super()._play(ctx, messages)
        if not self._interactions:
            return output
        row = ctx.row
        other = _chosen(self._interactions, row.get("interaction"))
        try:
            await _told(other, "start_interaction", ctx.rollout_id, row)
            while output.stop_reason in _ENDED:
                said = output.messages or []
                response = await _response(other, ctx.rollout_id, said, row)
                if response.score is not None:
                    _rewarded(ctx, response.score)
                if response.text is None:
                    break
                output = await super()._play(ctx, [*said, {"role": "user", "content": response.text}])
        finally:
            await _told(other, "finalize_interaction", ctx.rollout_id, {})
        return output


def _rewarded(ctx: Any, score: float) -> None:
    ours: AgentContext = ctx
    ours.rewarded(score)


def _chosen(interactions: Mapping[str, Any], name: Any) -> Any:
    """By the prompt's `interaction`, or the only one. Raises ValueError."""
    if isinstance(name, str) and name in interactions:
        return interactions[name]
    if len(interactions) == 1 and name is None:
        return next(iter(interactions.values()))
    known = ", ".join(interactions)
    raise ValueError(f"the prompt's `interaction` is {name!r}, and there are: {known}")


async def _told(other: Any, method: str, instance: str, row: Mapping[str, Any]) -> None:
    call = getattr(other, method, None)
    if callable(call):
        await _settled(call, instance, **{str(key): value for key, value in row.items()})


async def _response(other: Any, instance: str, messages: Sequence[Message], row: Mapping[str, Any]) -> Response:
    generate = getattr(other, "generate_response", None)
    copies = [dict(message) for message in messages]
    if not callable(generate):
        said = await _settled(other, copies)
        return Response(None if said is None else str(said))
    over, text, score, *_ = await _settled(generate, instance, copies, **row)
    return Response(None if over else str(text), None if score is None else float(score))


async def _settled(call: Callable[..., Any], *arguments: Any, **words: Any) -> Any:
    given = call(*arguments, **words)
    return await given if inspect.isawaitable(given) else given
