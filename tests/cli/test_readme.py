"""The README's console blocks are run in order, and what they print is what stands there.

Numbers of time and speed are not compared; everything else is, stdout and stderr together.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
PASSING = re.compile(r"\d[\d,.]* ?(?:ms|s|µs)\b|\d[\d,.]*/s|[\d,.]+ rollouts/s")


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of the console blocks with the output shown under it."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def play(steps: list[str], folder: Path) -> list[str]:
    """The output of each command, all in one shell, so that `cd` holds."""
    mark = "=== next ==="
    script = "\n".join(f"{{ {step}; }} 2>&1; echo '{mark}'" for step in steps)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OSMOSIS_RUN", "FORCE_COLOR"))}
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=folder, timeout=120, check=False,
        env={**clean, "PATH": path, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split(f"{mark}\n")[:-1]


def comparable(output: str) -> list[str]:
    lines = (" ".join(PASSING.sub("#", line).split()) for line in output.strip().splitlines())
    return [line for line in lines if "rollouts/s" not in line and "#" not in line]


def test_the_readme_shows_what_happens(tmp_path: Path) -> None:
    shown = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(shown) > 12
    played = play([command for command, _ in shown], tmp_path)
    assert len(played) == len(shown)
    for (command, expected), found in zip(shown, played, strict=True):
        assert comparable(found) == comparable(expected), f"$ {command}\n{found}"


def test_every_link_of_the_docs_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
