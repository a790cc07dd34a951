"""`osmosis-run`: the process of a command, from its first moment to its exit code.

Only what Ctrl-C needs is imported before SIGINT is ours.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

from runner.cli.interrupt import end_interrupted, pressed


def main(arguments: list[str] | None = None) -> None:
    """The console script. Ends the process with an `Exit` code."""
    pressed.listen()
    try:
        code = _play(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # before or after the command itself
        end_interrupted()
    sys.exit(code)


def _play(arguments: list[str]) -> int:
    # A command makes many objects that live to its end (modules, models, rollouts in flight) and few cycles: at the
    # default threshold the collector walks them again and again, a tenth of an eval's time.
    gc.set_threshold(100_000, 20, 50)
    # While the interpreter takes itself down it hands signals back to the system, which would kill a command that has
    # done its work; this runs when all threads have ended.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    _open_streams()
    from runner.cli.table import PROG, cli, flushed, run

    if "_OSMOSIS_RUN_COMPLETE" in os.environ:
        cli(prog_name=PROG)
    return run(arguments) or flushed()


def _open_streams() -> None:
    """A stream that was closed before we began (`>&-`, some daemons) leads nowhere, and no file gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            made = os.open(os.devnull, os.O_RDWR)
            if made != number:
                os.dup2(made, number)
                os.close(made)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


if __name__ == "__main__":
    main()
