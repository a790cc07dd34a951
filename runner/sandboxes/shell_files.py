"""Files of a sandbox that can only be reached by commands in it: `put`, `get`, `list` and `remove` as shell scripts.

POSIX shell and the tools that busybox has. Links are followed by the inside itself, so a planted one leads nowhere that
its own commands could not reach; what lies outside of the allowed folders is refused as everywhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from runner.sandboxes.inside import MAX_FILE
from runner.sandboxes.sandbox import Command, Entry, Ran

Exec: TypeAlias = Callable[[Command], Awaitable[Ran]]

_SECONDS = 300.0
_ERRORS = {
    40: (errno.EINVAL, "it is no regular file"),
    41: (errno.ENOENT, "there is no such file or folder"),
    42: (errno.EISDIR, "it is a folder"),
    43: (errno.ENOTDIR, "it is no folder"),
    44: (errno.EACCES, "this part of the sandbox is not reached from outside"),
    45: (errno.EACCES, "permission denied"),
    46: (errno.ENOTEMPTY, "the folder is not empty"),
    47: (errno.EIO, "it was not written whole"),
}

# $1 the path, $2 the allowed folders, one a line. Sets p to where the path leads.
_FIND = """set -f
p=$(readlink -f -- "$1") || exit 41
ok=
IFS='
'
for a in $2; do a=$(readlink -f -- "$a") || continue; case "$p/" in "$a"/*) ok=1;; esac; done
unset IFS
[ -n "$ok" ] || exit 44
set +f
"""
_READ = (
    _FIND
    + """[ -e "$p" ] || exit 41
[ -d "$p" ] && exit 42
[ -f "$p" ] || exit 40
[ -r "$p" ] || exit 45
exec head -c "$3" "$p"
"""
)
# $3 the mode, empty for what it has; $4 the size.
_WRITE = (
    """d=$(dirname -- "$1")
mkdir -p -- "$d" || exit 43
"""
    + _FIND
    + """[ -d "$p" ] && exit 42
t="$p.$$.tmp"
cat > "$t" || { rm -f -- "$t"; exit 45; }
[ "$(wc -c < "$t")" -eq "$4" ] || { rm -f -- "$t"; exit 47; }
m=$3
[ -n "$m" ] || m=$(stat -c %a -- "$p" 2>/dev/null) || m=644
chmod "$m" "$t" && mv -f -- "$t" "$p" || { rm -f -- "$t"; exit 45; }
"""
)
_LIST = (
    _FIND
    + """[ -e "$p" ] || exit 41
[ -d "$p" ] || exit 43
[ -r "$p" ] || exit 45
cd "$p" || exit 45
exec find . -mindepth 1 -maxdepth 1 -exec sh -c '
for f; do printf "%s %s\\0" "$(stat -c "%f %s" -- "$f")" "${f#./}"; done' sh {} +
"""
)
_REMOVE = (
    """d=$(dirname -- "$1")
b=$(basename -- "$1")
o=$1
set -- "$d" "$2"
"""
    + _FIND
    + """f="$p/$b"
[ -e "$f" ] || [ -L "$f" ] || exit 41
if [ -d "$f" ] && [ ! -L "$f" ]; then rmdir -- "$f" 2>/dev/null || exit 46; else rm -f -- "$f" || exit 45; fi
"""
)


class ShellFiles:
    """Files by `run`, which runs a command in the sandbox. `folders` may be reached; relative paths start at `workdir`.

    Raises `OSError` as the local calls would, and whatever `run` raises.
    """

    def __init__(self, run: Exec, workdir: str, folders: Sequence[str]) -> None:
        self._run = run
        self._workdir = workdir
        self._folders = "\n".join(folders)

    async def put(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        wanted = "" if mode is None else f"{mode & 0o777:o}"
        await self._do(_WRITE, path, wanted, str(len(data)), stdin=data)

    async def get(self, path: str, *, limit: int | None = None) -> bytes:
        most = MAX_FILE + 1 if limit is None else limit
        ran = await self._do(_READ, path, str(most), most=2 * most)
        if limit is None and len(ran.stdout) > MAX_FILE:
            raise OSError(errno.EFBIG, f"more than {MAX_FILE} bytes cannot be read at once", path)
        return ran.stdout

    async def list(self, path: str = ".") -> list[Entry]:
        ran = await self._do(_LIST, path, most=64 << 20)
        return sorted(map(_entry, ran.stdout.split(b"\0")[:-1]), key=lambda entry: entry.name)

    async def remove(self, path: str) -> None:
        await self._do(_REMOVE, path)

    async def _do(self, script: str, path: str, *more: str, stdin: bytes = b"", most: int = 65536) -> Ran:
        if "\0" in path:
            raise ValueError("a path holds no null characters")
        whole = path if path.startswith("/") else f"{self._workdir}/{path}"
        argv = ["/bin/sh", "-c", script, "sh", whole, self._folders, *more]
        ran = await self._run(Command(argv, stdin=stdin, timeout=_SECONDS, max_output=most))
        if ran.code == 0:
            return ran
        if ran.code in _ERRORS:
            number, text = _ERRORS[ran.code]
            raise OSError(number, text, path)
        said = ran.stderr.decode("utf-8", "replace").strip()[-300:]
        raise OSError(errno.EIO, said or f"the sandbox answered with exit code {ran.code}", path)


def _entry(line: bytes) -> Entry:
    mode, _, rest = line.partition(b" ")
    size, _, name = rest.partition(b" ")
    text = os.fsdecode(name)
    if not mode:  # it was gone before it could be looked at
        return Entry(text, "other")
    kind = int(mode, 16)
    if stat.S_ISREG(kind):
        return Entry(text, "file", int(size))
    return Entry(text, "folder" if stat.S_ISDIR(kind) else "link" if stat.S_ISLNK(kind) else "other", int(size))
