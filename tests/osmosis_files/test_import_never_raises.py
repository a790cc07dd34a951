"""Whatever a file of the SDK says, it is imported or refused with findings: nothing else is ever raised."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.diag.diagnostic import ConfigError
from runner.osmosis_files.from_osmosis import import_file
from runner.osmosis_files.keys import KINDS, Kind
from runner.osmosis_files.page import name_text, value_text

_GOOD = {"rollout": "multiply", "entrypoint": "main.py", "dataset": "data/plain.csv", "model": "m", "model_path": "m"}
_VALUES = st.one_of(
    st.sampled_from(["multiply", "main.py", "../x.py", "", " ", "a:b", "http://h", "data", "x\0y", "\x1b[0m"]),
    st.text(max_size=6),
    st.integers(-3, 2**40),
    st.floats(),
    st.booleans(),
    st.lists(st.one_of(st.text(max_size=3), st.integers(0, 3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(0, 3), max_size=2),
)


@st.composite
def files(draw: st.DrawFn, kind: Kind) -> str:
    """A file of `kind`: its required keys mostly right, everything else anything."""
    lines: list[str] = []
    for table, keys in kind.tables.items():
        if table not in kind.required and draw(st.booleans()):
            continue
        lines.append(f"[{table}]")
        known: dict[str, Any] = dict(keys or {})
        names = [name for name, key in known.items() if key.required or draw(st.integers(0, 3)) == 0]
        names += draw(st.lists(st.text(min_size=1, max_size=4), max_size=1)) if draw(st.integers(0, 5)) == 0 else []
        for name in dict.fromkeys(names):
            kept = name in _GOOD and draw(st.integers(0, 9)) > 0
            value = _GOOD[name] if kept else ["A"] if name == "required" else draw(_VALUES)
            lines.append(f"{name_text(name)} = {value_text(value)}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(Path(__file__).parent / "workspace", tmp_path_factory.mktemp("never") / "workspace"))


@pytest.mark.parametrize("kind", list(KINDS))
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_imported_or_refused(kind: str, data: st.DataObject, shared: Path) -> None:
    text = data.draw(files(KINDS[kind]))
    file = shared / "configs" / "any.toml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        imported = import_file(file, shared, environ={})
    except ConfigError as error:
        assert error.report.errors
    else:
        tomllib.loads(imported.text)
        assert all(str(note).isprintable() or "\n" not in str(note) for note in imported.notes)
