"""`RolloutContext`: the rollout that the running code belongs to, found without being handed down.

The second and third generation's agents find their endpoint here and leave their sample here. The engine enters one
around every workflow's `run`; leaving it restores the one before, so contexts nest. What an engine's context says comes
from the engine alone; only one that somebody makes without an engine looks into the environment, as containers want it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Generator, Mapping
from contextvars import ContextVar, Token
from typing import Any, Protocol, runtime_checkable

from runner.records.failure import WorkflowError
from runner.records.message import Message
from runner.records.rollout_sample import MAIN, RolloutSample
from runner.workflows.blocks import in_chat_form
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput, Driver

REHEARSAL = "http://rehearsal.invalid/v1"
"""Where completions come from while a workflow is only made, to see that it can be."""

_current: ContextVar[RolloutContext | None] = ContextVar("rollout_context", default=None)


@runtime_checkable
class SampleSource(Protocol):
    """Something that can say what the sample is once the agent has ended.

    The third generation asks `get_sample()`, the second `get_sample(name)`: a source may take either.
    """

    async def get_sample(self) -> RolloutSample | None: ...


class Samples(dict[str, RolloutSample]):
    """Samples by name. The second generation began with `get_samples()` and went on to `await get_samples()`."""

    def __init__(self, context: RolloutContext) -> None:
        super().__init__({name: _of_agent(name, agent) for name, agent in context.agents.items()})
        self._context = context

    def __await__(self) -> Generator[Any, None, Samples]:
        return self._all().__await__()

    async def _all(self) -> Samples:
        for name in self._context.sources:
            sample = await self._context.sample_of(name)
            if sample is not None:
                self[name] = sample
        return self


class RolloutContext:
    """The ambient context of one rollout: where completions come from, and whose sample counts.

    `chat_completions_url` is the address without `/chat/completions`, `api_key` its bearer; both are empty where the
    model has no address, as a scripted one. `headers` name the rollout to that address, and so do `extra`, fields of
    each body; `stream` is whether it answers in pieces. `driver` is the engine's own way to the model, with its limits
    and records; None without an engine, and then fields that are empty are filled from `OSMOSIS_CHAT_COMPLETIONS_URL`,
    `OSMOSIS_API_KEY` and `OSMOSIS_ROLLOUT_ID`.
    """

    def __init__(
        self,
        chat_completions_url: str = "",
        api_key: str | None = "",
        rollout_id: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        stream: bool | None = None,
        driver: Driver | None = None,
    ) -> None:
        alone = os.environ if driver is None else {}
        self.chat_completions_url = chat_completions_url or alone.get("OSMOSIS_CHAT_COMPLETIONS_URL", "")
        self.api_key = api_key or alone.get("OSMOSIS_API_KEY", "")
        self.rollout_id = rollout_id or alone.get("OSMOSIS_ROLLOUT_ID", "")
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        self.stream = stream
        self.driver = driver
        self.agents: dict[str, Any] = {}
        self.sources: dict[str, Any] = {}
        self._tokens: list[Token[RolloutContext | None]] = []

    def __repr__(self) -> str:
        return f"RolloutContext(rollout_id={self.rollout_id!r}, chat_completions_url={self.chat_completions_url!r})"

    def __enter__(self) -> RolloutContext:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._tokens.pop())

    def register_agent(self, sample_id: str, agent: Any) -> None:
        """Let `agent.messages` be the sample `sample_id`. Raises ValueError when that name is taken."""
        self._free(sample_id)
        self.agents[sample_id] = agent

    def register_sample_source(self, name: str, source: Any) -> None:
        """Let `source.get_sample` say what the sample `name` is. Raises ValueError when that name is taken."""
        self._free(name)
        self.sources[name] = source

    def set_sample_source(self, source: Any) -> None:
        """Let `source` say what the rollout's sample is. Raises ValueError when there is one already."""
        if self.names:
            raise ValueError(f"this rollout has a sample source already: {_listed(self.names)}")
        self.sources[MAIN] = source

    @property
    def names(self) -> tuple[str, ...]:
        """The samples that were registered, by name."""
        return (*self.agents, *self.sources)

    def get_samples(self) -> Samples:
        """The samples of the registered agents; awaited, those of the sources as well."""
        return Samples(self)

    async def get_sample(self) -> RolloutSample | None:
        """The one sample; None when nobody registered one. Raises ValueError when there are several."""
        names = self.names
        if len(names) > 1:
            raise ValueError(f"there are {len(names)} samples, and a rollout has one: {_listed(names)}")
        return await self.sample_of(names[0]) if names else None

    async def sample_of(self, name: str) -> RolloutSample | None:
        """The sample `name` as its agent or source gives it now. Raises KeyError for a name nobody registered."""
        if name in self.agents:
            return _of_agent(name, self.agents[name])
        sample = _ask(self.sources[name], name)
        if inspect.isawaitable(sample):
            sample = await sample
        if sample is None:
            return None
        if not isinstance(getattr(sample, "messages", None), list):
            raise TypeError(f"the source of sample `{name}` gave {type(sample).__name__}, not a RolloutSample or None")
        given: RolloutSample = sample
        return given

    def _free(self, name: str) -> None:
        if name in self.agents or name in self.sources:
            raise ValueError(f"a sample `{name}` is registered already: give each agent a `name` of its own")


def get_rollout_context() -> RolloutContext | None:
    """The context of the rollout that the running code belongs to; None outside one."""
    return _current.get()


async def play(workflow: AgentWorkflow[Any], ctx: AgentWorkflowContext[Any]) -> Any:
    """`workflow.run(ctx)` in the rollout's ambient context; the sample that was registered, when it returns None.

    Raises `WorkflowError` (kind "many_samples") when it registered several and returned none of them.
    """
    context = _context_of(ctx)
    with context:
        output = await workflow.run(ctx)
        if output is not None or not context.names:
            return output
        return await _registered(context)


def _context_of(ctx: AgentWorkflowContext[Any]) -> RolloutContext:
    endpoint = ctx.driver.endpoint
    if endpoint is None:
        return RolloutContext(rollout_id=ctx.rollout_id, driver=ctx.driver)
    base = endpoint.url.removesuffix("/").removesuffix("/chat/completions")
    return RolloutContext(
        base,
        endpoint.key,
        ctx.rollout_id,
        headers=endpoint.headers,
        extra=endpoint.extra,
        stream=endpoint.stream,
        driver=ctx.driver,
    )


async def _registered(context: RolloutContext) -> AgentWorkflowOutput | None:
    given = [(name, await context.sample_of(name)) for name in context.names]
    found = [(name, sample) for name, sample in given if sample is not None]
    if len(found) > 1:
        names = tuple(name for name, _ in found)
        raise WorkflowError(
            f"the workflow registered {len(names)} samples ({_listed(names)}), and a rollout has one: return the "
            "messages of the agent that counts, or register that agent alone",
            kind="many_samples",
        )
    if not found:
        return None
    ((name, sample),) = found
    info = {**sample.extra_fields, "sample_id": name}
    return AgentWorkflowOutput(messages=in_chat_form(_messages(sample)) or None, metrics=sample.metrics, info=info)


def _messages(sample: RolloutSample) -> list[Message]:
    """In chat form where the source gave them so."""
    other = getattr(sample, "trajectory_messages", None)
    return other if isinstance(other, list) else sample.messages


def _of_agent(name: str, agent: Any) -> RolloutSample:
    messages = agent.messages
    prompt = getattr(agent, "system_prompt", None)
    # Strands keeps its system prompt beside the messages, and then nobody who reads them sees it.
    system: list[Message] = [{"role": "system", "content": prompt}] if isinstance(prompt, str) and prompt else []
    return RolloutSample(messages=[*system, *in_chat_form(messages)], id=name)


def _ask(source: Any, name: str) -> Awaitable[RolloutSample | None] | RolloutSample | None:
    get = source.get_sample
    given: Awaitable[RolloutSample | None] | RolloutSample | None = get(name) if _takes_name(get) else get()
    return given


def _takes_name(get: Any) -> bool:
    try:
        inspect.signature(get).bind("")
    except TypeError:
        return False
    return True


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
