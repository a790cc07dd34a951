"""`osmosis-run serve`: a workflow file as a rollout server that controllers of any generation drive.

stdout is data: one line of JSON with the server's `url` and `pid`, written when it answers. All else is stderr's.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Console, console
from runner.cli.exit import CommandError, Exit
from runner.cli.listening import cannot_listen
from runner.cli.module import refuse_both
from runner.cli.open_files import allow_open_files
from runner.cli.options import DEFAULT, file_argument, locate, profile_option, set_option
from runner.cli.serve_module import (
    hosted,
    make_key,
    refuse,
    say_ignored,
    serve_hosted,
    serve_options,
    serve_settings,
    served_module,
)
from runner.cli.workers import draining_text, supervise, unfinished_text

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.config.serve import ServeSection
    from runner.serve.engine import Drained
    from runner.serve.house import House, Opening
    from runner.serve.workers.crew import Crew
    from runner.serve.workers.membership import Membership
    from runner.store.lock import RunLock

RELOADED = "_OSMOSIS_RUN_RELOADED"
"""Set for a server that `--reload` has started again: it says so in a line."""
_CONTROLLERS = 2048
"""Connections of controllers, and to them, beside the one to a chat endpoint that each rollout may hold."""


@click.command("serve")
@file_argument
@click.option("-H", "--host", metavar="ADDRESS", help="Where to listen: `[serve] host`. With -m: every address.")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="`[serve] port`. 0 takes a free one.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes behind the port.")
@click.option("--reload", is_flag=True, help="Start again when the file or code beside it changes. For development.")
@click.option("--log", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write the events of each rollout to a file of its own in DIR.")  # fmt: skip
@serve_options
@profile_option
@set_option
def command(workflow: Path, reload: bool, log: Path | None, **asked: Any) -> int:
    """Serve the workflow of FILE, or with -m an agent without a file, to controllers until SIGTERM or Ctrl-C.

    The first signal drains: nothing new is accepted, and what plays may end within `[serve] drain`. The second ends
    the process at once; what was accepted goes on after the next start. Exit codes: 0 all ended, 3 some did not,
    130 ended at once.
    """
    shell = console()
    refuse_both(asked["module"], workflow)
    refuse(asked)
    app = None if reload else hosted(asked["module"])
    if app is not None:
        say_ignored(asked, shell)
        return serve_hosted(app, asked, log, shell)
    made = make_key(asked)
    if reload:
        from runner.cli.reload import reloading

        if made is not None:
            shell.say(f"key: {made}")
        return reloading(shell, Path.cwd() / DEFAULT if asked["module"] is not None else locate(workflow))
    from runner.serve.workers.membership import joined
    from runner.store.state_lock import lock_state

    member = joined()
    if member is not None:
        member.follow()
    else:
        say_ignored(asked, shell)
    plan = _plan(workflow, asked)
    opening = _opening(plan, log)
    if member is not None:
        return _work(plan, opening, member)
    section = plan.config.serve
    sockets = _sockets(section)
    if warning := allow_open_files(section.max_concurrent + _CONTROLLERS):
        shell.warn(warning)
    with lock_state(section.state.path) as lock:
        code, (cut, left) = _serve(plan, opening, (sockets, lock), shell, made)
    if text := unfinished_text(cut, left):
        shell.err(text)
    return code


def _plan(workflow: Path, asked: dict[str, Any]) -> Plan:
    """The plan, with what only a server needs checked, too. Raises `ConfigError`."""
    from runner.build.plan import build
    from runner.config.check import check
    from runner.config.layers import Override
    from runner.config.load import inspect_file
    from runner.diag.diagnostic import ConfigError

    settings, profile = serve_settings(asked), asked["profile"]
    if asked["module"] is not None:
        return build(served_module(asked, settings).load(serving=True))
    overrides = [*map(Override.from_set, asked["overrides"]), *settings]
    loaded = inspect_file(locate(workflow), overrides=overrides, profile=profile)
    check(loaded, serving=True)
    if loaded.report.errors or loaded.config is None:
        raise ConfigError(loaded.report)
    return build(loaded.config)


def _sockets(section: ServeSection) -> list[socket.socket]:
    from runner.serve.http.server import BACKLOG, listen

    try:
        return listen(section.host, section.port, section.hypercorn.get("backlog", BACKLOG))
    except OSError as error:
        raise cannot_listen(error, section.host, section.port) from None


def _opening(plan: Plan, log: Path | None) -> Opening:
    """What the environment adds to the file, whose [env] is in it by now. Raises `CommandError` for a useless key."""
    from runner import __version__
    from runner.serve.house import Opening
    from runner.serve.http.access import Access

    config, key = plan.config, None
    if config.serve.api_key is not None:
        name = config.serve.api_key.env
        key = os.environ.get(name, "")
        try:
            Access(key)
        except ValueError as error:
            raise CommandError(f"`{name}` holds no key that a controller could present: {error}") from None
    required = (os.environ.get(name, "") for name in config.secrets.required)
    return Opening(key, log, tuple(value for value in (key, *required) if value), __version__)


def _serve(
    plan: Plan, opening: Opening, held: tuple[list[socket.socket], RunLock], shell: Console, made: str | None
) -> tuple[int, tuple[int, int]]:
    """Serve until a signal, with one process or several.

    The exit code, how many rollouts were cut short, and how many of these have no verdict. `made` is a key that nobody
    gave: stdout is the only place that tells it.
    """
    from runner.config.hypercorn import hypercorn_settings
    from runner.serve.http.server import url_of

    section, hypercorn = plan.config.serve, hypercorn_settings(plan.config)
    url = url_of(held[0][0], hypercorn)

    def ready(recovered: int, owed: int) -> None:
        told = {"url": url, "pid": os.getpid()}
        shell.print_json(told if made is None else {**told, "api_key": made}, indent=None)
        shell.flush()
        _tell(shell, plan, (recovered, owed), url, made)

    if section.workers > 1:
        return supervise(section, hypercorn, held, ready, shell)

    def draining(house: House) -> None:
        load = house.engine.load()
        shell.say(draining_text(load.running, load.queued, section.drain))

    drained = _run(plan, opening, held[0], lambda house: ready(house.recovered, house.owed), draining)
    return (Exit.INCOMPLETE if drained.any else Exit.OK), (drained.cut, drained.left)


def _work(plan: Plan, opening: Opening, member: Membership) -> int:
    """Serve as one worker of several: the supervisor speaks."""
    from runner.serve.workers.crew import Crew
    from runner.telemetry.log_context import bind

    section = plan.config.serve
    crew = Crew(member, section.max_concurrent, section.max_queue)

    def ready(house: House) -> None:
        member.tell(recovered=house.recovered, owed=house.owed)

    bind(worker=str(member.worker))  # each line of the log says whose it is
    drained = _run(plan, opening, member.listening(), ready, lambda house: None, crew)
    member.tell(cut=drained.cut, left=drained.left)
    return Exit.INCOMPLETE if drained.any else Exit.OK


def _run(
    plan: Plan,
    opening: Opening,
    sockets: Sequence[socket.socket],
    ready: Callable[[House], None],
    draining: Callable[[House], None],
    crew: Crew | None = None,
) -> Drained:
    """Serve in this process until a signal. What was cut short."""
    from contextlib import asynccontextmanager

    from runner.cli.event_loop import run_async
    from runner.config.hypercorn import hypercorn_settings
    from runner.serve.house import open_house
    from runner.serve.http.loop import loop_factory
    from runner.serve.http.server import CannotServe, Serving, run_worker
    from runner.telemetry.logs import configure

    opened: list[House] = []

    @asynccontextmanager
    async def house(worker: int) -> Any:
        async with open_house(plan, opening, crew) as found:
            opened.append(found)
            yield found

    hypercorn, format = hypercorn_settings(plan.config), plan.config.serve.log
    if crew is not None:
        hypercorn.pop("pid_path", None)  # it names the supervisor
    logs = configure(format.level, format.format, format.timestamp, format.caller, secrets=opening.secrets)
    try:
        serving = Serving(plan.config.serve.drain, hypercorn, lambda: ready(opened[0]), lambda: draining(opened[0]))
        run_async(run_worker(house, sockets, serving), loop_factory())
        return opened[0].drained
    except CannotServe as error:
        raise CommandError(str(error), error.hint) from None
    finally:
        logs.close()


def _tell(shell: Console, plan: Plan, found: tuple[int, int], url: str, made: str | None) -> None:
    """What a person who has just started it wants to know."""
    section = plan.config.serve
    key = f"what `{section.api_key.env}` holds, as a bearer" if section.api_key is not None else "none asked for"
    if made is not None:
        key = "`api_key` of the line on stdout, made for this server, as a bearer"
    if os.environ.pop(RELOADED, None):
        again = f"; recovered {counted(found[0], 'rollout')}" if found[0] else ""
        shell.say(f"reloaded: {shell.talk.bold(plan.name)} is served at {shell.talk.name(url)} again{again}")
        return
    state = os.path.relpath(section.state.path)
    dialects = "agent-loop, multi-sample, single-sample" if section.dialect == "auto" else section.dialect
    shell.say(f"{shell.talk.bold(plan.name)} is served at {shell.talk.name(url)}, until Ctrl-C")
    if section.host in ("0.0.0.0", "::"):  # noqa: S104  asked, not chosen
        shell.say(f"  reachable  at every address of this machine, port {url.rsplit(':', 1)[-1]}")
    shell.say(f"  dialects   {dialects}")
    shell.say(f"  key        {key}")
    shell.say(f"  at once    {section.max_concurrent}, and {section.max_queue} may wait")
    shell.say(f"  state      {state if not state.startswith('..') else section.state.path}")
    if section.workers > 1:
        shell.say(f"  workers    {section.workers}")
    if any(found):
        rollouts, callbacks = counted(found[0], "rollout"), counted(found[1], "callback")
        shell.say(f"  recovered  {rollouts}, {callbacks} still owed")
    shell.say(f"\ntry: curl {url}/health")


def counted(count: int, noun: str) -> str:
    """\"1 rollout\", \"2 rollouts\"."""
    return f"{count} {noun}{'s' * (count != 1)}"
