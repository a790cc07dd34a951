"""`Code`: what one diagnostic code means, for `validate --explain CODE`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """`title` is a line, `explanation` a few sentences, `example` TOML that earns the code, `cure` what to do."""

    name: str
    title: str
    explanation: str
    example: str
    cure: str
