"""The user's own agent: what can be used, what config it gets, and what is refused with which words."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field

from runner.workflows.custom import ConfigMisfit, PreparedWorkflow, WorkflowMisfit, prepare
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext


class MyConfig(AgentWorkflowConfig):
    model_config = ConfigDict(extra="forbid")

    steps: int = Field(8, ge=1)
    tags: list[str] = Field(default_factory=list)


@dataclass
class Plain:
    steps: int


class Mine(AgentWorkflow[MyConfig]):
    async def run(self, ctx: AgentWorkflowContext[MyConfig]) -> None: ...


class ByHint(AgentWorkflow[Any]):
    def __init__(self, config: MyConfig | None = None) -> None:
        self.mine = config

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None: ...


C = TypeVar("C", bound=BaseModel)


class Middle(AgentWorkflow[C], Generic[C]):
    async def run(self, ctx: AgentWorkflowContext[C]) -> None: ...


class Leaf(Middle[MyConfig]):
    pass


class Quoted(AgentWorkflow["MyConfig"]):
    async def run(self, ctx: AgentWorkflowContext[MyConfig]) -> None: ...


async def play(ctx: AgentWorkflowContext[MyConfig]) -> None: ...


def make(config: MyConfig) -> Mine:
    return Mine(config)


@pytest.mark.parametrize("target", [Mine, ByHint, Leaf, Quoted, play, make])
def test_the_typed_config_is_found_and_each_rollout_has_its_own(target: Any) -> None:
    prepared = prepare(target, {"steps": 3, "tags": ["a"]})
    first, second = prepared(), prepared()
    assert isinstance(first, AgentWorkflow)
    assert first is not second
    assert isinstance(first.config, MyConfig)
    first.config.tags.append("b")
    assert second.config == prepared().config == MyConfig(steps=3, tags=["a"])


class Untyped(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> None: ...


class OfPlain(AgentWorkflow[Plain]):
    async def run(self, ctx: AgentWorkflowContext[Plain]) -> None: ...


class OfDict(AgentWorkflow[dict[str, Any]]):
    async def run(self, ctx: AgentWorkflowContext[dict[str, Any]]) -> None: ...


class OfNothing(AgentWorkflow[None]):
    def __init__(self) -> None:
        super().__init__()

    async def run(self, ctx: AgentWorkflowContext[None]) -> None: ...


def test_other_types_of_config() -> None:
    untyped = prepare(Untyped, {"name": "mine", "anything": 1}).config
    assert isinstance(untyped, AgentWorkflowConfig)
    assert untyped.model_dump(exclude={"concurrency"}) == {"name": "mine", "description": None, "anything": 1}
    assert prepare(OfPlain, {"steps": 1}).config == Plain(1)
    assert prepare(OfDict, {"a": {"b": 1}}).config == {"a": {"b": 1}}
    assert prepare(OfNothing, {})().config is None
    with pytest.raises(ConfigMisfit, match="this workflow takes no config"):
        prepare(OfNothing, {"a": 1})


def test_a_plain_function_is_run_with_the_context() -> None:
    async def echo(ctx: AgentWorkflowContext[Any]) -> Any:
        return ctx

    marker: Any = object()
    assert asyncio.run(prepare(echo, {})().run(marker)) is marker  # type: ignore[arg-type]


def test_misfits_of_the_config_have_their_path() -> None:
    with pytest.raises(ConfigMisfit) as caught:
        prepare(Mine, {"step": 3, "steps": 0, "tags": ["a", 1]})
    assert caught.value.errors == [
        (("steps",), "`steps` of the workflow's config must be at least 1, found `0`", "wrong", ""),
        (("tags", 1), "`tags.1` of the workflow's config must be a string, found `1`", "wrong", ""),
        (("step",), "the workflow's config has no `step`", "unknown", "steps"),
    ]
    with pytest.raises(ConfigMisfit) as caught:
        prepare(OfPlain, {})
    assert caught.value.errors == [(("steps",), "the workflow's config requires `steps`", "missing", "")]
    with pytest.raises(ConfigMisfit) as caught:
        prepare(OfPlain, {"steps": 3, "stesp": 4})  # a dataclass would take it and forget it
    assert caught.value.errors == [(("stesp",), "the workflow's config has no `stesp`", "unknown", "steps")]


class Abstract(AgentWorkflow[Any]):
    @abstractmethod
    def more(self) -> None: ...

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None: ...


class NotAsync(AgentWorkflow[Any]):
    def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        return None


class TooMany(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any], more: int) -> None: ...  # type: ignore[override]


class Yields(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        yield {}


class Raises(AgentWorkflow[Any]):
    def __init__(self, config: Any) -> None:
        raise RuntimeError("no key")

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None: ...


class Needy(AgentWorkflow[Any]):
    def __init__(self, config: Any, client: Any) -> None:
        super().__init__(config)

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None: ...


async def wrong(ctx: Any, more: Any) -> None: ...


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Abstract, "`Abstract` is abstract: it does not define `more`"),
        (AgentWorkflow, "`AgentWorkflow` is abstract: it does not define `run`"),
        (dict, "`dict` is not a subclass of `AgentWorkflow`"),
        (7, "it is an `int`, not a subclass of `AgentWorkflow`"),
        (Untyped(), "`Untyped` is an instance; name its class"),
        (NotAsync, "`NotAsync.run` must be `async def`"),
        (TooMany, "`TooMany.run` takes (self, ctx: "),
        (Yields, "`Yields.run` yields; it must return its messages"),
        (Raises, "`Raises` cannot be made: RuntimeError: no key"),
        (Needy, "`Needy` takes (config: "),
        (wrong, "`wrong` takes (ctx: "),
        (lambda: {"a": 1}, "`<lambda>` gave a `dict`, not an `AgentWorkflow`"),
    ],
)
def test_what_cannot_drive_a_rollout_is_refused(target: Any, message: str) -> None:
    with pytest.raises(WorkflowMisfit) as caught:
        prepare(target, {})
    assert caught.value.message.startswith(message)


def test_prepared_workflows_can_be_made_by_hand() -> None:
    assert isinstance(PreparedWorkflow(lambda _: Untyped())(), Untyped)
