"""What a search asks and what it finds: the terms that our own search and ripgrep share."""

from __future__ import annotations

from dataclasses import dataclass

from runner.tools.builtin.matching import Pattern


@dataclass(frozen=True, slots=True)
class Request:
    """A search for text under `path`, by one pattern.

    `extensions` (".py"; none: all) are the endings of the files that count; files over `max_file_size` bytes and the
    folders in `excluded` do not.
    """

    pattern: Pattern
    path: str
    max_results: int
    max_file_size: int
    extensions: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def wants(self, path: str) -> bool:
        """Whether a file of this name counts."""
        return not self.extensions or path.endswith(self.extensions)


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches: its file from the folder that was searched, line and column from 1."""

    path: str
    line: int
    column: int
    text: str
