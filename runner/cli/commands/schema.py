"""`osmosis-run schema`: the JSON Schemas of the file formats, as they stand in `schemas/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit


@click.command("schema")
@click.argument("name", metavar="[NAME]", default="")
@click.option("--write", metavar="DIR", type=click.Path(path_type=Path), help="Write every schema into DIR.")
def command(name: str, write: Path | None) -> Exit:
    """Print the schema NAME, or the names of all of them; or write all into a folder.

    An editor that speaks Taplo completes a workflow.toml whose first line is `#:schema PATH`. `init` writes such a
    line; after an upgrade, `osmosis-run schema --write .osmosis-run` brings its schema up to date.
    """
    from runner.config.schema import schemas

    known = schemas()
    if write is not None:
        return _write(known, write)
    if not name:
        for one in known:
            console().out(_short(one))
        return Exit.OK
    for one, schema in known.items():
        if name in (one, _short(one)):
            console().print_json(schema)
            return Exit.OK
    names = ", ".join(f"`{_short(one)}`" for one in known)
    raise CommandError(f"there is no schema `{name}`", f"there are {names}")


def _short(file: str) -> str:
    return file.removesuffix(".json").removesuffix(".schema")


def _write(known: dict[str, dict[str, Any]], folder: Path) -> Exit:
    from runner.config.schema import text

    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in known.items():
        (folder / name).write_text(text(schema), encoding="utf-8")
        console().say(f"wrote {folder / name}")
    return Exit.OK
