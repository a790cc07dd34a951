"""`agent = "strands"`: its config table to a factory of workflows. Strands itself is imported when a plan is opened."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from pydantic_core import PydanticCustomError

from runner.build.site import Site
from runner.config.reference import Reference
from runner.diag.diagnostic import Path
from runner.records.quick import quick
from runner.strands.adapted import manager_from
from runner.workflows.workflow import AgentWorkflow

_KEYS = ("conversation_manager", "hooks")


@quick
class StrandsMaker:
    """Calling it gives the workflow of one rollout."""

    conversation_manager: Callable[[], Any] | None = None
    hooks: tuple[Any, ...] = ()

    def open(self) -> None:
        """Import Strands, which takes most of a second, before any rollout's time runs."""
        import runner.strands.workflow  # noqa: F401

    def __call__(self) -> AgentWorkflow[Any]:
        from runner.strands.workflow import StrandsWorkflow

        return StrandsWorkflow(self.conversation_manager, self.hooks)


def build_strands(site: Site) -> StrandsMaker | None:
    """The factory, or None with a finding."""
    table, before = site.config.workflow.config, site.report.errors
    for key in table:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            label = f"did you mean `{near[0]}`?" if near else "it takes `conversation_manager` and `hooks`"
            site.add("unknown-key", f'the agent "strands" has no `{key}`', ("workflow", "config", key), label=label)
    if site.imports and find_spec("strands") is None:
        message, cure = "the agent `strands` needs the package strands-agents", "`pip install strands-agents`"
        site.add("import-failed", message, ("workflow", "agent"), label=cure)
        return None
    manager = _manager(site, table.get("conversation_manager"))
    hooks = _hooks(site, table.get("hooks", []))
    return StrandsMaker(manager, tuple(hooks)) if site.report.errors == before else None


def _manager(site: Site, said: Any) -> Callable[[], Any] | None:
    path: Path = ("workflow", "config", "conversation_manager")
    made = None if said is None else _named(site, said, path)
    if made is None or not _is_without_arguments(site, made, path):
        return None
    factory: Callable[[], Any] = made
    with site.building("unfit-code", path, Exception):
        manager_from(factory)
    return factory


def _hooks(site: Site, said: Any) -> list[Any]:
    path: Path = ("workflow", "config", "hooks")
    if not isinstance(said, list):
        site.add("wrong-type", "`hooks` is a list of references", path, label='such as `["./hooks.py:Watch"]`')
        return []
    found = []
    for index, each in enumerate(said):
        hook = _named(site, each, (*path, index))
        if hook is None or (inspect.isclass(hook) and not _is_without_arguments(site, hook, (*path, index))):
            continue
        if not callable(hook):
            site.add("not-callable", f"{type(hook).__name__} is no hook", (*path, index),
                     label="name a class of HookProvider, made anew for each rollout, or a callback")  # fmt: skip
            continue
        found.append(hook)
    return found


def _named(site: Site, said: Any, path: Path) -> Any:
    """What a reference names, or None: with a finding, or because imports are off."""
    try:
        reference = Reference.parse(said).anchored(site.config.folder)
    except PydanticCustomError:
        site.add("wrong-type", f"{said!r:.60} is no reference", path, label='write "package.module:name"')
        return None
    found = site.find(reference, path)
    return None if found is None else found.value


def _is_without_arguments(site: Site, made: Any, path: Path) -> bool:
    try:
        inspect.signature(made).bind()
    except (TypeError, ValueError):
        site.add("unfit-code", "it is called without arguments, once for each rollout, and does not fit that", path,
                 label="name a function or class that takes none")  # fmt: skip
        return False
    return True
