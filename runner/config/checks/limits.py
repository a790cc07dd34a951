"""Limits that contradict each other: an inner one that the outer one never lets happen."""

from __future__ import annotations

from runner.config.checks.checking import Checking
from runner.config.quantity import duration_text
from runner.diag.diagnostic import Path


def check_limits(check: Checking) -> None:
    """`[limits]` against itself, against the tools, the model and `[sampling]`. Graders have time of their own."""
    config = check.config
    _within(check, ("limits", "tool_time"), config.limits.tool_time)
    for name, tool in config.tools.items():
        _within(check, ("tools", name, "timeout"), tool.timeout)
    if config.model is not None:
        _within(check, ("model", "timeout"), config.model.timeout, warning=True)
    _tokens(check)


def _within(check: Checking, path: Path, inner: float | None, *, warning: bool = False) -> None:
    outer = check.config.limits.time
    if inner is None or inner <= outer or not check.is_set(path) or check.loaded.is_broken(("limits", "time")):
        return
    place = check.loaded.origins.value_place(("limits", "time"))
    name = ".".join(map(str, path))
    message = f"`{name}` is {duration_text(inner)}, and `limits.time` ends the rollout after {duration_text(outer)}"
    notes = () if place is not None else (f"the default of `limits.time` is {duration_text(outer)}",)
    check.report(
        "limits-conflict",
        path,
        message,
        f"at most {duration_text(outer)}",
        notes=notes,
        related=[(place, "the rollout's limit")],
        severity="warning" if warning else "error",
    )


def _tokens(check: Checking) -> None:
    each, total = check.config.sampling.max_tokens, check.config.limits.total_tokens
    if each is not None and total is not None and each > total:
        message = f"one answer may take {each} tokens, and `limits.total_tokens` ends the rollout at {total}"
        related = [(check.loaded.origins.value_place(("limits", "total_tokens")), "the rollout's limit")]
        check.report("limits-conflict", ("sampling", "max_tokens"), message, f"at most {total}", related=related)
