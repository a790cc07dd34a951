"""`Site`: where the builders stand. It knows the config, and turns what a part says into a finding with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.build.importing import Found, Importer, ReferenceProblem
from runner.config.config import RolloutConfig
from runner.config.reference import Reference
from runner.diag.diagnostic import Diagnostic, Place, Report
from runner.diag.diagnostic import Path as KeyPath
from runner.diag.inside import inside_string

if TYPE_CHECKING:
    from runner.build.discovery import Discovered
    from runner.config.layers import Origins
    from runner.config.loaded import Loaded


class Needed(NamedTuple):
    """A column (or a path inside one), where the file asks for it, and what to do if a row may lack it."""

    path: tuple[str, ...]
    place: Place | None
    cure: str = ""


@dataclass
class Site:
    """A config being built: findings go to `report`, user files that matter for a re-run to `code`.

    With `imports=False` no user code is imported; whatever needs it is skipped.
    """

    config: RolloutConfig
    report: Report
    imports: bool = True
    code: dict[str, Path] = field(default_factory=dict)
    """By dotted key, the file of user code that the key names."""
    columns: list[Needed] = field(default_factory=list)
    """Columns of a row that some template or tool cannot do without."""
    labelled: list[str] = field(default_factory=list)
    """Graders that compare with the label."""
    loaded: Loaded | None = None
    """What the checks of the file know already, for a config that is partial."""
    found: Discovered | None = None
    """What the entrypoint holds, where the agent is one."""
    notes: list[str] = field(default_factory=list)
    """What was decided that the file does not say."""
    _importer: Importer = field(default_factory=Importer)

    @property
    def origins(self) -> Origins:
        return self.config.origins

    def add(
        self,
        code: str,
        message: str,
        path: KeyPath,
        *,
        at_key: bool = False,
        inside: tuple[int, int] | None = None,
        label: str = "",
        helps: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        related: tuple[tuple[Place | None, str], ...] = (),
    ) -> None:
        """A finding at the value (or key) of `path`; `inside` narrows it to (offset, length) of the string there.

        Silent where a check of the file has found an error already.
        """
        if self.loaded is not None and self.loaded.is_faulty(self._written(path)):
            return
        place = self.place(path, at_key=at_key, inside=inside)
        others = tuple((where, text) for where, text in related if where is not None)
        self.report.add(
            Diagnostic(code, message, place, label, helps, tuple(note for note in notes if note), related=others)
        )

    def place(self, path: KeyPath, *, at_key: bool = False, inside: tuple[int, int] | None = None) -> Place | None:
        """The place of a path, or of the nearest table around it that somebody wrote."""
        path = self._written(path)
        while path:
            place = self.origins.key_place(path) if at_key else self.origins.value_place(path)
            if place is not None:
                return inside_string(place, *inside) if inside is not None and not at_key else place
            path, at_key = path[:-1], True
        return None

    def _written(self, path: KeyPath) -> KeyPath:
        return path if self.loaded is None else self.loaded.written(path)

    def find(self, reference: Reference, path: KeyPath, known: Callable[[str], Any] | None = None) -> Found | None:
        """The object of a reference, or None: then a finding says why, or imports are off.

        `known` gives what the module has registered by a name, None where it has not.
        """
        if not self.imports:
            return None
        try:
            found = self._importer.find(reference.text, reference.folder, known)
        except ReferenceProblem as problem:
            self._refuse(problem, path)
            return None
        if found.file is not None:
            self.code[".".join(map(str, path))] = found.file
        return found

    def module(self, reference: Reference, path: KeyPath) -> ModuleType | None:
        """The module of a reference without a name, or None as in `find`."""
        if not self.imports:
            return None
        try:
            module = self._importer.module(reference.text, reference.folder)
        except ReferenceProblem as problem:
            self._refuse(problem, path)
            return None
        file = getattr(module, "__file__", None)
        if file:
            self.code[".".join(map(str, path))] = Path(file)
        return module

    def _refuse(self, problem: ReferenceProblem, path: KeyPath) -> None:
        inside, notes = (problem.start, problem.length), (problem.note,)
        self.add(problem.code, problem.message, path, inside=inside, label=problem.label, notes=notes)

    @contextmanager
    def building(self, code: str, path: KeyPath, *kinds: type[Exception]) -> Iterator[None]:
        """Turn an exception of the given kinds inside into a finding at `path`."""
        try:
            yield
        except kinds as error:
            self.add(code, str(error), path)


def shown(value: Any) -> str:
    """A short form of a value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
