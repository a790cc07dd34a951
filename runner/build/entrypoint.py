"""`agent = "./main.py"`: a module by itself, in which the agent and its grader are found as the SDK finds them.

What was found is written into the config as a layer of its own, whose places are lines of the module, so that every
later finding, `explain` and the digests see it like any other key.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.build.discovery import Discovered, DiscoveryProblem, Named, discover
from runner.build.importing import from_here
from runner.config.graders import PythonGrader
from runner.config.layers import Setting, Spot, put
from runner.config.reference import Reference
from runner.diag.diagnostic import Place, Source

if TYPE_CHECKING:
    from runner.build.site import Site
    from runner.config.loaded import Loaded

GRADER = "grader"
"""What a grader is called that was found."""

_AGENT = ("workflow", "agent")


def enter(site: Site) -> None:
    """Find what the entrypoint of the file holds; with an agent that is named otherwise nothing is done.

    A `Grader` becomes the file's where it declares none.
    """
    agent = site.config.agent
    if not isinstance(agent, Reference) or agent.name:
        return
    module = site.module(agent, _AGENT)
    if module is None:
        return
    try:
        site.found = discover(module)
    except DiscoveryProblem as problem:
        place = site.place(_AGENT)
        flag = "-m" if place is not None and place.source.text.startswith("-m ") else ""
        site.add("unfit-code", problem.message, _AGENT, label=_cure(problem, agent, flag))
        return
    if site.found.grader is not None and not _declares_graders(site):
        _adopt(site, agent, site.found.grader)


def found_in(loaded: Loaded) -> None:
    """Put what the entrypoint of a loaded file holds into it, for whoever only looks. Imports the user's code."""
    from runner.build.site import Site
    from runner.diag.diagnostic import Report

    if loaded.config is not None:
        enter(Site(loaded.config, Report(), loaded=loaded))


def grader_config(site: Site, reference: Reference) -> Any:
    """A copy of the config that the entrypoint made for its grader; None for another grader, or without one."""
    found = site.found
    if found is None or found.grader is None or found.grader_config is None or reference.name != found.grader.name:
        return None
    return deepcopy(found.grader_config.value)


def _declares_graders(site: Site) -> bool:
    broken = site.loaded is not None and site.loaded.is_broken(("graders",))
    return broken or bool(site.config.graders)


def _cure(problem: DiscoveryProblem, agent: Reference, flag: str) -> str:
    if not problem.found or problem.noun == "Grader":
        return "leave one in the entrypoint, or name one in `[graders.NAME] call`" if problem.found else problem.cure
    if problem.noun.endswith("Config"):
        return problem.cure
    named = f"{agent.text}:{problem.found[0].name}"
    return f"name one: `{flag} {named}`" if flag else f'name one: `agent = "{named}"`'


def _adopt(site: Site, agent: Reference, grader: Named) -> None:
    call = Reference(f"{agent.text}:{grader.name}", agent.folder)
    section = PythonGrader(kind="python", call=call)
    place = _place(grader)
    spot = Spot(place, place)
    loaded = site.loaded
    tree: dict[str, Any] = {} if loaded is None else loaded.tree
    for key, value in (("kind", "python"), ("call", call.text)):
        path = ("graders", GRADER, key)
        put(tree, site.origins, path, Setting(value, "found in the entrypoint", agent.folder, spot, path))
    site.config = site.config.model_copy(update={"graders": {GRADER: section}})
    if loaded is not None:
        loaded.config = site.config
    site.notes.append(f"`{grader.name}` of {grader.place or agent.text} grades, since `[graders]` is empty")


def _place(grader: Named) -> Place:
    try:
        file = Path(inspect.getsourcefile(grader.value) or "")
        source = Source(from_here(file), file.read_text(encoding="utf-8"))
        start = source.line_start(inspect.getsourcelines(grader.value)[1])
    except (OSError, TypeError, ValueError, IndexError):
        return Place(Source(grader.name, grader.name), 0, len(grader.name))
    return Place(source, start, start + len(source.line_text(source.line_column(start)[0])))


__all__ = ["GRADER", "Discovered", "enter", "found_in", "grader_config"]
