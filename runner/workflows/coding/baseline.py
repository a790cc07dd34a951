"""`Baseline`: what a folder of a sandbox held before the agent began, and the patch from there to what it holds now.

It is kept by git outside of the folder, in a repository of its own: so it makes no difference whether the folder is a
repository, nor what the agent commits, stashes or resets in it. Everything runs inside the sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.records.failure import WorkflowError
from runner.sandboxes.sandbox import Command, Ran, Sandbox

TIME = 120.0
"""Seconds for reading all of the folder, of its two passes each."""

_NO_GIT = 97
_NO_FOLDER = 98

_ENV = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",  # the sandbox may run as another user than the one whose files these are
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}

# A nested repository is left out: git would keep a mere pointer to it, and gives up on one without commits.
_READ = """
find . -mindepth 2 -name .git -prune 2>/dev/null | sed 's|^\\.\\(.*\\)/\\.git$|\\1/|' >> "$at/info/exclude"
git --git-dir="$at" --work-tree=. add -A --ignore-errors . 2>/dev/null || true
"""

_TAKE = f"""
command -v git >/dev/null 2>&1 || exit {_NO_GIT}
cd -- "$1" 2>/dev/null || exit {_NO_FOLDER}
at=$(mktemp -d /tmp/baseline.XXXXXX) || exit 1
git --git-dir="$at" --work-tree=. init -q || exit 1
mkdir -p "$at/info"
# Byte for byte: whatever .gitattributes say of line ends and filters.
printf '* -text -ident -filter -working-tree-encoding !diff\\n' > "$at/info/attributes"
printf '__pycache__/\\n*.pyc\\n.pytest_cache/\\n.mypy_cache/\\n.ruff_cache/\\nnode_modules/\\n' > "$at/info/exclude"
# What is tracked is part of it, ignored or not.
git ls-files -z 2>/dev/null | git --git-dir="$at" --work-tree=. update-index -z --add --remove --stdin 2>/dev/null
{_READ}
tree=$(git --git-dir="$at" write-tree) || exit 1
printf '%s %s' "$at" "$tree"
"""

_DIFF = f"""
cd -- "$1" 2>/dev/null || exit {_NO_FOLDER}
at=$2
[ -n "$4" ] && printf '%s\\n' "$4" >> "$at/info/attributes"
{_READ}
git --git-dir="$at" --work-tree=. diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames \
  --src-prefix=a/ --dst-prefix=b/ "$3"
"""

_START = b"diff --git "


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch for `git apply`, and how many files it changes. `problem` says why there is none, though there should."""

    text: str = ""
    files: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The state of `folder` in `sandbox`, kept as `tree` in the repository `at`."""

    sandbox: Sandbox
    folder: str
    at: str
    tree: str

    @classmethod
    async def take(cls, sandbox: Sandbox, folder: str) -> Baseline:
        """Remember what `folder` holds now. Raises `WorkflowError` (kinds "no_git", "no_folder", "no_baseline")."""
        ran = await _shell(sandbox, _TAKE, [folder], 1 << 12)
        if ran.code == _NO_GIT:
            raise WorkflowError("the sandbox has no `git`, and the coding agent's result is a patch", kind="no_git")
        if ran.code == _NO_FOLDER:
            raise WorkflowError(f"the sandbox has no folder {folder!r} to work in", kind="no_folder")
        at, _, tree = ran.stdout.decode("utf-8", "replace").partition(" ")
        if ran.code or not tree:
            raise WorkflowError(f"the repository could not be read: {_said(ran)}", kind="no_baseline")
        return cls(sandbox, folder, at, tree)

    async def patch(self, most: int) -> Patch:
        """What has changed since, new files included, at most `most` bytes of it.

        What the agent did to the folder may leave no patch: that is no failure, but a `problem`. Raises `SandboxError`.
        """
        ran = await self._diff(most, "")
        if problem := self._problem(ran, most):
            return Patch(problem=problem)
        sections = _sections(ran.stdout)
        if any(_text(section) is None for section in sections):
            # A file that is text in no encoding we know: its change is written as git writes binary ones.
            packed = await self._diff(most, "* -diff")
            if problem := self._problem(packed, most):
                return Patch(problem=problem)
            others = _sections(packed.stdout)
            if len(others) != len(sections):
                return Patch(problem="the folder changed while it was read")
            pairs = zip(sections, others, strict=True)
            sections = [one if _text(one) is not None else other for one, other in pairs]
        return Patch("".join(_text(section) or "" for section in sections), len(sections))

    async def forget(self) -> None:
        """Remove what was kept."""
        await self.sandbox.exec(Command(["rm", "-rf", "--", self.at], timeout=TIME))

    async def _diff(self, most: int, attributes: str) -> Ran:
        return await _shell(self.sandbox, _DIFF, [self.folder, self.at, self.tree, attributes], most)

    def _problem(self, ran: Ran, most: int) -> str:
        if ran.timed_out:
            return f"the folder could not be read within {TIME:g} s"
        if ran.code == _NO_FOLDER:
            return f"the folder {self.folder!r} is gone"
        if ran.code:
            return f"git failed: {_said(ran)}"
        if ran.dropped_out:
            return f"the patch has {len(ran.stdout) + ran.dropped_out} bytes, and at most {most} are kept"
        return ""


async def _shell(sandbox: Sandbox, script: str, arguments: Sequence[str], most: int) -> Ran:
    command = Command(["sh", "-c", script, "sh", *arguments], env=_ENV, timeout=TIME, max_output=most)
    return await sandbox.exec(command)


def _sections(patch: bytes) -> list[bytes]:
    """The patch cut before each file: no line of a file's content begins as those do."""
    if not patch.startswith(_START):
        return []
    first, *others = patch.split(b"\n" + _START)
    pieces = [first, *(_START + other for other in others)]
    return [piece + b"\n" for piece in pieces[:-1]] + [pieces[-1]]


def _text(section: bytes) -> str | None:
    try:
        return section.decode()
    except UnicodeDecodeError:
        return None


def _said(ran: Ran) -> str:
    said = ran.stderr.decode("utf-8", "replace").strip()
    return said[-400:] or (f"it took longer than {TIME:g} s" if ran.timed_out else f"exit code {ran.code}")
