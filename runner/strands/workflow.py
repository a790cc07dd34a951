"""Workflows that play an agent of Strands: the file's own, and one that a user's factory makes.

The model is the rollout's, whatever the agent was made with; tools of the file are run by the engine, and tools that
the agent brings are counted and recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import ConversationManager
from strands.types.exceptions import MaxTokensReachedException

from runner.records.message import Message, text_of
from runner.strands.agent import conversation_of
from runner.strands.model import EngineModel
from runner.strands.tools import Strangers, strands_tools
from runner.strands.watched import Watched
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput

_STOPS = {
    "max_tokens": "max_tokens",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}


class StrandsWorkflow(AgentWorkflow[Any]):
    """The declarative agent: the file's prompt, tools, sampling and limits.

    `conversation_manager` makes the manager of one rollout's conversation; `hooks` are classes of `HookProvider`, made
    anew for each rollout, or callbacks. Stop reasons: final_answer, empty_answer, max_tokens, content_filter, and what
    Strands calls any other.
    """

    def __init__(
        self, conversation_manager: Callable[[], ConversationManager] | None = None, hooks: Sequence[Any] = ()
    ) -> None:
        super().__init__(None)
        self._conversation_manager = conversation_manager
        self._hooks = tuple(hooks)

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        model = EngineModel(ctx.driver)
        system, messages = _lifted(ctx.prompt)
        agent = Agent(
            model=model,
            system_prompt=system,
            messages=_blocks(model, messages),
            tools=list(strands_tools(ctx)),
            conversation_manager=self._conversation_manager and self._conversation_manager(),
            hooks=[each() if isinstance(each, type) else each for each in self._hooks],
            callback_handler=None,
            retry_strategy=None,
        )
        agent.hooks.add_hook(Strangers(ctx.driver))
        agent.hooks.add_hook(Watched(ctx.driver, model.conversation))
        return await _played(agent)


class AgentFactoryWorkflow(AgentWorkflow[Any]):
    """Plays the agent that `make` makes. It is made inside the rollout, and its model becomes the rollout's."""

    def __init__(self, make: Callable[[], Agent]) -> None:
        super().__init__(None)
        self._make = make

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        agent = self._make()
        model = _with_engine_model(agent, ctx)
        system, messages = _lifted(ctx.prompt) if not agent.system_prompt else (None, ctx.prompt)
        if system is not None:
            agent.system_prompt = system
        agent.messages.extend(_blocks(model, messages))
        known = agent.tool_registry.registry
        agent.tool_registry.process_tools([each for each in strands_tools(ctx) if each.tool_name not in known])
        return await _played(agent)


def _with_engine_model(agent: Agent, ctx: AgentWorkflowContext[Any]) -> EngineModel:
    """The rollout's model in place of the agent's, with the sampling parameters of the agent's own."""
    if isinstance(agent.model, EngineModel):  # an OsmosisStrandsAgent has found it by itself, and is watched
        return agent.model
    config = getattr(agent.model, "config", None)
    params = config.get("params") if isinstance(config, dict) else None
    model = EngineModel(ctx.driver, config={"params": dict(params or {})})
    agent.model = model
    agent.hooks.add_hook(Watched(ctx.driver, model.conversation))
    return model


async def _played(agent: Agent) -> AgentWorkflowOutput:
    try:
        stop = (await agent.invoke_async()).stop_reason
    except MaxTokensReachedException:
        stop = "max_tokens"
    messages = conversation_of(agent)
    if stop == "end_turn":
        reason = "final_answer" if text_of(messages[-1]).strip() else "empty_answer"
    else:
        reason = _STOPS.get(stop, stop)
    return AgentWorkflowOutput(messages=messages, stop_reason=reason)


def _lifted(prompt: Sequence[Message]) -> tuple[str | None, Sequence[Message]]:
    """The system prompt that the messages begin with, and the rest: Strands keeps it apart."""
    if prompt and prompt[0].get("role") == "system" and isinstance(prompt[0].get("content"), str):
        return prompt[0]["content"], prompt[1:]
    return None, prompt


def _blocks(model: EngineModel, messages: Sequence[Message]) -> Any:
    return model.conversation.begin(messages)
