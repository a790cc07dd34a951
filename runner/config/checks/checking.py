"""`Checking`: what every check is handed. It reports at a path, and stays silent where something is broken already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict, Unpack

from runner.config.config import RolloutConfig
from runner.config.loaded import Loaded
from runner.diag.diagnostic import Diagnostic, Fix, Path, Place, Severity
from runner.diag.suggest import alternatives, nearest


class Extra(TypedDict, total=False):
    """What a finding may have beside code, place, message and label. A related place that is None is left out."""

    severity: Severity
    notes: Iterable[str]
    helps: Iterable[str]
    place: Place | None
    related: Iterable[tuple[Place | None, str]]
    fix: Fix | None


@dataclass
class Checking:
    """One check of one loaded file. `config` is partial: what is broken was left out of it."""

    loaded: Loaded
    config: RolloutConfig

    def report(
        self, code: str, path: Path, message: str, label: str = "", *, key: bool = False, **extra: Unpack[Extra]
    ) -> None:
        """Report at the value of `path`, at its key, or at a place within it; nothing when `path` is broken."""
        path = self.loaded.written(path)
        if self.loaded.is_broken(path):
            return
        origins = self.loaded.origins
        written = origins.key_place(path) if key else origins.value_place(path)
        place = extra.get("place") or written or origins.key_place(path)
        related = tuple((one, text) for one, text in extra.get("related", ()) if one is not None)
        helps, notes = tuple(extra.get("helps", ())), tuple(extra.get("notes", ()))
        severity, fix = extra.get("severity", "error"), extra.get("fix")
        if severity == "error":
            self.loaded.faulty.add(path)
        self.loaded.report.add(Diagnostic(code, message, place, label, helps, notes, related, severity, fix))

    def warn(self, code: str, path: Path, message: str, label: str = "", *, key: bool = False) -> None:
        """Report something that is surely not meant, but harms no result."""
        self.report(code, path, message, label, key=key, severity="warning")

    def unknown(self, code: str, path: Path, noun: str, word: str, known: Iterable[str], *, key: bool = False) -> None:
        """Report a name that is not among `known`, with the near one or the few there are."""
        names = list(known)
        near = nearest(word, names)
        listed = alternatives(names)
        notes = (
            (f"{noun}{'e' * noun.endswith('x')}s: {listed}",)
            if listed
            else (f"the file declares no {noun}",)
            if not names
            else ()
        )
        label = f"did you mean `{near}`?" if near else ""
        place = self.loaded.origins.key_place(self.loaded.written(path)) if key else self.place(path)
        fix = None
        if near is not None and place is not None:
            written = place.source.text[place.start : place.end]
            fix = Fix(place, written.replace(word, near)) if written.strip("\"'").endswith(word) else None
        self.report(code, path, f"no {noun} is called `{word}`", label, key=key, notes=notes, fix=fix)

    def place(self, path: Path) -> Place | None:
        """Where the value of a path of the config was written."""
        return self.loaded.origins.value_place(self.loaded.written(path))

    def is_set(self, path: Path) -> bool:
        """Whether some layer wrote `path`: a default contradicts nobody, and an empty table sets nothing in it."""
        written = self.loaded.written(path)
        found = self.loaded.origins.setting(written)
        return found is not None and (found[0] == written or found[1].value != {})
