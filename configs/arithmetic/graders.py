"""A grader in Python: does the answer keep the form that the system prompt asks for?"""

from __future__ import annotations

import re
from typing import Any

_LAST_LINE = re.compile(r"#### \$?-?[\d,]+(\.\d+|/\d+)?")


def form(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any]) -> float:
    """1 when the last line is `#### N` and nothing else, else 0."""
    lines = solution_str.strip().splitlines()
    return 1.0 if lines and _LAST_LINE.fullmatch(lines[-1].strip()) else 0.0
