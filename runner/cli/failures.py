"""What a user is told when a command raised: one clear sentence, a hint, the right exit code.

Everything a user can mend has its sentence here; anything else is our bug, says so, and leaves its traceback in a file.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import click

from runner.cli.console import Console
from runner.cli.exit import CommandError, Exit

if TYPE_CHECKING:
    from runner.diag.diagnostic import ConfigError, Report
    from runner.records.failure import RolloutError

_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your disk quota is used up",
    errno.EFBIG: "a file may not grow any more (see `ulimit -f`)",
}


def tell(error: BaseException, console: Console) -> Exit:
    """Print what `error` means on stderr and return the exit code."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, click.ClickException):
        return _usage(error, console)
    from runner.diag.diagnostic import ConfigError

    if isinstance(error, ConfigError):
        return _report(error, console)
    if isinstance(error, KeyboardInterrupt):
        console.err("interrupted")
        return Exit.INTERRUPTED
    known = _known(error)
    if known is None:
        return _bug(error, console)
    console.fail(known.message, known.hint)
    return known.code


def _usage(error: click.ClickException, console: Console) -> Exit:
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option `{error.option_name}`"
        if error.possibilities:
            message += "; did you mean " + " or ".join(f"`{near}`" for near in error.possibilities[:2]) + "?"
    else:
        message = message[:1].lower() + message[1:].rstrip(".")
    context = getattr(error, "ctx", None)
    hint = f"`{context.command_path if context else 'osmosis-run'} --help` lists what there is"
    console.fail(message, hint)
    return Exit.USAGE


def _report(error: ConfigError, console: Console) -> Exit:
    from runner.diag.render import render

    console.err(render(error.report, color=console.talk.enabled).rstrip("\n"))
    console.err(f"\n{console.talk.name('hint')}: {advice(error.report)}")
    return Exit.USAGE


def advice(report: Report) -> str:
    """What to do about a report's findings: the commands that repair and explain them."""
    repairs = sum(finding.fix is not None for finding in report)
    first = min(report, key=lambda finding: finding.severity != "error").code  # the first of the errors, if there are
    explain = f"`osmosis-run validate --explain {first}` says more"
    return f"`osmosis-run validate --fix` can repair {repairs}; {explain}" if repairs else explain


def _known(error: BaseException) -> CommandError | None:
    from runner.datasets.dataset import DatasetError
    from runner.records.failure import RolloutError

    if isinstance(error, CommandError):
        return error
    if isinstance(error, DatasetError):
        checks = "`osmosis-run validate --dataset FILE` checks every row before a run"
        return CommandError(str(error), error.hint or checks)
    if isinstance(error, RolloutError):
        return _rollout_error(error)
    if isinstance(error, UnicodeDecodeError):
        return CommandError(f"a file is not UTF-8 text: {error.reason} at byte {error.start}", "save it as UTF-8")
    if isinstance(error, OSError):
        return _known_os_error(error)
    return _store_error(error)


_CURES = {
    "mcp_unavailable": "what a server offers is known only when it is connected; `osmosis-run validate` connects none",
    "unknown_tool": "`osmosis-run explain mcp` says how tools are chosen",
}
"""What to do about a failure of the configuration that shows only when something runs, by its kind."""


def _rollout_error(error: RolloutError) -> CommandError:
    where = f" ({error.where})" if error.where else ""
    if error.boundary == "config":
        return CommandError(f"{error}{where}", _CURES.get(error.kind, "`osmosis-run validate` checks the file"))
    return CommandError(f"{error.boundary}: {error}{where}", code=Exit.INCOMPLETE)


def _store_error(error: BaseException) -> CommandError | None:
    from runner.store.errors import NoRoom, StoreError

    if isinstance(error, StoreError):
        hint = error.hint or "a run is a folder such as `runs/NAME`; `ls runs` lists them"
        return CommandError(str(error), hint, Exit.INCOMPLETE if isinstance(error, NoRoom) else Exit.USAGE)
    return None


def _known_os_error(error: OSError) -> CommandError | None:
    """The ones that users meet; another OSError is ours to explain, so it is told as a bug."""
    name = f" `{_shown(error.filename)}`" if error.filename else ""
    if error.errno in _FULL:
        return CommandError(
            f"{_FULL[error.errno]}, could not write{name or ' the output'}",
            "free some space and run the same command again: finished rollouts are kept",
            Exit.INCOMPLETE,
        )
    if isinstance(error, FileNotFoundError):
        return CommandError(f"there is no file{name}" if name else f"a file is missing: {error}")
    if isinstance(error, IsADirectoryError):
        return CommandError(f"{name.strip() or 'the path'} is a folder, a file was expected")
    if isinstance(error, NotADirectoryError):
        return CommandError(f"{name.strip() or 'the path'} goes through something that is no folder")
    if isinstance(error, PermissionError):
        return CommandError(f"no permission for{name or ' that file or port'}", "check who owns it and its mode")
    if error.errno == errno.EADDRINUSE:
        return CommandError(
            "the port is in use by another process", "choose another with `--port`, or `--port 0` for any free one"
        )
    if error.errno == errno.EMFILE:
        return CommandError("too many open files", "raise the limit with `ulimit -n 65536`", Exit.INCOMPLETE)
    if error.errno == errno.EROFS:
        return CommandError(f"the file system is read-only, could not write{name}")
    if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EIO) and name:
        return CommandError(f"{(error.strerror or 'it cannot be used').lower()}:{name}", "check the path")
    return None


def _shown(filename: object) -> str:
    text = os.fsdecode(filename) if isinstance(filename, str | bytes | os.PathLike) else str(filename)
    return text if len(text) <= 500 else f"{text[:200]}…{text[-100:]}"


def _bug(error: BaseException, console: Console) -> Exit:
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    if os.environ.get("OSMOSIS_RUN_DEBUG") == "1":
        console.err(text)
    summary = str(error).split("\n", 1)[0][:300]
    message = f"this is a bug in osmosis-run: {type(error).__name__}: {summary}"
    try:
        handle, path = tempfile.mkstemp(prefix="osmosis-run-bug-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        hint = f"the traceback is in {path}; please report it with the command you ran"
    except OSError:
        hint = "set OSMOSIS_RUN_DEBUG=1 to see the traceback; please report it with the command you ran"
    console.fail(message, hint)
    return Exit.INCOMPLETE
