"""`OsmosisRolloutModel`, the placeholder of a workflow's code, and `EngineModel`, what it becomes in a rollout.

The engine's model is a `LiteLLMModel` by type and behaves as one, but asks the rollout's driver: limits, records, token
ids and retries are those of any other agent, and no call goes through litellm.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

from strands.tools import convert_pydantic_to_tool_spec

from runner.models.litellm import load as load_litellm
from runner.records.completion import Completion, ToolSpec
from runner.records.failure import RolloutError
from runner.records.message import tool_calls_of
from runner.strands.conversation import Conversation
from runner.strands.errors import as_strands
from runner.strands.events import stream_events
from runner.strands.postponed import litellm_model
from runner.workflows.ambient import RolloutContext
from runner.workflows.turn import cut_short, resendable
from runner.workflows.workflow import Driver

if TYPE_CHECKING:
    from strands.models.litellm import LiteLLMModel
else:
    LiteLLMModel = litellm_model()

MODEL_ID = "openai/osmosis-rollout"
"""What the policy is called to whoever serves it."""

_CONFIG = frozenset({"params", "stream", "cache_config", "context_window_limit"})
_CARRIED = frozenset(
    {"stream", "stream_options", "num_retries", "max_retries", "timeout", "request_timeout", "drop_params", "api_key",
     "api_base", "base_url", "headers", "extra_headers", "custom_llm_provider"}
)  # fmt: skip
"""How litellm carries a call; here the file says that, and a served rollout's controller."""


class OsmosisRolloutModel(LiteLLMModel):
    """Stands for the policy until an agent is made of it inside a rollout; it cannot be called itself.

    `params` are sampling parameters of each call (`temperature`, `max_tokens`, `stop`, …) and go over `[sampling]`;
    they may also be given as keywords. `through_litellm=True` takes litellm's own way to the endpoint: slower, and
    without the engine's limits and records. Raises TypeError for a `model_id`: whoever runs the rollout chooses it.
    """

    def __init__(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        client_args: dict[str, Any] | None = None,
        through_litellm: bool = False,
        **more: Any,
    ) -> None:
        if "model_id" in more:
            raise TypeError("OsmosisRolloutModel takes no `model_id`: whoever runs the rollout decides what answers")
        sampled = {name: value for name, value in more.items() if name not in _CONFIG}
        config: Any = {name: value for name, value in more.items() if name in _CONFIG}
        config.update(model_id=MODEL_ID, params={**(params or {}), **sampled})
        super().__init__(client_args, **config)
        self._through_litellm = through_litellm

    def for_sample(self, sample_id: str, rollout_ctx: RolloutContext) -> LiteLLMModel:
        """The model of one sample in one rollout.

        Raises RuntimeError where litellm would have to be asked and the rollout's model has no address.
        """
        driver = rollout_ctx.driver
        client = {**self.client_args, **_client(sample_id, rollout_ctx)}
        if driver is not None and not self._through_litellm:
            return EngineModel(driver, client, self.config, sample_id)
        if not rollout_ctx.chat_completions_url:
            raise RuntimeError(
                "the model of this rollout has no address that litellm could ask: leave `through_litellm` out, or give "
                "the RolloutContext a `chat_completions_url`"
            )
        config: Any = dict(self.config)
        if rollout_ctx.extra:  # by these fields a controller of the first generation knows whose call it is
            params = config.get("params") or {}
            config["params"] = {**params, "extra_body": {**params.get("extra_body", {}), **rollout_ctx.extra}}
        if rollout_ctx.stream is not None:
            config.setdefault("stream", rollout_ctx.stream)
        return ThreadedLiteLLMModel(client, driver, **config)

    def _uncalled(self) -> NoReturn:
        raise NotImplementedError(
            "OsmosisRolloutModel only stands for the model of a rollout: give it to OsmosisStrandsAgent inside a "
            "workflow's `run`, or call its `for_sample`"
        )

    def stream(self, *_: Any, **__: Any) -> NoReturn:
        self._uncalled()

    def structured_output(self, *_: Any, **__: Any) -> NoReturn:
        self._uncalled()

    def update_config(self, **_: Any) -> NoReturn:
        self._uncalled()

    def get_config(self) -> NoReturn:
        self._uncalled()

    def format_request(self, *_: Any, **__: Any) -> NoReturn:
        self._uncalled()

    def format_chunk(self, *_: Any, **__: Any) -> NoReturn:
        self._uncalled()

    async def count_tokens(self, *_: Any, **__: Any) -> NoReturn:
        self._uncalled()


def _client(sample_id: str, context: RolloutContext) -> dict[str, Any]:
    """What litellm would be called with: the address, its key, and the headers that name the sample."""
    named = {"x-rollout-id": context.rollout_id, "x-sample-id": sample_id}
    # litellm refuses to ask without a key; "EMPTY" is what servers that want none are used to.
    client: dict[str, Any] = {"api_base": context.chat_completions_url, "api_key": context.api_key or "EMPTY"}
    # The engine's own headers win: a controller knows the sample by one name only.
    return {**client, "extra_headers": {**named, **context.headers}}


class ThreadedLiteLLMModel(LiteLLMModel):
    """litellm's own way, but the seconds that its import takes do not hold up everybody else's rollouts.

    `driver` hears that there was a call, and nothing more of it.
    """

    def __init__(self, client_args: dict[str, Any] | None, driver: Driver | None, **config: Any) -> None:
        super().__init__(client_args, **config)
        self._driver = driver

    def _noted(self, began: float) -> None:
        if self._driver is not None:
            self._driver.bypassed(perf_counter() - began)

    async def stream(self, *arguments: Any, **keywords: Any) -> AsyncGenerator[Any, None]:
        """As `LiteLLMModel.stream`."""
        await asyncio.to_thread(load_litellm)
        began = perf_counter()
        try:
            async for event in super().stream(*arguments, **keywords):
                yield event
        finally:
            self._noted(began)

    async def structured_output(self, *arguments: Any, **keywords: Any) -> AsyncGenerator[dict[str, Any], None]:
        """As `LiteLLMModel.structured_output`."""
        await asyncio.to_thread(load_litellm)
        began = perf_counter()
        try:
            async for event in super().structured_output(*arguments, **keywords):
                yield event
        finally:
            self._noted(began)


class EngineModel(LiteLLMModel):
    """The policy of one rollout for one agent of Strands; asks `driver`, and remembers what went over the wire."""

    def __init__(
        self,
        driver: Driver,
        client_args: dict[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        sample_id: str = "",
    ) -> None:
        super().__init__(client_args, **{"model_id": MODEL_ID, **(config or {})})
        self.conversation = Conversation()
        self.broken: Exception | None = None
        """A tool's failure after which the rollout cannot go on: the next call raises it."""
        self._driver = driver
        self._sample_id = sample_id

    async def stream(
        self,
        messages: Any,
        tool_specs: Any = None,
        system_prompt: str | None = None,
        *,
        tool_choice: Any = None,
        system_prompt_content: Any = None,
        **_: Any,
    ) -> AsyncGenerator[Any, None]:
        """The events of one answer. Raises what Strands reacts to, and the engine's errors as they are."""
        system = system_prompt_content or system_prompt
        completion = await self._ask(messages, [_spec(each) for each in tool_specs or ()], system, tool_choice)
        blocks = self.conversation.answered(resendable(completion), completion.reasoning)
        for event in stream_events(completion, blocks):
            yield event

    async def structured_output(
        self, output_model: Any, prompt: Any, system_prompt: str | None = None, **_: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """One `{"output": …}`. Raises ValueError when the answer is no `output_model`."""
        tool = _spec(convert_pydantic_to_tool_spec(output_model))
        completion = await self._ask(prompt, [tool], system_prompt, {"any": {}})
        calls = tool_calls_of(completion.message)
        if not calls:
            raise ValueError("No tool_calls found in response")
        try:
            yield {"output": output_model(**json.loads(calls[0].arguments))}
        except (TypeError, ValueError) as error:
            raise ValueError(f"Failed to parse or load content into model: {error}") from error

    async def _ask(self, messages: Any, tools: Sequence[ToolSpec], system: Any, choice: Any) -> Completion:
        if self.broken is not None:
            raise self.broken
        try:
            completion = await self._driver.chat(
                self.conversation.wire(messages, system), tools, self._sampling(choice), self._sample_id
            )
        except RolloutError as error:
            known = as_strands(error)
            if known is error:
                raise
            raise known from error
        if cut_short(completion) == "max_tokens":
            # Strands raises an error of its own for this, which says nothing to the engine.
            self._driver.reached("max_tokens", "the answer was cut off at `max_tokens`")
        return completion

    def _sampling(self, choice: Any) -> dict[str, Any]:
        given: Any = self.config.get("params") or {}
        params = {name: value for name, value in given.items() if name not in _CARRIED}
        body = params.pop("extra_body", None) or {}
        return {**params, **body, **self._format_request_tool_choice(choice)}


def _spec(tool: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(tool["name"], tool.get("description") or "", tool["inputSchema"]["json"])
