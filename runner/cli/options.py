"""The options that commands share, and how a word on the command line becomes a loaded file.

`-w` and FILE may name a folder that holds a workflow.toml. No `.env` file is read: what the process was given is what
the file sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner.cli.exit import CommandError

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.config.layers import Override
    from runner.config.load import Loaded

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT = Path("workflow.toml")

workflow_option = click.option(
    "-w",
    "--workflow",
    type=click.Path(path_type=Path),
    default=DEFAULT,
    show_default=True,
    metavar="FILE",
    help="The workflow file, or a folder that holds a workflow.toml.",
)
file_argument = click.argument("workflow", metavar="[FILE]", type=click.Path(path_type=Path), default=DEFAULT)
profile_option = click.option("--profile", metavar="NAME", help="A profile of the file to lay over it.")
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set one key: --set sampling.top_p=0.9. Repeatable."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")


def file_options(command: F) -> F:
    """`-w/--workflow`, `--profile` and `--set`: parameters `workflow`, `profile` and `overrides`."""
    return workflow_option(profile_option(set_option(command)))


def locate(path: Path) -> Path:
    """The workflow file that `path` means: itself, or the workflow.toml in it.

    Raises `CommandError` with a hint when there is none.
    """
    if path.is_dir():
        inside = path / DEFAULT
        if inside.is_file():
            return inside
        raise CommandError(f"the folder `{path}` holds no workflow.toml", _hint(path, DEFAULT.name))
    if not path.exists():
        raise CommandError(f"there is no file `{path}`", _hint(path.parent, path.name))
    return path


def _hint(folder: Path, wanted: str) -> str:
    from difflib import get_close_matches

    try:
        names = sorted(found.name for found in folder.glob("*.toml"))
    except OSError:
        names = []
    near = get_close_matches(wanted, names, n=1) or [name for name in names if name == DEFAULT.name]
    if near:
        return f"did you mean `{folder / near[0]}`?"
    return "name a file with `-w FILE`, or write a new project with `osmosis-run init`"


def load_file(
    workflow: Path, profile: str | None, overrides: Sequence[str], options: Sequence[Override] = ()
) -> Loaded:
    """Read and check a file. `options` are settings made by a command's own options, laid over everything.

    Raises `ConfigError` with every finding when it has errors.
    """
    from runner.diag.diagnostic import ConfigError

    loaded = inspect(locate(workflow), profile, overrides, options)
    if loaded.report.errors:
        raise ConfigError(loaded.report)
    return loaded


def inspect(file: Path, profile: str | None, overrides: Sequence[str], options: Sequence[Override] = ()) -> Loaded:
    """Read a file and find all that is wrong with its text, without raising for any of it."""
    from runner.config.check import check
    from runner.config.layers import Override
    from runner.config.load import inspect_file

    loaded = inspect_file(file, overrides=[*map(Override.from_set, overrides), *options], profile=profile)
    check(loaded)
    return loaded


def build_plan(workflow: Path, profile: str | None, overrides: Sequence[str], options: Sequence[Override] = ()) -> Plan:
    """Load a file and build it: everything imported and compiled, nothing running. Raises `ConfigError`."""
    from runner.build.plan import build

    config = load_file(workflow, profile, overrides, options).config
    assert config is not None  # a report without errors comes with a config
    return build(config)
