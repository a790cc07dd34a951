"""`[serve]` from a serve file of SDK 0.2."""

from __future__ import annotations

from runner.config.checks.serve import is_loopback
from runner.osmosis_files.imported import Importing
from runner.osmosis_files.keys import TURNS

HOST, PORT = "0.0.0.0", 9000  # noqa: S104 - the SDK's default, written out and explained
KEY = "OSMOSIS_API_KEY"
_LEVELS = {"critical": "error", "trace": "debug"}
_ADVICE = {
    ("debug", "no_validate"): "`serve` checks every file before it listens; `osmosis-run validate` does the same",
    (
        "debug",
        "trace_dir",
    ): "an event log for each rollout is a matter of the command line: `osmosis-run serve --log DIR`",
    ("registration", "skip"): "this server registers nowhere",
}


def import_serve(work: Importing) -> None:
    """Write `[serve]`. The timeouts of a served rollout come with each request."""
    server, ours = work.file.table("server"), work.page.table("serve")
    host = server.get("host", HOST)
    ours.set("host", host, "" if "host" in server else "the SDK's default: every address of this machine")
    ours.set("port", server.get("port", PORT))
    _access(work, host)
    level = server.get("log_level")
    if level is not None:
        work.page.table("serve.log").set("level", _LEVELS.get(level, level))
        if level in _LEVELS:
            work.note("serve.log", ("server", "log_level"), f"`{_LEVELS[level]}` comes nearest")
    limits = work.page.table("limits")
    limits.set("turns", TURNS, "the SDK has no such limit: lower it to what your agent needs")
    for path, text in _ADVICE.items():
        if path[1] in work.file.table(path[0]):
            work.note("serve", path, text)


def _access(work: Importing, host: str) -> None:
    """A key of theirs stays a key, by the name of a variable; without one the SDK lets everybody in."""
    ours, path = work.page.table("serve"), ("registration", "api_key")
    if str(work.file.get(*path, "")).strip():
        ours.set("api_key", {"env": KEY})
        work.note("serve", path, f"no key stands in the file: put it into the variable `{KEY}`", secret=True)
    elif not is_loopback(host):
        ours.set("allow_anonymous", True, 'as the SDK serves; better: `api_key = { env = "NAME" }` in its place')
