"""Writes the pages made from the code: `python docs/generate.py`. A test compares them with what it would write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


PAGES: dict[str, Callable[[], str]] = {"diagnostics.md": diagnostics, "format.md": markdown}


def main() -> None:
    folder = Path(__file__).parent
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
