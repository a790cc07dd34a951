"""`[resources]` to parts that can be opened."""

from __future__ import annotations

import inspect
from typing import Any

from runner.build.live import ResourcePart
from runner.build.site import Site
from runner.config.resources import ResourceSection
from runner.diag.diagnostic import Path
from runner.diag.suggest import nearest


def build_resources(site: Site) -> tuple[list[ResourcePart], list[ResourcePart]]:
    """The resources of scope "run" and those of scope "rollout", in the order of the file."""
    run: list[ResourcePart] = []
    rollout: list[ResourcePart] = []
    for name, section in site.config.resources.items():
        part = _build(site, name, section)
        if part is not None:
            (run if section.scope == "run" else rollout).append(part)
    return run, rollout


def _build(site: Site, name: str, section: ResourceSection) -> ResourcePart | None:
    path = ("resources", name)
    found = site.find(section.open, (*path, "open"))
    if found is None:
        return None
    if not callable(found.value):
        site.add(
            "not-callable",
            f"`{section.open.text}` is a {type(found.value).__name__}, not something to call",
            (*path, "open"),
            label="name a function that gives a context manager, for example one under @asynccontextmanager",
        )
        return None
    if not _fits(site, section, found.value, path):
        return None
    return ResourcePart(name, found.value, section.config)


def _fits(site: Site, section: ResourceSection, function: Any, path: Path) -> bool:
    """Whether `config` can be handed to the function as keyword arguments; each that cannot is a finding."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True  # a builtin without a signature: only calling it will tell
    named = {each.name: each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters)
    extra = [key for key in section.config if key not in named and not open_ended]
    missing = [key for key, each in named.items() if each.default is each.empty and key not in section.config]
    for key in extra:
        near = nearest(key, named)
        label = f"did you mean `{near}`?" if near else f"it takes {', '.join(named) or 'nothing'}"
        message = f"`{section.open.text}` takes no `{key}`"
        site.add("signature-extra", message, (*path, "config", key), at_key=True, label=label)
    for key in missing:
        label = f"add `{key} = …`" if section.config else f"add `config = {{ {key} = … }}`"
        message = f"`{section.open.text}` requires `{key}`, which `config` does not give"
        site.add("signature-missing", message, (*path, "config") if section.config else path, at_key=True, label=label)
    return not extra and not missing
