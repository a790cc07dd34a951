"""`"package.module:name"` or `"./file.py:name"` to an object, or the reason why not."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from runner.build.alias import osmosis_alias
from runner.build.sources import AsItStands, reach
from runner.diag.suggest import nearest
from runner.records.quick import quick


def from_here(path: Path) -> str:
    """`path` as a person in the current folder would write it; in full when it lies elsewhere."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@quick
class Found:
    """What a reference named: the object, the file of its module if it has one, and what the import cost."""

    value: Any
    file: Path | None
    seconds: float


class ReferenceProblem(Exception):
    """A reference that leads nowhere. `start` and `length` mark the guilty part of its text."""

    def __init__(self, code: str, message: str, *, start: int, length: int, label: str = "", note: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.start = start
        self.length = length
        self.label = label
        self.note = note


@dataclass
class Importer:
    """Imports references for one config; each module once."""

    _modules: dict[tuple[str, str], tuple[ModuleType, float]] = field(default_factory=dict)

    def find(self, text: str, folder: Path, known: Callable[[str], Any] | None = None) -> Found:
        """The object that `text` names, as said by a file in `folder`. Raises `ReferenceProblem`.

        `known` is asked for what the module, once it is imported, has made known by a name it does not hold.
        """
        module_text, _, name = text.partition(":")
        module, seconds = self._import(module_text, folder)
        try:
            value = _attribute(module, module_text, name)
        except ReferenceProblem:
            value = None if known is None else known(name)
            if value is None:
                raise
        file = getattr(module, "__file__", None)
        return Found(value, Path(file) if file else None, seconds)

    def module(self, text: str, folder: Path) -> ModuleType:
        """The module that `text`, a reference without a name, stands for. Raises `ReferenceProblem`."""
        return self._import(text, folder)[0]

    def _import(self, text: str, folder: Path) -> tuple[ModuleType, float]:
        key = (text, str(folder))
        if key not in self._modules:
            started = perf_counter()
            module = _load(text, folder)
            self._modules[key] = (module, perf_counter() - started)
        return self._modules[key]


def _load(text: str, folder: Path) -> ModuleType:
    try:
        with contextlib.redirect_stdout(sys.stderr), osmosis_alias():
            return _load_file(text, folder) if _is_file(text) else _load_module(text, folder)
    except ReferenceProblem:
        raise
    except ModuleNotFoundError as error:
        raise _not_found(text, folder, error) from error
    except SyntaxError as error:
        raise ReferenceProblem(
            "import-failed",
            f"`{text}` is not valid Python: {error.msg}",
            start=0,
            length=len(text),
            label="mend the module",
            note=_where(error),
        ) from error
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ReferenceProblem(
            "import-failed",
            f"importing `{text}` raised {what}",
            start=0,
            length=len(text),
            label="its own code failed while it was imported",
            note=_where(error),
        ) from error


def _is_file(text: str) -> bool:
    return text.endswith(".py") or "/" in text


def _load_file(text: str, folder: Path) -> ModuleType:
    path = (folder / text).resolve()
    if not path.is_file():
        near = nearest(path.name, [item.name for item in path.parent.glob("*.py")]) if path.parent.is_dir() else None
        raise ReferenceProblem(
            "import-failed",
            f"there is no file `{text}`",
            start=0,
            length=len(text),
            label=f"did you mean `{text.removesuffix(Path(text).name)}{near}`?" if near else "",
            note=f"looked for {from_here(path)}",
        )
    name = f"_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ReferenceProblem("import-failed", f"`{text}` is no Python file", start=0, length=len(text))
    if isinstance(spec.loader, SourceFileLoader):  # not an extension module
        spec.loader = AsItStands(name, str(path))
    reach(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _load_module(text: str, folder: Path) -> ModuleType:
    reach(folder)
    importlib.invalidate_caches()
    return importlib.import_module(text)


def _not_found(text: str, folder: Path, error: ModuleNotFoundError) -> ReferenceProblem:
    missing = error.name or ""
    if text == missing or text.startswith(missing + "."):
        near = nearest(text, _modules_near(folder))
        return ReferenceProblem(
            "import-failed",
            f"there is no module `{missing}`",
            start=0,
            length=len(text),
            label=f"did you mean `{near}`?" if near else "",
            note=f"looked in {_folder(folder)} and in the installed packages",
        )
    return ReferenceProblem(
        "import-failed",
        f"`{text}` imports `{missing}`, which is not installed",
        start=0,
        length=len(text),
        label=f"install `{missing.partition('.')[0]}` in this environment",
        note=_where(error),
    )


def _folder(folder: Path) -> str:
    shown = from_here(folder)
    return "this folder" if shown == "." else f"the folder {shown}"


def _modules_near(folder: Path) -> list[str]:
    files = [item.stem for item in folder.glob("*.py")]
    nested = [f"{item.parent.name}.{item.stem}" for item in folder.glob("*/*.py")]
    return files + [name.removesuffix(".__init__") for name in nested]


def _where(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"at {from_here(Path(error.filename))}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_import_machinery(frame.filename)]
    return f"at {from_here(Path(frames[-1].filename))}:{frames[-1].lineno}" if frames else ""


def _is_import_machinery(filename: str) -> bool:
    return filename.startswith("<frozen") or "importlib" in filename or filename == __file__


def _attribute(module: ModuleType, module_text: str, name: str) -> Any:
    value: Any = module
    at = len(module_text) + 1
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            names = [known for known in dir(value) if not known.startswith("_")]
            near = nearest(part, names)
            file = getattr(module, "__file__", None)
            raise ReferenceProblem(
                "no-such-name",
                f"`{module_text}` has no `{part}`",
                start=at,
                length=len(part),
                label=f"did you mean `{near}`?" if near else "",
                note=f"looked in {from_here(Path(file))}" if file else "",
            ) from None
        at += len(part) + 1
    return value
