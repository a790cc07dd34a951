"""`osmosis-run explain`: the value of a key, where it came from, what it overrode, and what the format says of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Style, console
from runner.cli.exit import CommandError, Exit
from runner.cli.options import file_options, json_option
from runner.cli.run_options import Asked, flag_options

if TYPE_CHECKING:
    from runner.config.explain import Explanation
    from runner.config.loaded import Loaded
    from runner.diag.diagnostic import Report


@click.command("explain")
@click.argument("key", metavar="[KEY]", default="")
@file_options
@flag_options
@json_option
def command(key: str, as_json: bool, **asked: Any) -> Exit:
    """Say what KEY is in this file: its value, who set it, what it overrode. Without KEY, list the sections.

    With `-m` and its options there is no file: what they come to is explained. An entrypoint (`agent = "./main.py"`)
    is imported, to see what it holds.
    """
    from runner.config.explain import explain

    loaded = Asked(dataset=None, **asked).inspect()
    if key.startswith("graders"):
        _look_into(loaded)
    found = explain(loaded, key)
    if not found.known:
        raise CommandError(f"there is no key `{key}`{_did_you_mean(found.near)}", _where_to_look(key))
    if as_json:
        console().print_json(_json(found))
    else:
        console().out(explanation_text(found, console().data))
    if loaded.report.errors:
        console().warn(_errors_text(loaded.report))
    return Exit.OK


def _look_into(loaded: Loaded) -> None:
    """A grader that is found in the entrypoint is a key like any other; to find it the entrypoint is imported."""
    from runner.config.reference import Reference

    agent = None if loaded.config is None else loaded.config.agent
    if isinstance(agent, Reference) and not agent.name:
        from runner.build.entrypoint import found_in

        found_in(loaded)


def _errors_text(report: Report) -> str:
    """That there are errors, where, and how to see them: a layer may be a `.env` or the command line."""
    wrong = [finding for finding in report if finding.severity == "error"]
    names = dict.fromkeys(finding.place.source.name for finding in wrong if finding.place is not None)
    where = " in " + ", ".join(f"`{name}`" for name in names) if names else ""
    many = "is 1 error" if len(wrong) == 1 else f"are {len(wrong)} errors"
    return f"there {many}{where}; `osmosis-run validate` shows {'it' if len(wrong) == 1 else 'them'}"


def explanation_text(found: Explanation, style: Style) -> str:
    """An explanation as a person reads it."""
    head = f"{style.bold(found.key)} = {found.value}" if found.value else style.bold(found.key or "workflow.toml")
    lines = [head]
    if found.layers:
        lines += ["", f"  from {style.name(found.origin)}"]
        for layer in found.overrode:
            place = f"{layer.layer}, {layer.place}" if layer.place else layer.layer
            lines.append(style.dim(f"  overrode {layer.value} ({place})"))
    if found.doc:
        lines += ["", *(f"  {line}" for line in _wrapped(found.doc))]
    facts = [f"type: {found.type}" if found.type else "", f"affects: {found.affects}" if found.affects else ""]
    facts.append(f"default: {found.default}" if found.default else "")
    lines += ["", style.dim("  " + " · ".join(filter(None, facts)))]
    if found.keys:
        lines += ["", "  keys:", *(f"    {name}" for name in found.keys)]
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(" ".join(text.split()), 86)


def _did_you_mean(near: tuple[str, ...]) -> str:
    return "; did you mean " + " or ".join(f"`{name}`" for name in near) + "?" if near else ""


def _where_to_look(key: str) -> str:
    section = key.split(".")[0]
    return (
        f"`osmosis-run explain {section}` lists its keys" if "." in key else "`osmosis-run explain` lists the sections"
    )


def _json(found: Explanation) -> dict[str, Any]:
    layers = [
        {"value": layer.value, "layer": layer.layer, "place": str(layer.place) if layer.place else None}
        for layer in found.layers
    ]
    plain = {name: value for name, value in asdict(found).items() if name not in ("known", "near", "layers")}
    return {**plain, "origin": found.origin, "layers": layers}
