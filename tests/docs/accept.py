"""Write into the pages what their commands print now: `python tests/docs/accept.py [PAGE]...`. Look at the difference.

A command under which a line `…` stands keeps what is shown.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pages


def accept(page: Path, bin: Path) -> int:
    """How many commands of `page` print something else than what stood there."""
    with tempfile.TemporaryDirectory() as folder:
        steps = pages.play_page(page, pages.blocks_of(page), Path(folder).resolve(), bin)
    text, at, changed = page.read_text(encoding="utf-8"), 0, 0
    for step in steps:
        if not step.is_right and not step.command:
            sys.stdout.write(f"look at {step.place}:\n{step.output}\n")
        if step.shown is None or not step.command:
            continue
        old = f"$ {step.script}\n{step.shown}"
        at = text.index(old, at)
        if not step.is_right and "…" not in map(str.strip, step.shown.splitlines()):
            new = f"$ {step.script}\n{step.output.rstrip()}\n".replace("\n\n\n", "\n\n")
            text, changed = text[:at] + new + text[at + len(old) :], changed + 1
            at += len(new)
        elif not step.is_right:
            sys.stdout.write(f"look at {step.place}: {step.script}\n{step.output}\n")
    page.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    chosen = [Path(word).resolve() for word in sys.argv[1:]] or pages.PAGES
    with tempfile.TemporaryDirectory() as folder, pages.warm(Path(folder)) as bin:
        for page in chosen:
            sys.stdout.write(f"{page.name}: {accept(page, bin)} changed\n")
