"""The user's own agent: from what a reference names to a workflow for each rollout.

Everything that can be wrong with it is found here, once, before a rollout is paid for: the class, its `run`, its
config. Each rollout then gets its own instance and its own deep copy of the config.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from runner.diag.refused import refused
from runner.records.quick import quick
from runner.workflows.ambient import REHEARSAL, RolloutContext
from runner.workflows.configs import places
from runner.workflows.typed import WorkflowMisfit, config_type_of, config_type_of_parameter, takes_context
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext

if TYPE_CHECKING:
    from asyncio import Semaphore

Path: TypeAlias = tuple[str | int, ...]


class ConfigFault(NamedTuple):
    """One thing wrong with the `config` table, at `path` in it. `near` is the key that was probably meant."""

    path: Path
    message: str
    kind: Literal["wrong", "missing", "unknown"] = "wrong"
    near: str = ""


class ConfigMisfit(Exception):
    """The `config` table does not fit the workflow's config. `errors` says all that is wrong with it."""

    def __init__(self, errors: list[ConfigFault]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


@quick
class PreparedWorkflow:
    """Calling it gives the workflow of one rollout, whose `config` is its own deep copy."""

    make: Callable[[Any], AgentWorkflow[Any]]
    config: Any = None
    slots: Semaphore | None = None
    """Places for as many as may run at once, where the config says so."""

    def __call__(self) -> AgentWorkflow[Any]:
        workflow = self._made()
        return workflow if self.slots is None else SlottedWorkflow(workflow, self.slots)

    def _made(self) -> AgentWorkflow[Any]:
        config = deepcopy(self.config)
        workflow = self.make(config)
        if isinstance(workflow, AgentWorkflow) and not hasattr(
            workflow, "config"
        ):  # an `__init__` that does not call ours
            workflow.config = config
        return workflow


class FunctionWorkflow(AgentWorkflow[Any]):
    """A plain `async def run(ctx)` as a workflow."""

    def __init__(self, function: Callable[[AgentWorkflowContext[Any]], Any], config: Any = None) -> None:
        super().__init__(config)
        self._function = function

    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        return await self._function(ctx)


class SlottedWorkflow(AgentWorkflow[Any]):
    """A workflow that waits for a place before it runs."""

    def __init__(self, workflow: AgentWorkflow[Any], slots: Semaphore) -> None:
        super().__init__(workflow.config)
        self._workflow = workflow
        self._slots = slots

    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        async with self._slots:
            return await self._workflow.run(ctx)


Adapt: TypeAlias = Callable[[Any, Callable[[], Any]], AgentWorkflow[Any] | None]
"""What a factory made, and a factory that takes nothing, to the workflow that plays it; None: it is none of ours."""


def prepare(
    target: Any, config_table: Mapping[str, Any], adapt: Adapt | None = None, *, made: Any = None
) -> PreparedWorkflow:
    """The workflow that `target` names, with the config that `config_table` gives.

    `target` is a subclass of `AgentWorkflow`, an `async def run(ctx)`, or a function that makes a workflow from the
    config, or from nothing. The type of the config is `X` of `AgentWorkflow[X]`, else the hint of `__init__` (of the
    function: `X` of its `AgentWorkflowContext[X]`, or the hint of its parameter), else `AgentWorkflowConfig`. What the
    table leaves out comes from `made`, a config of that type, or from the one there is in the module of `target`.
    A factory may also make what `adapt` knows how to play. Raises `WorkflowMisfit` and `ConfigMisfit`. Makes one
    workflow, to see that it can be made.
    """
    name = _name(target)
    make, kind = _maker(target, name)
    written = _written(target, kind) if made is None or type(made) is not kind else dict(made)
    return _rehearsed(PreparedWorkflow(make, _config(kind, config_table, written)), name, adapt)


def prepare_made(target: Any, config: Any, adapt: Adapt | None = None) -> PreparedWorkflow:
    """The same with a config that somebody made, or with None. Raises `WorkflowMisfit`."""
    name = _name(target)
    return _rehearsed(PreparedWorkflow(_maker(target, name)[0], config), name, adapt)


def _name(target: Any) -> str:
    return str(getattr(target, "__name__", type(target).__name__))


def _maker(target: Any, name: str) -> tuple[Callable[[Any], Any], Any]:
    """What makes a workflow of a config, and the type of that config."""
    if inspect.isclass(target):
        return _of_class(target, name)
    if isinstance(target, AgentWorkflow):
        raise WorkflowMisfit(f"`{type(target).__name__}` is an instance; name its class: each rollout needs its own")
    if not callable(target):
        raise WorkflowMisfit(f"it is {_a(type(target).__name__)}, not a subclass of `AgentWorkflow`")
    return _of_function(target, name) if inspect.iscoroutinefunction(target) else _of_factory(target, name)


def _rehearsed(prepared: PreparedWorkflow, name: str, adapt: Adapt | None) -> PreparedWorkflow:
    with RolloutContext(REHEARSAL, rollout_id="rehearsal"):  # an agent that looks for its rollout finds one
        sound = _tried(prepared, name, adapt)
    most = places(prepared.config)
    if most is None:
        return sound
    from asyncio import Semaphore  # a check plays nothing, and does without

    return replace(sound, slots=Semaphore(most))


def _a(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} `{word}`"


def _of_class(target: type[Any], name: str) -> tuple[Callable[[Any], Any], Any]:
    if not issubclass(target, AgentWorkflow):
        raise WorkflowMisfit(f"`{name}` is not a subclass of `AgentWorkflow`; inherit from it, or name another class")
    if inspect.isabstract(target):
        missing = ", ".join(f"`{each}`" for each in sorted(target.__abstractmethods__))
        raise WorkflowMisfit(
            f"`{name}` is abstract: it does not define {missing}; define it, or name a class that does"
        )
    _check_run(target.run, f"`{name}.run`", bound=isinstance(inspect.getattr_static(target, "run"), staticmethod))
    takes = _positional(target, name)
    return (target if takes else lambda _: target()), config_type_of(target)


def _of_function(target: Callable[..., Any], name: str) -> tuple[Callable[[Any], Any], Any]:
    _check_run(target, f"`{name}`", bound=True)
    return lambda config: FunctionWorkflow(target, config), config_type_of_parameter(target, context=True)


def _of_factory(target: Callable[..., Any], name: str) -> tuple[Callable[[Any], Any], Any]:
    if inspect.isasyncgenfunction(target) or takes_context(target):
        raise _no_run(target, f"`{name}`")
    takes = _positional(target, name)
    return (target if takes else lambda _: target()), config_type_of_parameter(target, context=False)


def _no_run(run: Any, name: str) -> WorkflowMisfit:
    """Why what should be `async def run(ctx)` is none."""
    if inspect.isasyncgenfunction(run):
        return WorkflowMisfit(f"{name} yields; it must return its messages")
    return WorkflowMisfit(f"{name} must be `async def`; put `async` before its `def`")


def _check_run(run: Any, name: str, *, bound: bool) -> None:
    if not inspect.iscoroutinefunction(run):
        raise _no_run(run, name)
    signature = inspect.signature(run)
    try:
        signature.bind(*([None] if bound else [None, None]))
    except TypeError:
        wanted = "(ctx)" if bound else "(self, ctx)"
        raise WorkflowMisfit(f"{name} takes {signature}; it is called with {wanted}") from None


def _positional(target: Callable[..., Any], name: str) -> bool:
    """Whether `target` takes the config. Raises `WorkflowMisfit` when it needs more than that."""
    signature = inspect.signature(target)
    for arguments in ([None], []):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return bool(arguments)
    raise WorkflowMisfit(f"`{name}` takes {signature}; it is called with the config, or with nothing")


def _written(target: Any, kind: Any) -> Mapping[str, Any]:
    """The fields of the one config that the module of `target` holds; nothing where there is none, or several."""
    if not inspect.isclass(kind) or not issubclass(kind, AgentWorkflowConfig) or kind is AgentWorkflowConfig:
        return {}
    values = vars(inspect.getmodule(target) or object).values()
    found = list({id(value): value for value in values if type(value) is kind}.values())
    return dict(found[0]) if len(found) == 1 else {}


def _config(kind: Any, table: Mapping[str, Any], written: Mapping[str, Any]) -> Any:
    """The typed config. Raises `ConfigMisfit`."""
    from pydantic import TypeAdapter, ValidationError

    if kind is type(None):
        if table:
            raise ConfigMisfit([ConfigFault((key,), "this workflow takes no config", "unknown") for key in table])
        return None
    known = _field_names(kind)
    faults = [_unknown((key,), known) for key in _ignored(kind, table, known)]
    try:
        config = TypeAdapter(kind).validate_python({**written, **deepcopy(dict(table))})
    except ValidationError as error:
        faults += [_fault(each, known) for each in error.errors(include_url=False)]
    if faults:
        raise ConfigMisfit(faults)
    return config


def _field_names(kind: Any) -> list[str]:
    fields: Mapping[str, Any] = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
    return list(fields or getattr(kind, "__annotations__", {}))


def _ignored(kind: Any, table: Mapping[str, Any], known: list[str]) -> list[str]:
    """Keys that pydantic would drop without a word: a config that says them would have no effect."""
    fields = getattr(kind, "model_fields", None)
    if fields is None:
        return [key for key in table if key not in known] if hasattr(kind, "__dataclass_fields__") else []
    aliased = any(field.alias or field.validation_alias for field in fields.values())
    if aliased or kind.model_config.get("extra", "ignore") != "ignore":
        return []
    return [key for key in table if key not in known]


def _unknown(path: Path, known: list[str]) -> ConfigFault:
    near = get_close_matches(str(path[-1]), known, n=1, cutoff=0.6) if len(path) == 1 else []
    return ConfigFault(path, f"the workflow's config has no `{path[-1]}`", "unknown", near[0] if near else "")


def _fault(error: Any, known: list[str]) -> ConfigFault:
    path: Path = tuple(error["loc"])
    name, kind = ".".join(map(str, path)), error["type"]
    if kind == "missing":
        return ConfigFault(path, f"the workflow's config requires `{path[-1]}`", "missing")
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown(path, known)
    return ConfigFault(path, f"`{name}` of the workflow's config {refused(error)}")


def _tried(prepared: PreparedWorkflow, name: str, adapt: Adapt | None) -> PreparedWorkflow:
    try:
        made: Any = prepared()
    except Exception as error:
        said = f"{type(error).__name__}: {error}".replace("; ", ", ")
        raise WorkflowMisfit(f"`{name}` cannot be made: {said}; it is made once here, before any rollout") from error
    if isinstance(made, AgentWorkflow):
        return prepared
    if made is None:
        raise WorkflowMisfit(f"`{name}` returned nothing; return the workflow or the agent that it made")
    if adapt is not None and adapt(made, lambda: made) is not None:
        return replace(prepared, make=_adapted(prepared.make, adapt))
    if inspect.isawaitable(made):
        getattr(made, "close", lambda: None)()
    raise WorkflowMisfit(
        f"`{name}` gave {_a(type(made).__name__)}, not an `AgentWorkflow`; an agent is a subclass of "
        "`AgentWorkflow`, or an `async def run(ctx)`"
    )


def _adapted(make: Callable[[Any], Any], adapt: Adapt) -> Callable[[Any], Any]:
    """A factory that is only called inside the rollout, so that what it makes finds its rollout."""
    return lambda config: adapt(None, partial(make, config))


__all__ = [
    "ConfigFault",
    "ConfigMisfit",
    "FunctionWorkflow",
    "PreparedWorkflow",
    "SlottedWorkflow",
    "WorkflowMisfit",
    "prepare",
    "prepare_made",
]
