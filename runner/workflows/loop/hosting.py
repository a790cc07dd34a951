"""`PreparedLoop`: an agent loop of the first generation as a workflow of the engine.

One loop plays all rollouts, as it did there; each rollout gets a `LoopWorkflow` that hands it its request and context,
and reads what it returned.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.failure import WorkflowError
from runner.records.message import Message, tool_calls_of
from runner.workflows.loop.context import RolloutContext
from runner.workflows.loop.hosted_model import HostedModel, completion_params
from runner.workflows.loop.request import LOCAL_SERVER, MAX_TOKENS_TOTAL, MAX_TURNS, RolloutRequest
from runner.workflows.loop.tool_schemas import spec_of
from runner.workflows.loop.validation import ValidationError, validate_agent_loop
from runner.workflows.terms import Terms
from runner.workflows.typed import WorkflowMisfit
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput

_STOP_REASONS = {"stop": "final_answer", "length": "max_tokens", "max_tokens": "max_total_tokens"}
"""The engine's words for finish reasons; others are kept. A loop says `max_tokens` of the whole rollout's tokens."""


@dataclass(frozen=True)
class PreparedLoop:
    """Calling it gives the workflow of one rollout. `offered` are the tools of a request without content.

    `doubts` are what is odd about the loop and does not stop it.
    """

    loop: Any
    offered: tuple[ToolSpec, ...] = ()
    doubts: tuple[ValidationError, ...] = ()

    def __call__(self) -> LoopWorkflow:
        return LoopWorkflow(self.loop)

    def offered_with(self, file_tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """`offered`, for a request that also brings the tools of a file."""
        asked = _nothing().model_copy(update={"file_tools": [spec.wire() for spec in file_tools]})
        try:
            return self.tools_for(asked)
        except Exception:  # tools that depend on a request's content: what is wrong with them is one of the doubts
            return self.offered

    def tools_for(self, request: RolloutRequest) -> tuple[ToolSpec, ...]:
        """The tools of one rollout, before it starts. Raises whatever the loop raises, and `WorkflowError`."""
        return _specs(_tools(self.loop, request))


def prepare_loop(target: Any, config: Mapping[str, Any]) -> PreparedLoop:
    """The agent loop that `target` names: an instance, or a class, which takes `config` as keyword arguments.

    Raises `WorkflowMisfit` with all that is wrong with it.
    """
    loop = _made(target, config) if inspect.isclass(target) else target
    if loop is target and config:
        raise WorkflowMisfit(f"`{_name(target)}` is made already, so `config` cannot reach it; name its class")
    _check_calls(loop)
    found = validate_agent_loop(loop)
    # Tools that depend on the request's metadata cannot be listed without them: that is for the rollout to say.
    fatal = [error for error in found.errors if error.code != "GET_TOOLS_EXCEPTION"]
    if fatal:
        raise WorkflowMisfit("; ".join(error.message for error in fatal))
    doubts = (*found.errors, *found.warnings)
    return PreparedLoop(loop, () if found.errors else _specs(_tools(loop, _nothing())), tuple(doubts))


def _check_calls(loop: Any) -> None:
    """Raises `WorkflowMisfit` for a method that does not take what it is called with."""
    for name, takes in (("get_tools", "(self, request)"), ("run", "(self, ctx)")):
        method = getattr(loop, name, None)
        if not callable(method):
            continue
        try:
            inspect.signature(method).bind(None)
        except TypeError:
            found = inspect.signature(method)
            raise WorkflowMisfit(f"`{_name(loop)}.{name}` takes {found}; it is called with {takes}") from None
        except ValueError:  # no signature that could be read: it is simply called
            continue


def _name(target: Any) -> str:
    return str(getattr(target, "__name__", type(target).__name__))


def _made(target: Any, config: Mapping[str, Any]) -> Any:
    name = _name(target)
    if inspect.isabstract(target):
        missing = ", ".join(f"`{each}`" for each in sorted(target.__abstractmethods__))
        raise WorkflowMisfit(f"`{name}` is abstract: it does not define {missing}; define it")
    try:
        inspect.signature(target).bind(**config)
    except TypeError as error:
        raise WorkflowMisfit(f"`{name}` cannot be made of `config`: {error}; its keys are keyword arguments") from None
    except ValueError:  # a class without a readable signature is simply tried
        pass
    try:
        return target(**deepcopy(dict(config)))
    except Exception as error:
        raise WorkflowMisfit(f"`{name}` cannot be made: {type(error).__name__}: {error}") from error


def _nothing() -> RolloutRequest:
    return RolloutRequest(rollout_id="default", server_url=LOCAL_SERVER, messages=[], completion_params={})


def hosted_request(
    rollout_id: str,
    prompt: Sequence[Message],
    row: Mapping[str, Any],
    terms: Terms,
    file_tools: Sequence[ToolSpec] = (),
) -> RolloutRequest:
    """A rollout of the engine as an agent loop sees it. The label is `metadata.ground_truth` where the row has none."""
    metadata = deepcopy(dict(row))
    if terms.label is not None:
        metadata.setdefault("ground_truth", terms.label)
    limits = terms.limits
    # Not validated: what a controller or a row brought was checked where it came in.
    return RolloutRequest.model_construct(
        rollout_id=rollout_id,
        server_url=LOCAL_SERVER,
        messages=deepcopy(list(prompt)),
        completion_params=completion_params(terms.sampling),
        max_turns=MAX_TURNS if limits.turns is None else limits.turns,
        max_tokens_total=MAX_TOKENS_TOTAL if limits.total_tokens is None else limits.total_tokens,
        metadata=metadata,
        file_tools=[spec.wire() for spec in file_tools],
    )


class LoopWorkflow(AgentWorkflow[Any]):
    """One rollout of an agent loop."""

    sees_label = True

    def __init__(self, loop: Any) -> None:
        super().__init__(None)
        self._loop = loop

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        request = hosted_request(ctx.rollout_id, ctx.prompt, ctx.row, ctx.terms, ctx.tools)
        tools = _tools(self._loop, request)
        model = HostedModel(ctx, _specs(tools), ctx.terms.sampling)

        async def call_tools(calls: Sequence[Any]) -> list[Message]:
            return list(await ctx.call_tools(tool_calls_of({"tool_calls": list(calls)})))

        def log(name: str, data: Mapping[str, Any]) -> None:
            ctx.log_event(name, **data)

        context = RolloutContext(request, tools, model, log=log, play_tools=call_tools)
        return output_of(await self._loop.run(context), _name(self._loop))


def _tools(loop: Any, request: RolloutRequest) -> list[Any]:
    tools = loop.get_tools(request)
    if not isinstance(tools, list | tuple):
        found = type(tools).__name__ if tools is not None else "None"
        raise _wrong(f"`get_tools` of `{_name(loop)}` returned {found}: return a list, `[]` for no tools")
    return list(tools)


def _specs(tools: Sequence[Any]) -> tuple[ToolSpec, ...]:
    try:
        return tuple(spec_of(tool) for tool in tools)
    except (TypeError, ValueError) as error:
        raise _wrong(f"`get_tools` gave a tool that is none: {error}") from error


def output_of(result: Any, name: str) -> AgentWorkflowOutput:
    """What `run` returned, in the engine's words. Raises `WorkflowError` for what is no result."""
    status = getattr(result, "status", None)
    if str(status) not in ("COMPLETED", "ERROR"):
        found = "None" if result is None else type(result).__name__
        known = f"a result with the status {status!r}" if hasattr(result, "status") else found
        raise _wrong(f"`run` of `{name}` returned {known}: end it with `return ctx.complete(messages)`, or `ctx.error`")
    messages = getattr(result, "final_messages", None)
    if not isinstance(messages, list | tuple):
        raise _wrong(f"the final messages of `{name}` are a {type(messages).__name__}: give `ctx.complete` a list")
    finish = getattr(result, "finish_reason", None) or "stop"
    if not isinstance(finish, str):
        raise _wrong(f"the finish reason of `{name}` is {finish!r:.60}: give a word, such as 'stop'")
    failed = str(status) == "ERROR"
    return AgentWorkflowOutput.model_construct(
        messages=list(messages) if messages or not failed else None,
        metrics=_metrics(getattr(result, "metrics", None)),
        info={"finish_reason": finish},
        stop_reason=_STOP_REASONS.get(finish, finish),
        reward=None if failed else _reward(getattr(result, "reward", None), name),
        error=str(getattr(result, "error_message", None) or "the agent loop gave no reason") if failed else None,
    )


def _reward(reward: Any, name: str) -> float | None:
    if reward is None:
        return None
    try:
        value = float(reward)  # what the first generation's wire took for a number: 1, True, "1.0"
    except (TypeError, ValueError, OverflowError):
        raise _wrong(f"the reward of `{name}` is {reward!r:.60}: give a float, or None", "bad_reward") from None
    if not math.isfinite(value):
        raise _wrong(f"the reward of `{name}` is {value}: it must be a finite number", "bad_reward")
    return value


def _metrics(metrics: Any) -> dict[str, float]:
    """What only the loop knows: the engine has counted everything else itself."""
    if metrics is None:
        return {}
    kept = {"num_tool_calls": metrics.num_tool_calls, "tool_latency_ms": metrics.tool_latency_ms}
    return {name: float(value) for name, value in kept.items() if value}


def _wrong(message: str, kind: str = "bad_return") -> WorkflowError:
    return WorkflowError(message, kind=kind)
