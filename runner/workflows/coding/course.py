"""`Course`: what a coding agent has viewed, edited and tested so far, told from its calls and how they went."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Any

from runner.records.message import ToolCall

EDITS = frozenset({"create", "str_replace", "insert", "undo_edit"})
_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|ctest|phpunit|rspec|jest|vitest|mocha)\b"
    r"|\b(?:npm|yarn|pnpm|bun|cargo|go|mix|dotnet|swift|bazel|make|mvn|gradle|gradlew|manage\.py|rake)\b[\w\s:./-]*\btest"
)
_READS = re.compile(r"(?:^|[;&|]\s*)(?:cat|head|tail|less|nl|sed\s+-n)\s+([^;&|<>]+)")


@dataclass(slots=True)
class Course:
    """`kinds` is by a tool's name which built-in tool it is; tools of the user's own are counted as calls only."""

    kinds: Mapping[str, str]
    test_command: str | None = None
    viewed: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    searches: int = 0
    tests_run: int = 0
    tests_passed: int = 0
    attempts: int = 0
    """Failed test runs that followed new edits."""
    untested: bool = False
    """Whether there were edits since the tests were last run."""

    def note(self, calls: Sequence[ToolCall], statuses: Sequence[str]) -> None:
        """Count the calls of a turn."""
        for call, status in zip(calls, statuses, strict=True):
            kind = self.kinds.get(call.name, "")
            arguments = _arguments(call)
            if kind == "file_editor" and status == "ok":
                self._file(arguments)
            elif kind == "search" and status == "ok":
                self.searches += 1
            elif kind == "bash" and status != "bad_call":
                self._command(str(arguments.get("command") or ""), status)

    def metrics(self) -> dict[str, float]:
        """The counts as metrics of the sample."""
        return {
            "files_viewed": float(len(self.viewed)),
            "files_edited": float(len(self.edited)),
            "searches": float(self.searches),
            "tests_run": float(self.tests_run),
            "tests_passed": float(self.tests_passed),
        }

    def _file(self, arguments: Mapping[str, Any]) -> None:
        path = normpath(str(arguments.get("path") or "."))
        if arguments.get("command") == "view":
            self.viewed.add(path)
        elif arguments.get("command") in EDITS:
            self.edited.add(path)
            self.untested = True

    def _command(self, command: str, status: str) -> None:
        if self._runs_tests(command):
            self.tests_run += 1
            self.tests_passed += status == "ok"
            self.attempts += status != "ok" and self.untested
            self.untested = False
            return
        for names in _READS.findall(command):
            words = [word for word in names.split() if "." in word and not word.startswith(("-", "'", '"'))]
            self.viewed.update(map(normpath, words))

    def _runs_tests(self, command: str) -> bool:
        return _TESTS.search(command) is not None or bool(self.test_command and self.test_command in command)


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
