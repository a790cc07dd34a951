"""Where user code is found, and that it is read as it stands.

It is found last: the project's folder is appended to `sys.path`, never put first, so that a user's file cannot shadow a
library (and ours, which is called `runner`, cannot be shadowed by theirs).

Python takes a compiled file for the current one while the second and the size of its source are those it was compiled
from: of two saves within a second the later one may go unseen. What a run records is the digest of the file; the code
that played must be that file's.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from sysconfig import get_paths
from typing import Any

_PYTHONS = tuple({get_paths()[name] for name in ("stdlib", "platstdlib")})
_reached: set[Path] = set()


class AsItStands(SourceFileLoader):
    """Compiles a source each time; neither reads nor writes what was compiled before."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Raises OSError, by which the import system knows that there is nothing to compare (`SourceLoader`)."""
        raise OSError(f"{path} is compiled as it stands")


def reach(folder: Path) -> None:
    """Make the modules of `folder`, and of packages in it, importable: after all others, and as they stand."""
    text = str(folder)
    if folder not in _reached:
        _reached.add(folder)
        sys.path_importer_cache.pop(text, None)
        if _finder not in sys.path_hooks:
            sys.path_hooks.insert(0, _finder)
    if text not in sys.path:
        sys.path.append(text)


def is_users(file: Path) -> bool:
    """Whether a file, or a folder of modules, belongs to a user's project, not to a library or to Python."""
    return not any(part in ("site-packages", "dist-packages") for part in file.parts) and not any(
        file.is_relative_to(folder) for folder in _PYTHONS
    )


def _finder(text: str) -> FileFinder:
    folder = Path(text)
    if _reached.isdisjoint((folder, *folder.parents)) or not is_users(folder):
        raise ImportError(f"{text} is somebody else's", path=text)
    return FileFinder(
        text,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (AsItStands, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
