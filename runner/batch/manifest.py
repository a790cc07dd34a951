"""`manifest.json`: what was run, with what, and where each value came from. No secret is in it.

The facts of earlier configurations stay in it, so that a plan can name the key that changed.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runner import __version__
from runner.batch.options import RunOptions
from runner.batch.plan import Digests, RunPlan
from runner.batch.selection import selection

if TYPE_CHECKING:
    from runner.build.plan import Plan

_MOST_EARLIER = 20


def make_manifest(
    plan: Plan, run: RunPlan, options: RunOptions, before: Mapping[str, Any] | None, place: Callable[[str], str]
) -> dict[str, Any]:
    """The manifest of a run about to start; `before` is the one that stands there, or None."""
    section, digests = plan.config.eval, Digests.of(plan.facts)
    facts = {part: dict(values) for part, values in plan.facts.items()}
    started = _now()
    return {
        "name": f"{options.name or plan.name}{f'@{options.cell}' if options.cell else ''}",
        "created": before["created"] if before else started,
        "versions": {"osmosis-run": __version__, "python": platform.python_version(), "platform": sys.platform},
        "dataset": _dataset(plan),
        "rows": run.rows,
        "attempts": run.attempts,
        "pass_threshold": section.pass_threshold,
        "reward_range": plan.config.reward.range,
        "measured": list(plan.config.reward.measured),
        "group_by": list(section.group_by),
        "selection": selection(plan, run, before),
        "tools": [spec.wire() for spec in plan.offered],
        "digests": {"config": digests.config, "grading": digests.grading},
        "facts": facts,
        "origins": _origins(facts, place),
        "earlier": earlier(before, facts),
        "commands": [*(before or {}).get("commands", []), {"started": started, "command": list(options.command)}],
    }


def _dataset(plan: Plan) -> dict[str, str] | None:
    if plan.dataset is None:
        return None
    return {"path": str(plan.dataset.path), "fingerprint": plan.dataset.fingerprint}


def earlier(before: Mapping[str, Any] | None, facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The facts of configurations before this one, newest last."""
    if before is None:
        return []
    known = [*before.get("earlier", []), before["facts"]]
    kept: list[Mapping[str, Any]] = []
    for old in known:
        matters = {"result": old.get("result", {}), "grade": old.get("grade", {})}
        same_as_now = all(matters[part] == facts.get(part, {}) for part in matters)
        if matters not in kept and not same_as_now:
            kept.append(matters)
    return kept[-_MOST_EARLIER:]


def _origins(facts: Mapping[str, Mapping[str, Any]], place: Callable[[str], str]) -> dict[str, str]:
    """Where each value was set; what nobody set is a default and not listed."""
    found = {key: place(key) for part in facts.values() for key in part}
    return {key: where for key, where in found.items() if where}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
