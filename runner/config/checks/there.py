"""Files and folders of this machine that a key names are there."""

from __future__ import annotations

from pathlib import Path as FilePath

from runner.config.checks.checking import Checking
from runner.diag.diagnostic import Path
from runner.diag.suggest import nearest


def is_there(check: Checking, where: Path, host: str, verb: str, *, key: bool = True) -> None:
    """Report a path that is not there. `verb` is what would be done with it; `key`: the path is a key of the table."""
    folder = check.loaded.origins.folder(where)
    found = folder / FilePath(host).expanduser()
    if not found.exists():
        names = [entry.name for entry in found.parent.iterdir()] if found.parent.is_dir() else []
        near = nearest(found.name, names)
        label = f"did you mean `{FilePath(host).with_name(near)}`?" if near else "make it, or name another"
        check.report("missing-path", where, f"there is no `{host}` to {verb}", label, key=key)
