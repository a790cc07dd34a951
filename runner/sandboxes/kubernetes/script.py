"""What is said to the shell of a pod.

The words of a request lie in its address, which servers write to their audit logs and cut at some length. So what a
command is, its variables and where it starts are given by standard input: a fixed text reads so many lines, byte by
byte as shells must, and runs them; what follows belongs to the command.
"""

from __future__ import annotations

import os
import secrets
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

# What carries the mark, what is in a session of such a process, and what those have started: again, until nothing is
# found, since what is being killed may be starting more. Two lists of numbers, in text, as any shell can.
KILL = r"""mark=$1
n=0
while [ $n -lt 25 ]; do
  found= sessions=
  for f in $(grep -ls -- "$mark" /proc/[0-9]*/environ); do f=${f#/proc/}; found="$found ${f%/environ}"; done
  [ -n "$found" ] || exit 0
  more=1
  while [ -n "$more" ]; do
    more=
    for p in /proc/[0-9]*; do
      i=${p#/proc/}
      [ "$i" != 1 ] && [ "$i" != $$ ] && { IFS= read -r s < "$p/stat"; } 2>/dev/null || continue
      set -- ${s##*) }
      known=
      case " $found " in *" $i "*) known=1;; *" $2 "*) known=2;; esac
      case " $sessions " in *" $4 "*) known=${known:-2};; esac
      [ -n "$known" ] || continue
      [ $known = 1 ] || { found="$found $i"; more=1; }
      [ "$4" -gt 1 ] || continue
      case " $sessions " in *" $4 "*) ;; *) sessions="$sessions $4"; more=1;; esac
    done
  done
  for i in $found; do kill -9 "$i" 2>/dev/null; done
  n=$((n+1))
done
exit 1
"""
"""The script that kills all that carries the mark $1. Exit code 0: nothing of it is left."""
OOMS = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | grep '^oom_kill '"


# A server says how a command ended when its streams are closed, and a daemon that it has left holds them open. So the
# streams of a command are pipes of their own, and what is on its way has a second when the command has ended. The shell
# itself says nothing: some tell of every child that a signal has ended.
_BEFORE = """cat < "$_o_p.o" & _o_a=$!
cat < "$_o_p.e" >&2 & _o_b=$!
exec 8> "$_o_p.o" 9> "$_o_p.e" 2> /dev/null
rm -f -- "$_o_p.o" "$_o_p.e\""""
_AFTER = """_o_c=$?
exec 8>&- 9>&-
(sleep 1; kill $_o_a $_o_b) > /dev/null 2>&1 < /dev/null & _o_k=$!
wait $_o_a $_o_b
kill $_o_k
exit $_o_c"""


def script(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], size: int = NO_INPUT, *, merged: bool = False
) -> bytes:
    """The first part of the input: what the shell of the pod reads and runs.

    `size` is the length of the input that follows for the command, `NO_INPUT`, or `ALL_INPUT` for whatever comes until
    it is ended. `merged`: standard error goes where standard output goes.
    """
    # `env` takes any name; the second shell a program whose name holds a `=`, and says so when there is none.
    words = ["env", *(f"{name}={value}" for name, value in env.items()), "/bin/sh", "-c", 'exec "$@"', "sh", *argv]
    run = " ".join(map(shlex.quote, words))
    fed = "" if size in (NO_INPUT, ALL_INPUT) else f"head -c {size} | "
    source = " < /dev/null" if size == NO_INPUT else ""
    text = "\n".join(
        (
            f"cd -- {shlex.quote(cwd)} || exit 126",
            f"_o_p=/tmp/.osmosis-run-{secrets.token_hex(8)}",
            'mkfifo -m 600 "$_o_p.o" "$_o_p.e" 2> /dev/null || {',
            f"{fed}(exec {run}{source}{' 2>&1' if merged else ''})",
            "exit $?",
            "}",
            _BEFORE,
            f"{fed}(exec {run}{source} >&8 {'2>&8' if merged else '2>&9'} 8>&- 9>&-)",
            _AFTER,
        )
    )
    return os.fsencode(f"{text.count(chr(10)) + 1}\n{text}\n")
