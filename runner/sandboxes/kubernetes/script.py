"""What is said to the shell of a pod.

The words of a request lie in its address, which servers write to their audit logs and cut at some length. So what a
command is, its variables and where it starts are given by standard input: a fixed text reads so many lines, byte by
byte as shells must, and runs them; what follows belongs to the command.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

_BOOT = (
    "IFS= read -r _o_n || exit 125; _o_s=; "
    'while [ "$_o_n" -gt 0 ]; do IFS= read -r _o_l || exit 125; _o_s="$_o_s$_o_l\n"; _o_n=$((_o_n-1)); done; '
    'eval "$_o_s"'
)
BOOT = ("/bin/sh", "-c", _BOOT)
"""The words of every request."""

NO_INPUT, ALL_INPUT = -1, -2

_FIND_MARKED = r"""
found=
for p in /proc/[0-9]*; do
  grep -qs -- "$mark" "$p/environ" 2>/dev/null && found="$found ${p#/proc/}"
done
"""
# What carries the mark, what is in a session of such a process, and what those have started: again, until nothing is
# found, since what is being killed may be starting more.
KILL = (
    r"""mark=$1
n=0
while [ $n -lt 25 ]; do"""
    + _FIND_MARKED
    + r"""
[ -n "$found" ] || exit 0
more=1
while [ -n "$more" ]; do
  more=
  for p in /proc/[0-9]*; do
    i=${p#/proc/}
    [ "$i" = 1 ] || [ "$i" = $$ ] && continue
    case " $found " in *" $i "*) continue;; esac
    { IFS= read -r s < "$p/stat"; } 2>/dev/null || continue
    set -- ${s##*) }
    case " $found " in *" $2 "*|*" $4 "*) found="$found $i"; more=1;; esac
  done
done
for i in $found; do kill -9 "$i" 2>/dev/null; done
n=$((n+1))
done
exit 1
"""
)
OOMS = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | grep '^oom_kill '"


def script(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], size: int = NO_INPUT, *, merged: bool = False
) -> bytes:
    """The first part of the input: what the shell of the pod reads and runs.

    `size` is the length of the input that follows for the command, `NO_INPUT`, or `ALL_INPUT` for whatever comes until
    it is ended. `merged`: standard error goes where standard output goes.
    """
    words = ["env", "--", *(f"{name}={value}" for name, value in env.items()), *argv]
    run = " ".join(map(shlex.quote, words)) + (" 2>&1" if merged else "")
    lines = [f"cd -- {shlex.quote(cwd)} || exit 126"]
    if size == NO_INPUT:
        lines.append(f"exec {run} < /dev/null")
    elif size == ALL_INPUT:
        lines.append(f"exec {run}")
    else:
        # Version 4 cannot end the input: `head` does, at the right place. The code is that of the last of a pipe.
        lines.append(f"head -c {size} | {run}")
        lines.append("exit $?")
    text = "\n".join(lines)
    return os.fsencode(f"{text.count(chr(10)) + 1}\n{text}\n")
