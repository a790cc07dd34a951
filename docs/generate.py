"""Writes the pages made from the code: `python docs/generate.py`. A test compares them with what it would write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from runner.cli.table import PROG, SECTIONS, Table
from runner.config.document import markdown
from runner.diag.codes import CODES

HEAD = "<!-- made by docs/generate.py: change the code, then run it again -->\n\n"


def diagnostics() -> str:
    """Every diagnostic code: what it means, an example, the cure."""
    many = f"`osmosis-run validate` has {len(CODES)} findings; `validate --explain CODE` prints one."
    parts = [f"{HEAD}# Diagnostics\n\n{many}\n"]
    for code in CODES.values():
        example = f"```toml\n{code.example}\n```"
        parts.append(f"## {code.name}\n\n{code.title}\n\n{code.explanation}\n\n{example}\n\n**Cure.** {code.cure}\n")
    return "\n".join(parts)


def commands() -> str:
    """Every command with its words and options."""
    table = Table(PROG)
    parts = [f"{HEAD}# Commands\n\nThe [README](../README.md) shows them at work.\n"]
    for section, entries in SECTIONS.items():
        parts.append(f"## {section}\n")
        for name in entries:
            command = table.get_command(click.Context(table), name)
            assert command is not None
            rows = [_option(one) for one in command.params if isinstance(one, click.Option)]
            usage = " ".join([PROG, name, *command.collect_usage_pieces(click.Context(command))])
            text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
            parts.append(f"### {name}\n\n`{usage}`\n\n{text}\n\n| option | |\n|---|---|\n" + "".join(rows))
    return "\n".join(parts)


def _option(option: click.Option) -> str:
    said = "" if option.is_flag else f" {option.metavar or option.type.name.split()[0].upper()}"
    if isinstance(option.type, click.Choice):
        said = f" {'|'.join(map(str, option.type.choices))}"
    default = f" Default: `{option.default}`." if option.show_default and option.default is not None else ""
    cells = (f"`{', '.join(option.opts)}{said}`", f"{option.help}{default}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


PAGES: dict[str, Callable[[], str]] = {"commands.md": commands, "diagnostics.md": diagnostics, "format.md": markdown}


def main() -> None:
    folder = Path(__file__).parent
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
