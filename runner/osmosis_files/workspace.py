"""Where the files that an Osmosis file names are: `rollouts/NAME/ENTRYPOINT`, and datasets, under a workspace's root.

The SDK knows the root from its own project file; here it is the nearest folder above the file, or above the current
one, that holds the entrypoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.diag.diagnostic import Diagnostic
from runner.diag.suggest import nearest
from runner.osmosis_files.reading import OsmosisFile


@dataclass(frozen=True, slots=True)
class Workspace:
    """The root of a workspace, and the entrypoint of one of its rollouts; both absolute."""

    root: Path
    entrypoint: Path


def find_workspace(file: OsmosisFile, table: str) -> Workspace | None:
    """The workspace whose rollout `table` names, or None with a finding."""
    rollout, entrypoint = file.get(table, "rollout"), file.get(table, "entrypoint")
    if rollout in (".", "..") or "/" in rollout or "\\" in rollout:
        _refuse(file, table, "rollout", f"`{rollout}` is a path; a rollout is a folder's name in `rollouts`")
        return None
    inside = os.path.normpath(entrypoint)
    parts = Path(inside).parts
    if Path(inside).is_absolute() or parts[:1] == ("..",) or not inside.endswith(".py") or ":" in inside:
        _refuse(file, table, "entrypoint", f"`{entrypoint}` is no Python file inside `rollouts/{rollout}`")
        return None
    for root in _roots(file.path):
        if (root / "rollouts" / rollout / inside).is_file():
            return Workspace(root, root / "rollouts" / rollout / inside)
    _missing(file, table, rollout, inside)
    return None


def find_dataset(file: OsmosisFile, text: str, root: Path) -> list[Path]:
    """The files that `text` may mean: under the workspace's root, beside the file, in the current folder."""
    folders = (root, file.path.resolve().parent, Path.cwd())
    found = {(folder / text).resolve(): folder / text for folder in reversed(folders) if (folder / text).is_file()}
    return list(reversed(found.values()))


def relative(path: Path, folder: Path) -> str:
    """`path` as a file in `folder` names it: `./x` or `../x`."""
    text = Path(os.path.relpath(path, folder)).as_posix()
    return text if text.startswith("../") else f"./{text}"


def _roots(file: Path) -> Iterator[Path]:
    yield from file.resolve().parents
    yield from (Path.cwd(), *Path.cwd().parents)


def _missing(file: OsmosisFile, table: str, rollout: str, entrypoint: str) -> None:
    rollouts = next((root / "rollouts" for root in _roots(file.path) if (root / "rollouts").is_dir()), None)
    if rollouts is None:
        helps = ("run the command in the workspace: the folder that holds `rollouts`",)
        message = f"there is no `rollouts/{rollout}/{entrypoint}` above the file or the current folder"
        place = file.place(table, "entrypoint")
        file.report.add(Diagnostic("not-found", message, place, "the code is needed to name its classes", helps))
        return
    names = sorted(each.name for each in rollouts.iterdir() if each.is_dir())
    if rollout not in names:
        near = nearest(rollout, names)
        label = f"did you mean `{near}`?" if near else f"it holds: {', '.join(names[:12]) or 'nothing'}"
        place = file.place(table, "rollout")
        file.report.add(Diagnostic("not-found", f"`{rollouts}` holds no rollout `{rollout}`", place, label))
        return
    files = sorted(each.name for each in (rollouts / rollout).glob("*.py"))
    near = nearest(entrypoint, files)
    label = f"did you mean `{near}`?" if near else f"it holds: {', '.join(files[:12]) or 'no Python file'}"
    place = file.place(table, "entrypoint")
    file.report.add(Diagnostic("not-found", f"`{rollouts / rollout}` holds no `{entrypoint}`", place, label))


def _refuse(file: OsmosisFile, table: str, key: str, message: str) -> None:
    file.report.add(Diagnostic("bad-value", message, file.place(table, key), "name it inside `rollouts`"))
