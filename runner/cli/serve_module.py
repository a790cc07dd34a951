"""`serve -m MODULE:NAME`: who is served, where, and with which key, as the first generation's command line had it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner.cli.console import Console
from runner.cli.exit import CommandError, Exit
from runner.cli.module import SERVE_KEY, Module, agent_text, module_option

if TYPE_CHECKING:
    from runner.config.layers import Override
    from runner.sdk.hosted_app import HostedApp

F = TypeVar("F", bound=Callable[..., Any])

KEY_PREFIX = "osm_rollout_"
EVERYWHERE, HERE = "0.0.0.0", "127.0.0.1"  # noqa: S104  the first generation's default; without a key it is this machine
_LEVELS = {"trace": "debug", "critical": "error"}


def serve_options(command: F) -> F:
    """What that command line had and ours has not: parameters `module`, `api_key`, `local`, `log_level` and others."""
    options = [
        module_option,
        click.option("--api-key", metavar="KEY",
                     help="What controllers must present. Others on this machine may see it; a variable is safer."),
        click.option("--local", "--local-debug", "local", is_flag=True,
                     help="With -m: ask for no key. Then only this machine is served, unless --host says otherwise."),
        click.option("--log-level", metavar="LEVEL", type=click.Choice(
            ["critical", "error", "warning", "info", "debug", "trace"], case_sensitive=False),
                     help="`[serve.log] level`."),
        click.option("--no-validate", is_flag=True, help="Changes nothing: an agent is always checked."),
        click.option("--skip-register", is_flag=True, help="Changes nothing: this server registers nowhere."),
    ]  # fmt: skip
    made: Any = command
    for option in reversed(options):
        made = option(made)
    wrapped: F = made
    return wrapped


def serve_settings(asked: Mapping[str, Any]) -> list[Override]:
    """The options that stand for keys of `[serve]`. A key goes into a variable and nowhere else."""
    from runner.config.layers import Override

    level = asked["log_level"]
    found = [(key, asked[key], f"--{key} {asked[key]}") for key in ("host", "port", "workers")]
    found.append(("log.level", None if level is None else _LEVELS.get(level.lower(), level.lower()),
                  f"--log-level {level}"))  # fmt: skip
    if asked["api_key"] is not None:
        os.environ[SERVE_KEY] = asked["api_key"]
        found.append(("api_key", {"env": SERVE_KEY}, "--api-key …"))
    elif asked["local"] and asked["host"] not in (None, HERE, "localhost", "::1"):
        found.append(("allow_anonymous", True, "--local"))
    return [Override.from_option(f"serve.{key}", value, shown) for key, value, shown in found if value is not None]


def served_module(asked: Mapping[str, Any], settings: list[Override]) -> Module:
    """The agent to serve, with the defaults of that command line."""
    defaults: dict[str, Any] = {"serve.host": HERE if asked["local"] else EVERYWHERE}
    if not asked["local"] and asked["api_key"] is None:
        defaults["serve.api_key"] = {"env": SERVE_KEY}
    return Module(asked["module"], asked["profile"], asked["overrides"], defaults, tuple(settings))


def refuse(asked: Mapping[str, Any]) -> None:
    """Options that contradict one another. Raises `CommandError`."""
    if asked["local"] and asked["api_key"] is not None:
        raise CommandError("`--local` asks for no key, and `--api-key` for one", "leave one out")
    if asked["local"] and asked["module"] is None:
        raise CommandError("`--local` is for `-m`: a file says by `[serve] api_key` whether it asks for a key",
                           "leave `api_key` out of it; without one, this machine alone is served")  # fmt: skip


def hosted(module: str | None) -> HostedApp | None:
    """The application that `-m` names, or that of a backend; None where it names an agent, or leads nowhere."""
    if module is None or ":" not in agent_text(module):
        return None
    from runner.build.importing import Importer, ReferenceProblem

    try:
        found = Importer().find(agent_text(module), Path.cwd()).value
    except ReferenceProblem:  # building it says why, and where
        return None
    if "runner.sdk.hosted_app" not in sys.modules:  # then nothing of the kind was made
        return None
    from runner.sdk.execution import ExecutionBackend
    from runner.sdk.hosted_app import HostedApp
    from runner.sdk.rollout_server import create_rollout_server

    if isinstance(found, ExecutionBackend):
        return create_rollout_server(backend=found, configure_logging=False)
    return found if isinstance(found, HostedApp) else None


def serve_hosted(app: HostedApp, asked: Mapping[str, Any], log: Path | None, shell: Console) -> int:
    """Serve an application that the user's code made: what it plays and how is said there. Raises `CommandError`."""
    from runner.sdk.serve_agent_loop import serve_app
    from runner.workflows.loop.errors import ServeError

    for flag in ("workers", "profile", "overrides"):
        if asked[flag]:
            name = "set" if flag == "overrides" else flag
            raise CommandError(
                f"`--{name}` cannot reach `{asked['module']}`, an application that your code has made",
                "name its agent with `-m`, or say it where the application is made",
            )
    if asked["api_key"] is not None or log is not None:
        key, events = asked["api_key"] or app.hosting.key, log or app.hosting.events
        app.hosting = replace(app.hosting, key=key, events=events)

    def ready(url: str) -> None:
        shell.print_json({"url": url, "pid": os.getpid()}, indent=None)
        shell.flush()
        shell.say(f"{shell.talk.bold(app.title)} is served at {shell.talk.name(url)}, until Ctrl-C")

    level = asked["log_level"] or "info"
    port = 9000 if asked["port"] is None else asked["port"]
    try:
        left = serve_app(app, (asked["host"] or HERE, port), _LEVELS.get(level, level), ready)
    except ServeError as error:
        raise CommandError(str(error), "choose another with `--host` and `--port`") from None
    return int(Exit.INCOMPLETE if left else Exit.OK)


def make_key(asked: Mapping[str, Any]) -> str | None:
    """The key that was made because nobody gave one; the process's variable holds it from now on."""
    if asked["module"] is None or asked["local"] or asked["api_key"] is not None or os.environ.get(SERVE_KEY):
        return None
    key = os.environ[SERVE_KEY] = KEY_PREFIX + secrets.token_urlsafe(32)
    return key


def say_ignored(asked: Mapping[str, Any], shell: Console) -> None:
    """What is accepted for the sake of old scripts and changes nothing."""
    if asked["no_validate"]:
        shell.warn("--no-validate changes nothing: an agent is always checked before the server listens")
    if asked["skip_register"]:
        shell.say("--skip-register: this server registers nowhere")
