"""Files that a patch cannot change: what matched the globs before it is put back, and what matches after it goes.

The whole patch is applied and then undone there, so that nothing depends on how a hostile patch is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from runner.records.failure import GraderError
from runner.sandboxes.sandbox import Command, Ran, Sandbox

_MOST = 64 << 20
_SECONDS = 120.0

_LIST = "find . -name .git -prune -o \\( -type f -o -type l \\) -print0"
_PACK = "tar -cf - --null -T -"
# What took the place of a folder on the way goes first: a link there would be followed.
_UNPACK = """cat > "$1" || exit 1
tar -tf "$1" | while IFS= read -r f; do d=$f
  while d=$(dirname "$d"); [ "$d" != . ] && [ "$d" != / ]; do
    if [ -L "$d" ] || { [ -e "$d" ] && [ ! -d "$d" ]; }; then rm -f "$d"; fi
  done
  if [ -d "$f" ] && [ ! -L "$f" ]; then rm -rf "$f"; fi
done
tar -xpf "$1" && rm -f "$1"
"""


class Protected:
    """The files of `folder` that match `globs`, as they were when `remember` was called."""

    def __init__(self, sandbox: Sandbox, folder: str, globs: Sequence[str]) -> None:
        self._sandbox = sandbox
        self._folder = folder
        self._pattern = re.compile("|".join(map(glob_pattern, globs)) or r"(?!)")
        self._archive = b""

    async def remember(self) -> None:
        """Raises `GraderError` when it cannot be done."""
        names = await self._matching()
        if names:
            self._archive = await self._do(_PACK, b"\0".join(names), "kept")

    async def restore(self) -> None:
        """Put everything back that matched, and remove what has come to match. Raises `GraderError`."""
        names = await self._matching()
        if names:
            await self._do("xargs -0 rm -f --", b"\0".join(names), "removed")
        if self._archive:
            await self._do(_UNPACK, self._archive, "put back", "/tmp/.protected.tar")  # noqa: S108 (inside)

    async def _matching(self) -> list[bytes]:
        listed = await self._do(_LIST, b"", "listed")
        names = [name.removeprefix(b"./") for name in listed.split(b"\0") if name]
        return [name for name in names if self._pattern.fullmatch(os.fsdecode(name))]

    async def _do(self, script: str, stdin: bytes, verb: str, *more: str) -> bytes:
        argv = ["/bin/sh", "-c", script, "sh", *more]
        ran = await self._sandbox.exec(Command(argv, stdin=stdin, cwd=self._folder, timeout=_SECONDS, max_output=_MOST))
        if ran.code != 0 or ran.timed_out or ran.dropped_out:
            raise GraderError(f"the protected files could not be {verb}: {_last_words(ran)}", kind="protect_failed")
        return ran.stdout


def glob_pattern(glob: str) -> str:
    """A glob as a regular expression: `**` is any depth, `*` stays in its folder; without `/` it is of any folder."""
    glob = glob.removeprefix("./")
    anywhere = "/" not in glob.rstrip("/")
    if glob.endswith("/"):
        glob += "**"
    text = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", glob):
        special = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}.get(part)
        if special is not None:
            text += special
        elif part.startswith("[") and part.endswith("]"):
            text += (
                f"[{'^' if part[1] in '!^' else ''}{re.escape(part[1:-1].lstrip('!^')).replace(chr(92) + '-', '-')}]"
            )
        else:
            text += re.escape(part)
    return rf"(?s:{'(?:.*/)?' if anywhere else ''}{text})"


def _last_words(ran: Ran) -> str:
    said = (ran.stderr.strip() or ran.stdout.strip()).decode("utf-8", "replace")[-300:]
    return said or f"exit code {ran.code}"
