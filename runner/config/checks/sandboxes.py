"""`[sandboxes]`: every key can be honoured by its kind, what is mounted and copied is there, and names are declared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runner.config.checks.checking import Checking
from runner.config.checks.contents import regex_of
from runner.config.checks.kubernetes import check_kubernetes
from runner.config.checks.there import is_there
from runner.config.graders import CommandGrader, CommandScore
from runner.config.model import VARIABLE_PATTERN
from runner.config.sandboxes import HONOURED, SandboxSection
from runner.diag.diagnostic import Path

_TARGET = re.compile(r"[^:\0]+(:(ro|rw))?")
_NUMBERS = re.compile(r"\d{1,9}(:\d{1,9})?")


def check_sandboxes(check: Checking) -> None:
    """Everything about `[sandboxes]` that one table cannot know alone."""
    for name, section in check.config.sandboxes.items():
        path: Path = ("sandboxes", name)
        if check.loaded.is_broken((*path, "kind")):
            continue
        _honoured(check, path, section)
        _user(check, path, section)
        _env(check, path, section)
        _mounts(check, path, section)
        _copies(check, path, section)
        _pool(check, path, section)
        if section.kind == "kubernetes":
            check_kubernetes(check, path, section)
    _graders(check)


def _honoured(check: Checking, path: Path, section: SandboxSection) -> None:
    table = check.loaded.tree["sandboxes"][path[1]]
    for key, kinds in HONOURED.items():
        if section.kind not in kinds and key in table:
            message = f"a sandbox of kind `{section.kind}` has no `{key}`"
            named = [f"`{kind}`" for kind in kinds]
            label = f"it goes with {' and '.join([', '.join(named[:-1]), named[-1]] if named[1:] else named)}"
            check.report("misplaced-key", (*path, key), message, label, key=True)
    if section.kind in HONOURED["image"] and section.image is None and "image" not in table:
        message = f"a sandbox of kind `{section.kind}` needs an `image`"
        check.report("missing-key", path, message, 'add `image = "python:3.12-slim"`', key=True)


def _user(check: Checking, path: Path, section: SandboxSection) -> None:
    numbered = section.kind in ("bubblewrap", "kubernetes")
    if numbered and section.user is not None and not _NUMBERS.fullmatch(section.user):
        message = f"`{section.user}` is no user of a `{section.kind}` sandbox"
        check.report("bad-value", (*path, "user"), message, 'write numbers: `"1000"` or `"1000:1000"`')


def _env(check: Checking, path: Path, section: SandboxSection) -> None:
    for name in section.env:
        if not re.fullmatch(VARIABLE_PATTERN, name):
            message = f"`{name}` cannot be the name of a variable"
            check.report("bad-value", (*path, "env", name), message, "letters, digits and `_`", key=True)


def _mounts(check: Checking, path: Path, section: SandboxSection) -> None:
    for host, target in section.mount.items():
        where = (*path, "mount", host)
        if not _TARGET.fullmatch(target):
            check.report("bad-value", where, f"`{target}` is no place inside", 'write `"/data:ro"` or `"/data:rw"`')
        elif section.kind in HONOURED["mount"]:
            is_there(check, where, host, "mount")


def _copies(check: Checking, path: Path, section: SandboxSection) -> None:
    for host, target in section.copy_in.items():
        where = (*path, "copy", host)
        if not target or "\0" in target:
            check.report("bad-value", where, "it is copied to no place", 'write a path inside: `"."`')
        elif "{{" not in host and "{%" not in host:
            is_there(check, where, host, "copy")


def _pool(check: Checking, path: Path, section: SandboxSection) -> None:
    if section.scope == "run":
        if section.warm:
            check.warn("no-effect", (*path, "warm"), "there is one sandbox for the whole run", "remove it", key=True)
    elif section.most is not None and section.warm > section.most:
        message = f"{section.warm} cannot be kept ready where at most {section.most} are alive"
        related = [(check.place((*path, "max")), "the most")]
        check.report("limits-conflict", (*path, "warm"), message, "lower it", related=related)


def _graders(check: Checking) -> None:
    table = check.loaded.tree.get("sandboxes")
    known = list(table) if isinstance(table, dict) else []
    for name, grader in check.config.graders.items():
        if not isinstance(grader, CommandGrader):
            continue
        path: Path = ("graders", name)
        check_sandbox(check, path, grader.sandbox, "runs", known)
        if isinstance(grader.score, CommandScore) and grader.score.regex is not None:
            _pattern(check, (*path, "score", "regex"), grader.score.regex)


def check_sandbox(
    check: Checking, path: Path, named: str | None, verb: str, known: Sequence[str], notes: Iterable[str] = ()
) -> None:
    """The tool or grader at `path` knows its sandbox: the one that is `named`, else the only one of the file.

    `known` are those of the file. `verb` is what it does there; `notes` stand below a report that none is named.
    """
    if named is not None:
        if named not in known:
            check.unknown("unknown-sandbox", (*path, "sandbox"), "sandbox", named, known)
    elif len(known) != 1:
        message = f"`{path[-1]}` {verb} in a sandbox, and the file has " + ("several" if known else "none")
        label = f'add `sandbox = "{known[0]}"`' if known else "add `[sandboxes.work]`, and it is used"
        check.report("unknown-sandbox", path, message, label, key=True, notes=notes)


def _pattern(check: Checking, path: Path, text: str) -> None:
    pattern = regex_of(check, path, text)
    if pattern is not None and not 1 <= pattern.groups <= 2:
        message = "the pattern says not which part is the number"
        check.report("bad-value", path, message, "put one group `( )` around it, or two for a share")
