"""`serve` with several workers: the command that supervises them, and speaks for all."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.cli.console import Console
from runner.cli.exit import CommandError

if TYPE_CHECKING:
    from runner.config.serve import ServeSection
    from runner.store.lock import RunLock


def supervise(
    section: ServeSection,
    hypercorn: Mapping[str, Any],
    held: tuple[Sequence[socket.socket], RunLock],
    ready: Callable[[int, int], None],
    shell: Console,
) -> tuple[int, tuple[int, int]]:
    """Run this command's workers on sockets and lock that are `held`, until a signal.

    The worst of their exit codes, how many rollouts they cut short, and how many of these have no verdict. Raises
    `CommandError`, `StoreError`.
    """
    import asyncio

    from runner.cli.event_loop import run_async
    from runner.serve.http.server import CannotServe, hypercorn_config, pid_file
    from runner.serve.workers.supervisor import Crowd, Supervisor

    sockets, lock = held
    try:
        hypercorn_config(hypercorn, [])  # said once, not by each of them
    except CannotServe as error:
        raise CommandError(str(error), error.hint) from None

    def draining(running: int, queued: int) -> None:
        shell.say(draining_text(running, queued, section.drain))

    command = [sys.executable, "-m", "runner.cli.main", *sys.argv[1:]]
    descriptors = [each.fileno() for each in sockets]
    crowd = Crowd(command, section.workers, descriptors, lock.fileno(), ready, draining, shell.warn)

    async def run() -> tuple[int, tuple[int, int]]:
        await _adopt(section)
        return await Supervisor(crowd).run()

    with pid_file(hypercorn.get("pid_path")):
        return run_async(run(), asyncio.new_event_loop)


def unfinished_text(cut: int, left: int) -> str:
    """What is said of `cut` rollouts that a drain cut short, `left` of which have no verdict; "" if there are none."""
    told, whole = max(0, cut - left), max(cut, left)
    reported = "it is reported as failed" if told == 1 == whole else "they are reported as failed"
    goes_on = "it goes on after the next start" if left == 1 == whole else "they go on after the next start"
    if told and left:
        reported = f"{told} {'is' if told == 1 else 'are'} reported as failed"
        goes_on = f"{left} {'is left and goes' if left == 1 else 'are left and go'} on after the next start"
    what = ", ".join(text for text, count in ((reported, told), (goes_on, left)) if count)
    return f"{whole} rollout{'s' * (whole != 1)} could not be finished; {what}" if whole else ""


def draining_text(running: int, queued: int, seconds: float) -> str:
    """What is said at the first signal."""
    if not running and not queued:
        return "stopping: no rollout plays or waits"
    play = "1 rollout plays" if running == 1 else f"{running} rollouts play"
    wait = "1 waits" if queued == 1 else f"{queued} wait"
    return f"draining: {play}, {wait}; they have {seconds:g} s; a second signal ends at once"


async def _adopt(section: ServeSection) -> None:
    """What was left by a server of more workers is shared out before any of them looks."""
    from runner.store.outbox import Outbox

    outbox = Outbox.open(section.state.path)
    try:
        await outbox.adopt(section.workers)
    finally:
        await outbox.aclose()
