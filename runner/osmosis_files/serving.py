"""`[serve]` from a serve file of SDK 0.2."""

from __future__ import annotations

from runner.osmosis_files.imported import Importing

HOST, PORT = "0.0.0.0", 9000  # noqa: S104 - the SDK's default, written out and explained
_LEVELS = {"critical": "error", "trace": "debug"}
_ADVICE = {
    ("debug", "no_validate"): "`serve` checks every file before it listens; `osmosis-run validate` does the same",
    ("debug", "trace_dir"): "an event log for each rollout is a matter of the command line: `osmosis-run serve --log DIR`",
    ("registration", "skip"): "this server registers nowhere",
    ("registration", "api_key"): (
        'a key never stands in the file: put it into a variable, and here `api_key = { env = "NAME" }` in place of '
        "`allow_anonymous`"
    ),
}


def import_serve(work: Importing) -> None:
    """Write `[serve]`. The timeouts of a served rollout come with each request."""
    server, ours = work.file.table("server"), work.page.table("serve")
    host = server.get("host", HOST)
    ours.set("host", host, "" if "host" in server else "the SDK's default: every address of this machine")
    ours.set("port", server.get("port", PORT))
    ours.set("allow_anonymous", True, "as the SDK serves; better: `api_key = { env = \"NAME\" }`")
    level = server.get("log_level")
    if level is not None:
        work.page.table("serve.log").set("level", _LEVELS.get(level, level))
        if level in _LEVELS:
            work.note("serve.log", ("server", "log_level"), f"`{_LEVELS[level]}` comes nearest")
    limits = work.page.table("limits")
    limits.set("turns", 1000, "the SDK has no such limit: lower it to what your agent needs")
    for path, text in _ADVICE.items():
        if path[1] in work.file.table(path[0]):
            _say(work, path, text)


def _say(work: Importing, path: tuple[str, str], text: str) -> None:
    if path[1] != "api_key":
        work.note("serve", path, text)
        return
    # The value is a secret: neither the comment nor the note may repeat it.
    work.say("serve", f"`[registration] api_key`: {text}")
