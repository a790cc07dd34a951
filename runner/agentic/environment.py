"""The variables of the environment that the third seed names, each read when it is needed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping

LOG_LEVEL = "AGENTIC_LOG_LEVEL"
SAVE = "AGENTIC_SAVE_TRAJECTORIES"
FOLDER = "./trajectories"
"""Where trajectories are saved when nobody says where."""

_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def save_folder(wanted: bool | None, path: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The folder to save trajectories in; None: they are not saved. Without a word, the environment says.

    Raises ValueError for a variable that says neither yes nor no.
    """
    if wanted is None:
        said = environ.get(SAVE, "").strip().lower()
        if said not in _YES + _NO:
            raise ValueError(f"{SAVE} is {said!r}: say true or false")
        wanted = said in _YES
    return (path or FOLDER) if wanted else None


def set_log_level(environ: Mapping[str, str] = os.environ) -> None:
    """Let the log of `runner.agentic` say what AGENTIC_LOG_LEVEL asks for, on stderr where nobody else shows logs.

    Raises ValueError for a level that is none.
    """
    said = environ.get(LOG_LEVEL, "").strip().upper()
    if not said:
        return
    level = logging.getLevelNamesMapping().get(said)
    if level is None:
        raise ValueError(f"{LOG_LEVEL} is {said!r}: say DEBUG, INFO, WARNING or ERROR")
    log = logging.getLogger("runner.agentic")
    log.setLevel(level)
    if not log.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        log.addHandler(handler)
