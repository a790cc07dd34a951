"""`anchor`: give each value that points out of the file the folder of the file that said it, and read its text.

The models are frozen, so what changes is copied along its path and everything else is shared.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any, TypeVar

from runner.config.layers import Origins
from runner.config.names import dotted
from runner.config.reference import Location, Reference, SchemaText, Text
from runner.config.section import Section
from runner.diag.diagnostic import Diagnostic, Path, Report
from runner.diag.suggest import nearest

S = TypeVar("S", bound=Section)


def anchor(config: S, origins: Origins, report: Report, broken: set[Path]) -> S:
    """`config` with every reference, path and text anchored. A file that cannot be read is a finding."""
    work = _Anchoring(origins, report, broken)
    anchored: S = work.value(config, ())
    return anchored


class _Anchoring:
    def __init__(self, origins: Origins, report: Report, broken: set[Path]) -> None:
        self.origins = origins
        self.report = report
        self.broken = broken

    def value(self, value: Any, path: Path) -> Any:
        if isinstance(value, Reference | Location):
            return value.anchored(self.origins.folder(path))
        if isinstance(value, Text | SchemaText):
            return self.text(value, path)
        if isinstance(value, Section):
            return self.section(value, path)
        if isinstance(value, dict):
            changed = {key: self.value(inner, (*path, key)) for key, inner in value.items()}
            return value if all(changed[key] is value[key] for key in value) else changed
        if isinstance(value, tuple):
            items = tuple(self.value(inner, (*path, index)) for index, inner in enumerate(value))
            return value if all(one is other for one, other in zip(items, value, strict=True)) else items
        return value

    def section(self, section: Section, path: Path) -> Section:
        update: dict[str, Any] = {}
        for name, info in type(section).model_fields.items():
            old = getattr(section, name)
            new = self.value(old, (*path, info.alias or name))
            if new is not old:
                update[name] = new
        if not update:
            return section
        # A default that was anchored is still a default: only what the file said counts as set.
        said = set(section.model_fields_set)
        copy = section.model_copy(update=update)
        copy.__pydantic_fields_set__.intersection_update(said)
        return copy

    def text(self, value: Text | SchemaText, path: Path) -> Text | SchemaText:
        """The text with its file read; the value as it is, and a finding, when the file cannot be read."""
        if value.file is None:
            return value
        try:
            return value.anchored(self.origins.folder(path))
        except (OSError, ValueError) as error:
            self.unreadable(value.file.anchored(self.origins.folder(path)), (*path, "file"), error)
            self.broken.add(path)
            return value

    def unreadable(self, file: Location, path: Path, error: Exception) -> None:
        place = self.origins.value_place(path)
        name = dotted(path[:-1])
        if isinstance(error, FileNotFoundError):
            self.report.add(Diagnostic("not-found", f"`{name}`: there is no file `{file.text}`", place, _near(file)))
            return
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        elif isinstance(error, OSError):
            is_folder = isinstance(error, IsADirectoryError)
            reason = "it is a folder" if is_folder else (error.strerror or str(error)).lower()
        else:
            reason = f"it is no JSON Schema: {error}"
        self.report.add(Diagnostic("not-readable", f"`{name}`: `{file.text}` cannot be read, {reason}", place))


def _near(file: Location) -> str:
    """The label for a missing file: a near name in its folder, or where it was looked for."""
    folder = file.path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    near = nearest(file.path.name, names)
    if near is not None:
        return f"did you mean `{FilePath(file.text).with_name(near)}`?"
    return f"looked in `{folder.name or folder}`, the folder of the file that says so" if names else "no such folder"
