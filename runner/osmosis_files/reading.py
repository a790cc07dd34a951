"""`read_file`: a file of the SDK with its kind, every mistake in it a finding with its place.

The rules are the SDK's own; where it would convert a value silently, or leave it to the platform, we say what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.diag.diagnostic import Diagnostic, Place, Report
from runner.diag.reading import read_source
from runner.diag.suggest import alternatives, nearest
from runner.diag.toml import Document, read_document
from runner.osmosis_files.keys import ENV_NAME, KINDS, OURS, RESERVED, SECRET_NAME, Key, Kind, tables_of

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a string"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "switch": ((bool,), "`true` or `false`"),
    "table": ((dict,), "a table"),
    "strings": ((list,), "an array of strings"),
}


@dataclass(frozen=True)
class OsmosisFile:
    """A file of the SDK. Its data is sound where `report` has no error."""

    path: Path
    kind: Kind
    document: Document
    report: Report

    def table(self, name: str) -> Mapping[str, Any]:
        """The table `name`, empty when the file has none."""
        found = self.document.data.get(name)
        return found if isinstance(found, dict) else {}

    def get(self, table: str, key: str, default: Any = None) -> Any:
        return self.table(table).get(key, default)

    def place(self, *path: str | int, key: bool = False) -> Place | None:
        """Where the value (or the key) of `path` stands."""
        return self.document.key_place(path) if key else self.document.value_place(path)


def read_file(path: Path, report: Report, kind: str | None = None) -> OsmosisFile | None:
    """The file at `path`, checked; `kind` names it where its tables do not. None when it cannot be told what it is."""
    source = read_source(path, str(path), report)
    document = None if source is None else read_document(source, report)
    if document is None:
        return None
    found = KINDS[kind] if kind is not None else _detect(document, report)
    if found is None:
        return None
    file = OsmosisFile(path, found, document, report)
    _check_tables(file)
    _check_whole(file)
    return file


def _detect(document: Document, report: Report) -> Kind | None:
    """The kind that the tables tell; None with a finding when they tell none or several."""
    tables = list(document.data)
    ours = [name for name in tables if name in OURS]
    if ours:
        message = f"`[{ours[0]}]` is a table of a workflow.toml: this is no file of the SDK"
        _add(report, "bad-value", message, document.key_place((ours[0],)), "check it with `osmosis-run validate`")
        return None
    marks = {kind.name: [name for name in tables if name in kind.marks] for kind in KINDS.values()}
    likely = [name for name, found in marks.items() if found]
    if len(likely) == 1:
        return KINDS[likely[0]]
    if likely:
        places = [document.key_place((marks[name][0],)) for name in likely]
        kinds = " and ".join(f"`[{marks[name][0]}]` ({name})" for name in likely)
        related = tuple((place, "and this") for place in places[1:] if place is not None)
        message = f"the file mixes kinds: {kinds}"
        options = f"say which it is: {_options(likely)}"
        report.add(Diagnostic("one-of", message, places[0], "one of these must go", (options,), related=related))
        return None
    if "experiment" in tables:
        place, message = document.key_place(("experiment",)), "`[experiment]` alone may be an evaluation or a training"
        _add(report, "one-of", message, place, f"say which it is: {_options(['eval', 'training'])}")
        return None
    notes = tuple(f"{kind.name}: {kind.what}" for kind in KINDS.values())
    place = document.key_place((tables[0],)) if tables else None
    report.add(Diagnostic("one-of", f"`{document.source.name}` is none of the SDK's files", place, "", (), notes))
    return None


def _options(names: list[str]) -> str:
    return " or ".join(f"`--kind {name}`" for name in names)


def _check_tables(file: OsmosisFile) -> None:
    for name, value in file.document.data.items():
        if name not in file.kind.tables:
            near = nearest(name, file.kind.tables)
            known = alternatives(f"[{each}]" for each in file.kind.tables)
            label, notes = f"did you mean `[{near}]`?" if near else "remove it", (f"tables: {known}",)
            message = f"the {file.kind.name} file has no table `[{name}]`"
            file.report.add(Diagnostic("unknown-key", message, file.place(name, key=True), label, notes=notes))
        elif not isinstance(value, dict):
            message = f"`{name}` must be a table, found {_shown(value)}"
            _add(file.report, "wrong-type", message, file.place(name), f"write `[{name}]`")
        else:
            _check_table(file, name, value)
    for name in file.kind.required:
        if name not in file.document.data:
            cure = "add `[secrets]` with `required = []`" if name == "secrets" else f"add `[{name}]`"
            source = file.document.source
            message = f"the {file.kind.name} file needs the table `[{name}]`"
            _add(file.report, "missing-key", message, Place(source, 0, 0), cure)


def _check_table(file: OsmosisFile, name: str, table: Mapping[str, Any]) -> None:
    keys = file.kind.tables[name]
    if keys is None:
        return
    for key, value in table.items():
        if key in keys:
            _check_value(file, name, key, keys[key], value)
            continue
        others = tables_of(file.kind, key)
        near = nearest(key, keys)
        place, message = file.place(name, key, key=True), f"`[{name}]` has no key `{key}`"
        label = f"did you mean `{near}`?" if near else f"it belongs into `[{others[0]}]`" if others else "remove it"
        if near is None and key == "module":
            label = "it was `rollout` and `entrypoint` from 0.2.18 on: name the rollout's folder and its file"
        code = "misplaced-key" if others and not near else "unknown-key"
        notes = (f"keys: {', '.join(keys)}",)
        file.report.add(Diagnostic(code, message, place, label, notes=notes))
    for key, rule in keys.items():
        if rule.required and key not in table:
            place = file.place(name, key=True)
            _add(file.report, "missing-key", f"`[{name}]` needs `{key}`", place, f"add `{key} = …`")


def _check_value(file: OsmosisFile, table: str, key: str, rule: Key, value: Any) -> None:
    types, what = _TYPES[rule.type]
    place, name = file.place(table, key), f"`{table}.{key}`"
    is_right = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if rule.type == "strings" and is_right:
        is_right = all(isinstance(each, str) for each in value)
    if not is_right or (isinstance(value, float) and not math.isfinite(value)):
        what = "a finite number" if is_right else what
        _add(file.report, "wrong-type", f"{name} must be {what}, found {_shown(value)}", place, f"write {what}")
    elif isinstance(value, int | float):
        _check_range(file, name, rule, value, place)
    elif isinstance(value, str):
        _check_text(file, name, rule, value, place)


def _check_range(file: OsmosisFile, name: str, rule: Key, value: float, place: Place | None) -> None:
    bounds = [
        (rule.low is not None and value < rule.low, f"at least {rule.low:g}" if rule.low is not None else ""),
        (rule.above is not None and value <= rule.above, f"more than {rule.above:g}" if rule.above is not None else ""),
        (rule.high is not None and value > rule.high, f"at most {rule.high:,g}" if rule.high is not None else ""),
    ]
    if any(outside for outside, _ in bounds):
        wanted = " and ".join(text for _, text in bounds if text)
        _add(file.report, "out-of-range", f"{name} must be {wanted}, found {value}", place, wanted)


def _check_text(file: OsmosisFile, name: str, rule: Key, value: str, place: Place | None) -> None:
    if rule.words and value not in rule.words:
        near, listed = nearest(value, rule.words), ", ".join(rule.words)
        label = f"did you mean `{near}`?" if near else f"one of: {listed}"
        _add(file.report, "bad-choice", f"{name} cannot be `{value}`", place, label)
    elif rule.pattern and not re.fullmatch(rule.pattern, value):
        _add(file.report, "bad-value", f"{name} must be {rule.form}, found `{value}`", place, rule.form)
    elif rule.required and not value.strip():
        _add(file.report, "bad-value", f"{name} is empty", place, "write its value")


def _check_whole(file: OsmosisFile) -> None:
    """What one key cannot know alone. A value of another type is told already."""
    _exclusive(file, "eval", "fresh", "retry_failed", lambda value: value is True)
    _exclusive(file, "experiment", "branch", "commit_sha", lambda value: value is not None)
    batch, size = file.get("training", "global_batch_size"), file.get("training", "n_samples_per_prompt")
    if isinstance(batch, int) and isinstance(size, int) and size > 0 and batch % size:
        message = f"`global_batch_size` {batch} is no multiple of `n_samples_per_prompt` {size}"
        where = file.place("training", "global_batch_size")
        _add(file.report, "out-of-range", message, where, f"such as {max(1, round(batch / size)) * size}")
    _check_env(file)
    _check_secrets(file)


def _exclusive(file: OsmosisFile, table: str, one: str, other: str, counts: Any) -> None:
    if counts(file.get(table, one)) and counts(file.get(table, other)):
        first = file.place(table, one, key=True)
        related = ((first, "and this"),) if first is not None else ()
        place = file.place(table, other, key=True)
        message = f"`{one}` and `{other}` exclude each other"
        file.report.add(Diagnostic("one-of", message, place, "keep one", related=related))


def _check_env(file: OsmosisFile) -> None:
    for name, value in file.table("env").items():
        key = file.place("env", name, key=True)
        if not isinstance(value, str):
            message = f"`env.{name}` must be a string, found {_shown(value)}"
            _add(file.report, "wrong-type", message, file.place("env", name), "write a string")
        elif "\0" in value:
            where = file.place("env", name)
            _add(file.report, "bad-value", f"`env.{name}` holds a zero byte", where, "no variable can hold one")
        if not re.fullmatch(ENV_NAME, name):
            message = f"`{name}` is no name of a variable: capitals, digits and `_`"
            _add(file.report, "bad-value", message, key, f"write `{re.sub(r'[^A-Z0-9_]', '_', name.upper())}`")
        elif name.startswith(RESERVED):
            _add(file.report, "reserved-name", f"`{name}` belongs to the platform", key, "choose another name")


def _check_secrets(file: OsmosisFile) -> None:
    seen: set[str] = set()
    required = file.get("secrets", "required")
    for index, name in enumerate(required if isinstance(required, list) else ()):
        if not isinstance(name, str):
            continue
        place = file.place("secrets", "required", index)
        if name in seen:
            _add(file.report, "duplicate-name", f"the secret `{name}` is named twice", place, "remove it")
        elif not re.fullmatch(SECRET_NAME, name):
            message = f"`{name}` is no name of a secret: capitals, digits and `_`, a capital first"
            _add(file.report, "bad-value", message, place, "such as `MY_SECRET`")
        elif name in file.table("env"):
            message = f"`{name}` is in `[env]` and in `[secrets]`"
            _add(file.report, "duplicate-name", message, place, "it comes from one of them")
        seen.add(name)


def _add(report: Report, code: str, message: str, place: Place | None, label: str) -> None:
    report.add(Diagnostic(code, message, place, label))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, str):
        return f"the string `{value}`"
    return "a table" if isinstance(value, dict) else "an array" if isinstance(value, list) else f"`{value}`"
