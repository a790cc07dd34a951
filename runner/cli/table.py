"""`osmosis-run`: a table of commands, each imported when it is called.

Listing commands imports none of them, and nothing but sys, os and click is imported here, so `--help` stays under
150 ms. `run` is the one place that turns exceptions into exit codes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from typing import Any

import click

from runner.cli.console import Console
from runner.cli.exit import Exit
from runner.cli.interrupt import pressed

PROG = "osmosis-run"

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "validate": ("validate", "Find every mistake in a workflow file before it costs anything."),
        "eval": ("eval", "Run a workflow on a dataset: resume, grade, summarise."),
        "plan": ("plan", "Say what `eval` would re-use, grade again and run, and why."),
        "regrade": ("regrade", "Grade a run again, without asking the policy."),
        "serve": ("serve", "Serve a workflow to training controllers, whatever generation they speak."),
    },
    "Look": {
        "show": ("show", "Print a run, or the transcript of one rollout."),
        "compare": ("compare", "Compare two runs row by row, with intervals."),
        "export": ("export", "Write training rows from a run's scored rollouts."),
    },
    "Develop": {
        "init": ("init", "Write a new project that validates, tests and runs."),
        "import": ("import_", "Turn an eval, training or serve file of the Osmosis SDK into a workflow."),
        "export-osmosis": ("export_osmosis", "Write a workflow as a file that the Osmosis SDK reads."),
        "test": ("test", "Run the tests that the file declares: of tools, graders and rollouts."),
        "debug": ("debug", "Step through a rollout at the terminal: look, edit, ask again."),
        "explain": ("explain", "Say the value of a key, where it came from, what it overrode."),
        "render": ("render", "Print the exact first request that a row would send."),
        "schema": ("schema", "Print or write the JSON Schemas of the file formats."),
        "simulate": ("simulate", "Play a training cluster: load, faults, conformance, parity."),
        "model-server": ("model_server", "Serve a file's scripted model over HTTP, for demos and tests."),
    },
}
"""Section -> command -> (module in `runner.cli.commands`, one line of help). Each module holds `command`."""

COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}

ADVICE = {"run": "eval", "evaluate": "eval", "check": "validate", "lint": "validate", "new": "init", "diff": "compare",
          "view": "show", "log": "show", "grade": "regrade", "resume": "eval", "get": "explain"}  # fmt: skip
"""Words of other tools -> ours."""


class Table(click.Group):
    """A group that lists commands from `SECTIONS` and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"runner.cli.commands.{entry[0]}").command
        known = {option.name for option in command.params}
        command.params.extend(option for option in _talk_options() if option.name not in known)
        if command.callback is not None and not hasattr(command.callback, "__wrapped__"):
            command.callback = _apart(command.callback)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = [ADVICE[name]] if name in ADVICE else get_close_matches(name, COMMANDS, n=1)
            ask = f"; did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"there is no command `{name}`{ask}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in COMMANDS)
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in entries.items()])


def _apart(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The command with `sys.stdout` pointed at stderr: what a user's tool prints must not stand among the data."""

    @wraps(callback)
    def command(*words: Any, **options: Any) -> Any:
        with redirect_stdout(sys.stderr):
            return callback(*words, **options)

    return command


def _set_color(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    found = ctx.find_object(Console)
    if found is not None and value is not None:
        found.color = value


def _set_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    found = ctx.find_object(Console)
    if found is not None and value:
        found.quiet = True


def _talk_options() -> list[click.Option]:
    """`--color` and `--quiet`, which every command takes."""
    colors = click.Choice(["auto", "always", "never"])
    return [
        click.Option(["--color"], type=colors, expose_value=False, callback=_set_color, help="Colour the output."),
        click.Option(["--quiet", "-q"], is_flag=True, expose_value=False, callback=_set_quiet, help="Say less."),
    ]


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from runner import __version__

        click.echo(f"{PROG} {__version__}")
        ctx.exit()


_VERSION = click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
                        help="Print the version.")  # fmt: skip


def _start(ctx: click.Context) -> Exit:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return Exit.OK


cli = Table(
    name=PROG,
    help="One workflow.toml, checked before it costs anything, then run: agents, tools, graders.",
    epilog="Start with `osmosis-run init my-project`. Exit codes: 0 ok, 1 usage or configuration, 2 a gate failed, "
    "3 incomplete, 130 interrupted.",
    params=[_VERSION, *_talk_options()],
    callback=click.pass_context(_start),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; every error is told on stderr."""
    console = Console()
    try:
        with cli.make_context(PROG, list(arguments), obj=console) as context:
            code = cli.invoke(context)
        return int(code) if isinstance(code, int) else int(Exit.OK)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(console)
    except BrokenPipeError:
        _forget_stdout()
        return int(Exit.OK)
    except Exception as error:
        if pressed.once:
            return _interrupted(console)
        from runner.cli.failures import tell

        if flushed():
            return int(Exit.INCOMPLETE)
        return int(tell(error, console))


def _interrupted(console: Console) -> int:
    console.err("interrupted")
    return int(Exit.INTERRUPTED)


def flushed() -> int:
    """Write out what is still in stdout's buffer: a disk may be full only now."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    except OSError as error:
        from runner.cli.failures import tell

        _forget_stdout()
        return int(tell(error, Console()))
    return int(Exit.OK)


def _forget_stdout() -> None:
    """The reader has gone (`| head`): point stdout at nothing, so that the interpreter's last flush is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
