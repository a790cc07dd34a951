"""The page on Osmosis files shows what the command does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PAGE = Path(__file__).parents[2] / "docs" / "bringing-osmosis-files.md"


def test_the_page_shows_what_comes_out(osmosis: Run, workspace: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    theirs, ours = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (workspace / "configs" / "eval" / "multiply.toml").write_text(theirs)
    commands = re.findall(r"^\$ osmosis-run (.*)$", text, re.MULTILINE)
    assert osmosis(*commands[0].split()).returncode == 0
    assert (workspace / "workflow.toml").read_text(encoding="utf-8") == ours
    assert osmosis(*commands[1].split(), OPENAI_API_KEY="k").returncode == 0
    assert osmosis(*commands[-1].split(), "--force").returncode == 0
