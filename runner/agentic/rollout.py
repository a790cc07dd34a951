"""`AgenticRollout`: an agent, its tools and an LLM function, and prompts to play: one, or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from runner.agentic.agent import BaseAgent, _prepare
from runner.agentic.environment import FOLDER
from runner.agentic.interaction import interactions_of
from runner.agentic.play import failed
from runner.agentic.registry import get_agent_class, list_agents
from runner.agentic.saving import save_trajectory
from runner.agentic.settings import AgenticRolloutConfig
from runner.agentic.staging import staged
from runner.agentic.trajectory import Trajectory

Function = Callable[..., Any]


class AgenticRollout:
    """Plays prompts with the agent that `config` names. `agent` is that agent; `tools` are what it may call.

    `llm_generate_func(messages, max_tokens=…, temperature=…)`, sync or async, gives a text, a message or a completion;
    it gets those keywords that it takes. Without one, the environment says which model answers, when it is needed.
    `tokenizer` is for trainers, and plays no part here. Raises ValueError for what cannot be played.
    """

    __workflow__ = staticmethod(_prepare)

    def __init__(
        self,
        config: AgenticRolloutConfig | Mapping[str, Any] | None = None,
        llm_generate_func: Function | None = None,
        tokenizer: Any = None,
        **agent_settings: Any,
    ) -> None:
        given = AgenticRolloutConfig() if config is None else config
        self.config = AgenticRolloutConfig.from_dict(given) if isinstance(given, Mapping) else given
        self.llm_generate_func = llm_generate_func
        self.tokenizer = tokenizer
        self.agent = _agent(self.config, agent_settings)
        self.interactions = interactions_of(self.config.interactions_config)
        self.agent.set_interactions(self.interactions)
        staged(self.agent, native=True)  # what is wrong with its settings is said now

    @property
    def tools(self) -> Mapping[str, Any]:
        """The tools that were given to it, by name; those of `tools_config` beside them are the agent's as well."""
        return self.agent.tools

    @tools.setter
    def tools(self, tools: Mapping[str, Any] | Sequence[Any]) -> None:
        self.agent.set_tools(tools)

    async def run_trajectory(
        self, prompt: Any, request_id: str = "", llm_generate_func: Function | None = None, **keywords: Any
    ) -> Trajectory:
        """Play one prompt."""
        function = llm_generate_func or self.llm_generate_func
        return await self.agent.run_trajectory(
            prompt=prompt, llm_generate_func=function, request_id=request_id, **keywords
        )

    async def run_batch(self, prompts: Iterable[Any], request_ids: Sequence[str] | None = None) -> list[Trajectory]:
        """Play many, `concurrent_requests` at once; the trajectories are in the order of the prompts.

        One that fails, or cannot even begin, is a failed trajectory, and hurts no other.
        """
        asked = list(prompts)
        names = list(request_ids) if request_ids is not None else _names(len(asked))
        if len(names) != len(asked):
            raise ValueError(f"there are {len(asked)} prompts and {len(names)} request_ids")
        room = asyncio.Semaphore(self.config.concurrent_requests)

        async def play(prompt: Any, name: str) -> Trajectory:
            async with room:
                return await self._alone(prompt, name)

        return list(await asyncio.gather(*map(play, asked, names)))

    async def iter_batches(self, prompts: Iterable[Any]) -> AsyncIterator[list[Trajectory]]:
        """Play as many as there are, and give `batch_size` trajectories at a time, in the order of the prompts.

        `prompts` is read no further ahead than what plays: it may be endless.
        """
        waiting = iter(prompts)
        running: list[asyncio.Task[Trajectory]] = []
        most = max(self.config.concurrent_requests, self.config.batch_size)
        room = asyncio.Semaphore(self.config.concurrent_requests)

        async def play(prompt: Any) -> Trajectory:
            async with room:
                return await self._alone(prompt, _names(1)[0])

        try:
            while True:
                for prompt in islice(waiting, most - len(running)):
                    running.append(asyncio.ensure_future(play(prompt)))
                if not running:
                    return
                batch, running = running[: self.config.batch_size], running[self.config.batch_size :]
                yield list(await asyncio.gather(*batch))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def generate_sequences(self, prompts: Any) -> dict[str, Any]:
        """Play many, and give lists in the order of the prompts: `responses`, `request_ids`, `final_rewards`,
        `is_completed`, `stop_reasons`, and with `include_trajectory_in_output` also `trajectories`.

        `prompts` is a list of them, or a table of columns of equal length, one prompt for each row.
        """
        played = await self.run_batch(_rows(prompts))
        output: dict[str, Any] = {
            "responses": [each.get_final_response() for each in played],
            "request_ids": [each.request_id for each in played],
            "final_rewards": [each.final_reward for each in played],
            "is_completed": [each.is_completed for each in played],
            "stop_reasons": [each.metadata.get("stop_reason") for each in played],
        }
        if self.config.include_trajectory_in_output:
            output["trajectories"] = [each.to_dict() for each in played]
        return output

    def save_trajectories(self, trajectories: Iterable[Trajectory]) -> list[Path]:
        """Write trajectories into the folder, a file for each; their paths."""
        folder = self.config.trajectory_save_path or FOLDER
        return [save_trajectory(each, folder) for each in trajectories]

    async def _alone(self, prompt: Any, name: str) -> Trajectory:
        try:
            return await self.run_trajectory(prompt, name)
        except Exception as error:
            return failed(name, error)


def _agent(config: AgenticRolloutConfig, settings: Mapping[str, Any]) -> BaseAgent:
    kind = get_agent_class(config.agent_type)
    if kind is None:
        raise ValueError(f"there is no agent {config.agent_type!r}; there are: {', '.join(list_agents())}")
    agent = kind(
        max_steps=config.max_steps,
        max_tokens_per_step=config.max_tokens_per_step,
        temperature=config.temperature,
        tools_config=config.tools_config,
        **settings,
    )
    if not isinstance(agent, BaseAgent):
        raise ValueError(f"the agent {config.agent_type!r} is no BaseAgent: a file plays it, and this does not")
    agent.save_trajectories = config.save_trajectories
    agent.trajectory_save_path = config.trajectory_save_path
    return agent


def _names(count: int) -> list[str]:
    """Names that no other batch has."""
    batch = uuid4().hex[:8]
    return [f"agentic_rollout_{batch}_{place}" for place in range(count)]


def _rows(prompts: Any) -> list[Any]:
    if not isinstance(prompts, Mapping):
        return list(prompts)
    columns = {str(key): list(values) for key, values in prompts.items()}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"the columns of the prompts are of different lengths: {sorted(lengths)}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def create_agentic_rollout(
    config: AgenticRolloutConfig | Mapping[str, Any],
    llm_generate_func: Function | None = None,
    tokenizer: Any = None,
    **agent_settings: Any,
) -> AgenticRollout:
    """A rollout of a dictionary. Raises ValueError for a key that is none, or a value that cannot be."""
    return AgenticRollout(config, llm_generate_func, tokenizer, **agent_settings)
