"""`osmosis_ai`, as another name of our own surface, while a user's module is imported.

Only where the SDK is not installed: the finder comes last, so a real one is always found first. Modules that were
imported under that name stay, so that an import inside a function still finds them later.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_ROOT = "osmosis_ai"
_MODULES = frozenset(
    f"{_ROOT}{path}"
    for path in (
        "",
        ".rubric_eval",
        ".utils",
        ".rollout",
        *(
            f".rollout.{name}"
            for name in (
                "agent_workflow",
                "backend",
                "backend.base",
                "backend.local",
                "client",
                "config",
                "config.settings",
                "context",
                "controller",
                "core",
                "core.base",
                "core.exceptions",
                "core.llm_client",
                "core.schemas",
                "eval",
                "grader",
                "integrations",
                "integrations.agents",
                "integrations.agents.strands",
                "messages",
                "network",
                "observability",
                "registry",
                "server",
                "server.app",
                "tools",
                "types",
                "utils",
                "validator",
            )
        ),
    )
)
"""The modules of all generations that code imports from. Each has every name: a name means the same in all of them."""


class _Alias(ModuleType):
    """A module whose names are those of `runner`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if f"{self.__name__}.{name}" in _MODULES:
            return import_module(f"{self.__name__}.{name}")
        door = import_module("runner")
        if name in door.__all__:  # and not the folders of our own, which are attributes of it, too
            return getattr(door, name)
        text = f"osmosis-run has no {name!r} for {self.__name__!r}; install the package osmosis-ai to have its own"
        raise AttributeError(text)

    def __dir__(self) -> list[str]:
        return dir(import_module("runner"))


class _AliasLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Alias(spec.name, "Another name of `runner`, for code written for the SDK.")

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__all__"] = import_module("runner").__all__


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _MODULES:
            return None
        return ModuleSpec(fullname, _AliasLoader(), origin="runner", is_package=True)


_finder = _AliasFinder()


@contextmanager
def osmosis_alias() -> Iterator[None]:
    """Inside the block `import osmosis_ai` finds our surface, unless the real one is installed.

    Once it was imported, all modules of that name stay.
    """
    fresh = _finder not in sys.meta_path
    if fresh:
        sys.meta_path.append(_finder)
    try:
        yield
        if isinstance(sys.modules.get(_ROOT), _Alias):
            for name in sorted(_MODULES):
                import_module(name)
    finally:
        if fresh:
            sys.meta_path.remove(_finder)
