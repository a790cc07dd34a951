"""`discover`: the workflow and the grader that an entrypoint module holds, found as the SDK finds them.

Names are compared by what they are bound to, so an alias is no second class. What counts is the shape: a class below
one that is called `AgentWorkflow` and comes from here or from the SDK, so code for either is found alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

HOMES = ("runner", "osmosis_ai")
"""The packages whose nouns count."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a module holds under `name`."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Discovered:
    """The parts of an entrypoint. `config` and `grader_config` are instances that the module made."""

    workflow: Named
    config: Named | None = None
    grader: Named | None = None
    grader_config: Named | None = None


class DiscoveryProblem(Exception):
    """A module holds none of what is needed, or several. `message` names them, `cure` says what to do."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure


def discover(module: ModuleType, *, workflow: str | None = None, grader: str | None = None) -> Discovered:
    """Exactly one concrete `AgentWorkflow` of `module`, at most one config, `Grader` and grader config.

    `workflow` and `grader` choose one by name where there are several. Raises `DiscoveryProblem`.
    """
    found = _Scan(module)
    chosen = found.one("AgentWorkflow", workflow)
    if chosen is None:
        raise DiscoveryProblem(*found.none())
    return Discovered(
        chosen,
        found.instance("AgentWorkflowConfig"),
        found.one("Grader", grader),
        found.instance("GraderConfig"),
    )


class _Scan:
    """The names of one module, each thing once."""

    def __init__(self, module: ModuleType) -> None:
        self.file = str(getattr(module, "__file__", None) or module.__name__).rpartition("/")[2]
        self.things: dict[int, Named] = {}
        for name, value in vars(module).items():
            known = self.things.get(id(value))
            # Under its own name it is easier to recognise than under an alias.
            if known is None or getattr(value, "__name__", None) == name:
                self.things[id(value)] = Named(name, value)

    def one(self, noun: str, wanted: str | None) -> Named | None:
        """The concrete class below `noun`, the one called `wanted` if somebody chose; None when there is none."""
        found = self._where(lambda value: _is_below(value, noun) and not inspect.isabstract(value))
        if wanted is not None:
            chosen = [each for each in found if each.name == wanted]
            if chosen:
                return chosen[0]
            held = f"; it holds {_names(found)}" if found else ""
            raise DiscoveryProblem(f"`{self.file}` has no `{noun}` called `{wanted}`{held}", "choose one that it holds")
        if len(found) > 1:
            option = "--workflow" if noun == "AgentWorkflow" else "--grader"
            raise DiscoveryProblem(
                f"`{self.file}` holds {len(found)} `{noun}` classes: {_names(found)}",
                f"choose one with `{option} {found[0].name}`, or leave one in the entrypoint",
            )
        return found[0] if found else None

    def instance(self, noun: str) -> Named | None:
        """The one instance of `noun`; None when there is none."""
        found = self._where(lambda value: not inspect.isclass(value) and _is_noun(type(value), noun))
        if len(found) > 1:
            raise DiscoveryProblem(
                f"`{self.file}` holds {len(found)} `{noun}` instances: {_names(found)}",
                "leave one in the entrypoint, and make the others where they are used",
            )
        return found[0] if found else None

    def none(self) -> tuple[str, str]:
        """What to say when no workflow is there: an abstract one is the likeliest slip."""
        for each in self._where(lambda value: _is_below(value, "AgentWorkflow")):
            missing = ", ".join(f"`{name}`" for name in sorted(each.value.__abstractmethods__))
            message = f"`{each.name}` of `{self.file}` is abstract: it does not define {missing}"
            return message, "define it: `async def run(self, ctx)`"
        return (
            f"`{self.file}` holds no `AgentWorkflow`",
            "define a class below `AgentWorkflow` there, or import it into the entrypoint",
        )

    def _where(self, wanted: Callable[[Any], bool]) -> list[Named]:
        return [each for each in self.things.values() if wanted(each.value)]


def _is_below(value: Any, noun: str) -> bool:
    """Whether `value` is a class of the user's below `noun`, not the noun itself or one that we ship."""
    return inspect.isclass(value) and not _is_home(value) and _is_noun(value, noun)


def _is_noun(kind: type[Any], noun: str) -> bool:
    return any(each.__name__.partition("[")[0] == noun and _is_home(each) for each in kind.__mro__)


def _is_home(kind: type[Any]) -> bool:
    return kind.__module__.partition(".")[0] in HOMES


def _names(found: list[Named]) -> str:
    return ", ".join(f"`{each.name}`" for each in found)
