"""`Grader`: looks at a finished rollout and gives a score in its own terms, or says that it cannot."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import GenericAlias, MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from runner.records.artifacts import artifacts_folder
from runner.records.completion import Caller, Completion, Sampling
from runner.records.failure import GraderError
from runner.records.message import Message, last_answer
from runner.records.metadata import metadata_of
from runner.records.rollout_sample import MAIN, RolloutSample

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from runner.sandboxes.handle import FreshSandbox
    from runner.sandboxes.sandbox import Sandbox

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Score:
    """A grader's verdict: a finite number, a reason for people, and whatever else is worth keeping as JSON."""

    value: float
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


class Judge(Protocol):
    """A model in a role of `[roles]`, as a rubric asks it.

    Fields of `sampling` that are not None override the role's own; `sampling=None` is the role's own, whole.
    """

    def __call__(self, messages: Sequence[Message], sampling: Sampling | None = None) -> Awaitable[Completion]: ...


class GraderContext:
    """What a grader may look at.

    `messages` is the whole conversation, `output` the text of the last assistant message, `prompt` what the rollout
    started from, `label` the reference answer or None, `row` the dataset row (and `metadata`, see there),
    `tool_spans` what was called and how it went, `resources` what the runner opened for this rollout, `info` what the
    agent left beside its messages (`info["patch"]`: what it changed in a repository).
    A grader either returns its score or sets it with `set_reward` (generation 3) or `set_sample_reward` (2).
    """

    def __init__(
        self,
        *,
        messages: Sequence[Message],
        label: str | None = None,
        row: Mapping[str, Any] = _EMPTY,
        prompt: Sequence[Message] = (),
        stop_reason: str = "final_answer",
        tool_spans: Sequence[Mapping[str, Any]] = (),
        resources: Mapping[str, Any] = _EMPTY,
        roles: Mapping[str, Judge] = MappingProxyType({}),
        caller: Caller | None = None,
        output: str | None = None,
        sample_id: str = MAIN,
        info: Mapping[str, Any] = _EMPTY,
        fresh: FreshSandbox | None = None,
    ) -> None:
        self.messages = list(messages)
        self.output = last_answer(self.messages) if output is None else output
        self.label = label
        self.row = row
        self.prompt = list(prompt)
        self.stop_reason = stop_reason
        self.tool_spans = list(tool_spans)
        self.resources = resources
        self.roles = roles
        self.caller = caller or Caller(rollout_id="")
        self._artifacts: dict[str, Any] = {}
        self.info = info
        self._fresh = fresh
        self.sample = RolloutSample(messages=self.messages, label=label, id=sample_id, trajectory_messages=None)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The object in the row's column `metadata`; the row where it has none."""
        return metadata_of(self.row)

    def fresh_sandbox(self, name: str) -> AbstractAsyncContextManager[Sandbox]:
        """A sandbox of section `name` for as long as the block, with its copies and setup: nothing the agent touched.

        Raises `SandboxError` when it cannot be had, `GraderError` where there are no sandboxes at all.
        """
        if self._fresh is None:
            raise GraderError("there are no sandboxes where this is graded")
        return self._fresh(name)

    @property
    def project_path(self) -> Path:
        """The folder that the command was started in, where a project lies as a rule."""
        return Path.cwd()

    @property
    def workspace_path(self) -> Path:
        """What `project_path` was called at first."""
        return self.project_path

    @property
    def artifacts_dir(self) -> Path | None:
        """A folder for files worth keeping with this rollout, made now; None where none are kept, as in `eval`."""
        return artifacts_folder()

    @property
    def artifacts(self) -> Mapping[str, Any]:
        """What `set_artifacts` was given."""
        return self._artifacts

    def set_artifacts(self, artifacts: dict[str, Any]) -> None:
        """Keep `artifacts` with the score, as its details. Raises TypeError for what is no dict."""
        if not isinstance(artifacts, dict):
            raise TypeError(f"artifacts must be a dict, found {type(artifacts).__name__}")
        self._artifacts = dict(artifacts)

    @property
    def samples(self) -> dict[str, RolloutSample]:
        """Generation 2: samples by id. There is exactly one."""
        return {self.sample.id: self.sample}

    def get_samples(self) -> dict[str, RolloutSample]:
        return self.samples

    def set_reward(self, reward: float) -> None:
        """Set this grader's score. Raises ValueError when it is not a finite number."""
        self.sample.reward = finite(reward)

    def set_sample_reward(self, sample_id: str, reward: float) -> None:
        """Generation 2 of `set_reward`. Raises ValueError for an unknown id or a number that is not finite."""
        if sample_id != self.sample.id:
            raise ValueError(f"Sample {sample_id} not found: a rollout has one sample, here `{self.sample.id}`")
        self.set_reward(reward)


class GraderMisfit(ValueError):
    """What a grader was built from cannot work. Raised by constructors only: its message is for a diagnostic.

    `key` is the key of `config` at fault, or the one that is missing; `known` are the keys that there could be.
    """

    def __init__(self, message: str, *, key: str | None = None, known: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.key = key
        self.known = known


class Grader(ABC):
    """Gives a sample a score.

    Return a `Score`, a number, a bool, or None after setting it on the context. Raising anything is "could not
    speak": the rollout is ungraded, never 0. Raise `NoLabel` when the reference answer is missing.
    `range` is where scores lie, lowest to highest; `needs_label` says that a row without a label cannot be graded.
    `Grader[MyConfig]` says what its config is.
    """

    __class_getitem__: Any = classmethod(GenericAlias)

    range: tuple[float, float] = (-math.inf, math.inf)
    needs_label: bool = False

    def __init__(self, config: Any = None) -> None:
        self.config = config

    @abstractmethod
    async def grade(self, ctx: GraderContext) -> Score | float | None: ...


def finite(value: Any) -> float:
    """`value` as a finite float. Raises ValueError for anything else, NaN, infinities and text included."""
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, int | float):
        raise ValueError(f"a score must be a number, found {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError("a score must fit a float") from error
    if not math.isfinite(number):
        raise ValueError(f"a score must be a finite number, found {number}")
    return number
