"""`discover`: the workflow and the grader that an entrypoint module holds, found as the SDK finds them.

Names are compared by what they are bound to, so an alias is no second class. What counts is the shape: a class below
one that is called `AgentWorkflow` and comes from here or from the SDK, so code for either is found alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from runner.build.importing import from_here
from runner.records.quick import quick

HOMES = ("runner", "osmosis_ai")
"""The packages whose nouns count."""


@quick
class Named:
    """What a module holds under `name`. `place` is `file.py:line` where it was written, empty where nobody knows."""

    name: str
    value: Any
    place: str = ""


@quick
class Discovered:
    """The parts of an entrypoint. `config` and `grader_config` are instances that the module made."""

    workflow: Named
    config: Named | None = None
    grader: Named | None = None
    grader_config: Named | None = None


class DiscoveryProblem(Exception):
    """A module holds none of what is needed, or several. `message` names them, `cure` says what to do.

    `noun` is what was looked for, `found` what there is of it.
    """

    def __init__(self, message: str, cure: str, noun: str = "", found: Sequence[Named] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure
        self.noun = noun
        self.found = tuple(found)


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
        self.module = module
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
                noun,
                found,
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

    def none(self) -> tuple[str, str, str, list[Named]]:
        """What to say when no workflow is there: an abstract one is the likeliest slip, an agent loop the next."""
        for each in self._where(lambda value: _is_below(value, "AgentWorkflow")):
            missing = ", ".join(f"`{name}`" for name in sorted(each.value.__abstractmethods__))
            message = f"{_names([each])} of `{self.file}` is abstract: it does not define {missing}"
            return message, "define it: `async def run(self, ctx)`", "AgentWorkflow", []
        loops = self._where(_is_loop)
        if loops:
            message = f"`{self.file}` holds no `AgentWorkflow`; it holds the agent loop {_names(loops[:1])}"
            return message, "name the agent loop", "RolloutAgentLoop", loops
        return (
            f"`{self.file}` holds no `AgentWorkflow`",
            "define a class below `AgentWorkflow` there, or import it into the entrypoint",
            "AgentWorkflow",
            [],
        )

    def _where(self, wanted: Callable[[Any], bool]) -> list[Named]:
        found = [each for each in self.things.values() if wanted(each.value)]
        return [replace(each, place=place_of(self.module, each)) for each in found]


def _is_below(value: Any, noun: str) -> bool:
    """Whether `value` is a class of the user's below `noun`, not the noun itself or one that we ship."""
    return inspect.isclass(value) and not _is_home(value) and _is_noun(value, noun)


def _is_noun(kind: type[Any], noun: str) -> bool:
    return any(each.__name__.partition("[")[0] == noun and _is_home(each) for each in kind.__mro__)


def _is_home(kind: type[Any]) -> bool:
    return kind.__module__.partition(".")[0] in HOMES


def _is_loop(value: Any) -> bool:
    """Whether `value` is an agent loop that somebody made."""
    return not inspect.isclass(value) and _is_noun(type(value), "RolloutAgentLoop")


def place_of(module: ModuleType, thing: Named) -> str:
    """`file.py:line` where the class was written, or where the module gives an instance its name; else empty."""
    if inspect.isclass(thing.value):
        try:
            file, line = inspect.getsourcefile(thing.value), inspect.getsourcelines(thing.value)[1]
        except (OSError, TypeError):
            return ""
        return f"{from_here(Path(file))}:{line}" if file else ""
    file = getattr(module, "__file__", None)
    line = 0 if file is None else _line_of(Path(file), thing.name)
    return f"{from_here(Path(file))}:{line}" if file and line else ""


def _line_of(file: Path, name: str) -> int:
    import ast

    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 0
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            return statement.lineno
    return 0


def _names(found: Sequence[Named]) -> str:
    return ", ".join(f"`{each.name}`" + (f" ({each.place})" if each.place else "") for each in found)
