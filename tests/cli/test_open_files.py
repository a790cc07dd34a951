"""More connections than the shell allows files: the limit is raised, or a warning says how far it goes."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import resource, sys
from runner.cli.open_files import allow_open_files
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(allow_open_files(connections), "|", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def ask(soft: int, hard: int, connections: int) -> tuple[str, int]:
    words = [sys.executable, "-c", ASK, str(soft), str(hard), str(connections)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    warning, _, now = said.rpartition(" | ")
    return warning, int(now)


def test_a_small_limit_is_raised_as_far_as_needed() -> None:
    assert ask(256, 4000, 1000) == ("", 1256)


def test_a_limit_that_is_enough_is_left_alone() -> None:
    assert ask(2000, 4000, 1000) == ("", 2000)


def test_a_hard_limit_that_is_too_small_is_told() -> None:
    warning, now = ask(256, 600, 1000)
    assert now == 600
    assert warning == "1000 rollouts in flight need 1256 open files, and the system allows 600 (`ulimit -Hn`)"
