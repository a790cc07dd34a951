"""`AgentWorkflow`: the code that drives the policy through one rollout, and the context it is handed.

The names and shapes follow the SDK's second and third generation; `chat` and `call_tools` are what our own agents,
and anyone who writes Python for the runner, build on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from runner.records.artifacts import artifacts_folder
from runner.records.completion import Completion, ToolSpec
from runner.records.message import Message, ToolCall
from runner.records.metadata import metadata_of
from runner.workflows.answers import ToolAnswers
from runner.workflows.configs import AgentWorkflowConfig
from runner.workflows.terms import Terms

if TYPE_CHECKING:
    from runner.sandboxes.handle import SandboxHandle

_NONE: Mapping[str, Any] = MappingProxyType({})


__all__ = [
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "Driver",
    "Endpoint",
    "ToolStatus",
]

C = TypeVar("C")

ToolStatus: TypeAlias = Literal["ok", "error", "bad_call", "timeout"]

Tell: TypeAlias = Callable[[ToolAnswers], Sequence[Message]]
"""What the conversation gets in place of tool messages, where the model knows none."""


class Endpoint(NamedTuple):
    """Where the completions of a rollout come from: the complete address, its bearer, and the headers it wants.

    `extra` are fields that each body must have; `stream` says whether answers come in pieces, None that both are fine.
    """

    url: str
    key: str | None
    headers: Mapping[str, str]
    extra: Mapping[str, Any] = _NONE
    stream: bool | None = None


class Driver(Protocol):
    """What the engine does for a workflow: every call is budgeted, recorded and attributed."""

    @property
    def tools(self) -> Sequence[ToolSpec]: ...

    @property
    def endpoint(self) -> Endpoint | None:
        """The address of the policy, for code that must ask it by itself; None where it has none."""
        ...

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] | None,
        sampling: Mapping[str, Any],
        sample_id: str = "",
    ) -> Completion:
        """One completion. `sample_id` names the rollout's sample; the first call of a rollout decides, for all."""
        ...

    async def call_tools(self, calls: Sequence[ToolCall], tell: Tell | None = None) -> ToolAnswers: ...

    def misread(self) -> None:
        """Count an answer that could not be read, as a bad call is counted. Raises `LimitReached` after too many."""
        ...

    def log_event(self, name: str, data: Mapping[str, Any]) -> None: ...

    def bypassed(self, seconds: float) -> None:
        """Note a call that code made to `endpoint` by itself: nothing counts it, but whoever serves it has seen it."""
        ...

    def reached(self, kind: str, message: str) -> None:
        """Note a limit that the policy ran into and that the workflow may still mend by asking again."""
        ...

    @property
    def tool_time(self) -> float | None:
        """`[limits] tool_time`: seconds that a tool which an agent framework runs by itself may take."""
        ...

    def tool_began(self, call: ToolCall) -> None:
        """Count and record a call of a tool that an agent framework runs by itself. Raises `LimitReached`."""
        ...

    def tool_ended(self, call: ToolCall, status: ToolStatus, content: str, seconds: float) -> None:
        """Record how that call went. Raises `LimitReached` when there were too many bad calls."""
        ...


class AgentWorkflowContext(Generic[C]):
    """What `AgentWorkflow.run` is handed: the prompt, the config, and the way to the model and the tools.

    `prompt` is this rollout's own copy of its first messages; `config` its own copy of the typed config or None;
    `metadata` its own copy of the dataset row, or of the object in the row's column `metadata`, nothing removed. The
    label is not here: an agent must not see it. `sandboxes` are the rollout's, by name: the same that its tools use,
    each started when it is first asked for.
    """

    def __init__(
        self,
        *,
        prompt: list[Message],
        config: C | None,
        metadata: Mapping[str, Any],
        rollout_id: str,
        attempt: int,
        driver: Driver,
        resources: Mapping[str, Any],
        terms: Terms | None = None,
        sandboxes: Mapping[str, SandboxHandle] = _NONE,
    ) -> None:
        self.prompt = prompt
        self.config = config
        self._row = metadata
        self._metadata: dict[str, Any] | None = None
        self.rollout_id = rollout_id
        self.attempt = attempt
        self.resources = resources
        self.sandboxes = sandboxes
        self.terms = terms or Terms()
        self._driver = driver

    @property
    def metadata(self) -> dict[str, Any]:
        """The object in the row's column `metadata`, or without one the row. A copy, made when first asked for."""
        if self._metadata is None:
            self._metadata = deepcopy(dict(metadata_of(self._row)))
        return self._metadata

    @property
    def row(self) -> dict[str, Any]:
        """The whole dataset row: a copy, because attempts share it."""
        return deepcopy(dict(self._row))

    @property
    def artifacts_dir(self) -> Path | None:
        """A folder for files worth keeping with this rollout, made now; None where none are kept, as in `eval`."""
        return artifacts_folder()

    @property
    def driver(self) -> Driver:
        """The engine behind `chat` and `call_tools`: what adapters of agent frameworks build on."""
        return self._driver

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools of the file that this workflow may use."""
        return self._driver.tools

    async def chat(
        self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] | None = None, **sampling: Any
    ) -> Completion:
        """Ask the policy. `tools=None` offers the tools of the file, `tools=[]` none; keywords override `[sampling]`.

        Raises `LimitReached` when a limit of `[limits]` fired (let it pass: it ends the rollout with that stop
        reason), and `ModelError` when the model could not answer: ask again or let it pass. A workflow that swallows it
        and returns without a later answer ends as failed, since nobody answered.
        """
        return await self._driver.chat(messages, tools, sampling)

    async def call_tools(self, calls: Sequence[ToolCall], *, tell: Tell | None = None) -> ToolAnswers:
        """Run tool calls in parallel; returns the list of their tool messages in the order of `calls`.

        `tell` makes of them the messages that you will put into the conversation instead, for the record.
        A bad call or a failing tool is an answer to the model, not an exception: `statuses` of what is returned says
        how each call went. Raises `LimitReached`, and `ToolError` when the rollout cannot go on: a workflow that
        swallows that one still ends as failed.
        """
        return await (self._driver.call_tools(calls) if tell is None else self._driver.call_tools(calls, tell))

    def log_event(self, name: str, /, **data: Any) -> None:
        """Write a line to the rollout's event log."""
        self._driver.log_event(name, data)


class AgentWorkflowOutput(BaseModel):
    """What a workflow may return. `messages=None` means: the conversation as the engine recorded it.

    `metrics` are finite numbers about the sample; `info` is anything else worth keeping in its record, as JSON;
    `stop_reason` is a word for why the agent stopped, `final_answer` if there is none.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    messages: list[dict[str, Any]] | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    info: dict[str, Any] = Field(default_factory=dict)
    stop_reason: str | None = None
    reward: float | None = Field(default=None, allow_inf_nan=False)
    """The agent's own reward. It is the rollout's where the file has no grader; else it is only kept, in `info`."""
    answer: str | None = None
    """What the agent answers, where its last message holds more than that: graders read it as the output."""
    error: str | None = None
    """Why the agent gives up: the rollout ends as failed ("agent_error"), with these messages, metrics and info."""

    @field_validator("metrics")
    @classmethod
    def _finite(cls, metrics: dict[str, float]) -> dict[str, float]:
        for name, value in metrics.items():
            if not math.isfinite(value):
                raise ValueError(f"metric {name!r} must be a finite number, found {value}")
        return metrics


class AgentWorkflow(ABC, Generic[C]):
    """Drives the policy through one rollout. One instance per rollout; `run` is called once."""

    sees_label: ClassVar[bool] = False
    """Only for the adapter of the first generation, whose requests have always brought the label in their metadata."""

    def __init__(self, config: C | None = None) -> None:
        self.config = config

    @abstractmethod
    async def run(self, ctx: AgentWorkflowContext[C]) -> AgentWorkflowOutput | list[Message] | None:
        """Play the rollout. Return the final messages, or None for the conversation as recorded.

        Any exception ends the rollout as "failed" at the boundary it came from.
        """
