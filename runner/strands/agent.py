"""`OsmosisStrandsAgent`: the `Agent` of Strands that finds its rollout by itself."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from strands import Agent

from runner.records.rollout_sample import RolloutSample
from runner.strands.model import EngineModel, OsmosisRolloutModel
from runner.strands.watched import Watched
from runner.workflows.ambient import get_rollout_context
from runner.workflows.blocks import in_chat_form, to_blocks


class OsmosisStrandsAgent(Agent):
    """An `Agent` whose `OsmosisRolloutModel` becomes the rollout's model, and whose conversation is its sample.

    The sample is named by `name`, else `agent_id`, else at random. `messages` may be chat messages. With any other
    model this is an `Agent` and nothing more. Raises RuntimeError outside a rollout, ValueError for a second agent
    with the same name.

    The engine has retried before an error arrives here, so Strands does not, unless `retry_strategy` is given.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        given = list(args)
        placeholder = keywords.get("model", given[0] if given else None)
        if not isinstance(placeholder, OsmosisRolloutModel):
            super().__init__(*args, **keywords)
            return
        context = get_rollout_context()
        if context is None:
            raise RuntimeError(
                "no active RolloutContext: make OsmosisStrandsAgent inside a workflow's `run`, or in a "
                "`with RolloutContext(...)` of your own"
            )
        sample_id = keywords.get("name") or keywords.get("agent_id") or uuid4().hex
        model = placeholder.for_sample(sample_id, context)
        context.register_sample_source(sample_id, self)
        if isinstance(model, EngineModel):
            keywords.setdefault("retry_strategy", None)
        _place(given, keywords, 0, "model", model)
        messages = keywords.get("messages", given[1] if len(given) > 1 else None)
        if messages is not None:
            begin = model.conversation.begin if isinstance(model, EngineModel) else to_blocks
            _place(given, keywords, 1, "messages", begin(messages))
        super().__init__(*given, **keywords)
        if isinstance(model, EngineModel) and context.driver is not None:
            self.hooks.add_hook(Watched(context.driver, model.conversation))

    async def get_sample(self, name: str = "main") -> RolloutSample | None:
        """The whole conversation in chat form, the system prompt first; None for an agent that was never asked."""
        if isinstance(self.model, EngineModel) and not self.model.conversation.turns:
            return None
        return RolloutSample(messages=conversation_of(self), id=name)


def conversation_of(agent: Agent) -> list[dict[str, Any]]:
    """The messages of an agent in chat form, to the letter where its model is the engine's; the system prompt first."""
    model = agent.model
    if isinstance(model, EngineModel):
        return model.conversation.wire(agent.messages, agent.system_prompt)
    system = agent.system_prompt
    head = [{"role": "system", "content": system}] if system else []
    return [*head, *in_chat_form(agent.messages)]


def _place(given: list[Any], keywords: dict[str, Any], index: int, name: str, value: Any) -> None:
    if len(given) > index:
        given[index] = value
    else:
        keywords[name] = value
