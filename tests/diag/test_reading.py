"""Files that are not there, not readable or not text: one clear finding each."""

from __future__ import annotations

from pathlib import Path as FilePath

import pytest

from runner.diag.diagnostic import Diagnostic, Report, Source
from runner.diag.reading import read_source
from runner.diag.toml import read_document


def refused(path: FilePath, name: str) -> Diagnostic:
    report = Report()
    assert read_source(path, name, report) is None
    (finding,) = report
    return finding


def test_text_is_read_as_it_stands(tmp_path: FilePath) -> None:
    path = tmp_path / "w.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n[b]\r\nc = '\xc3\xa9' # x\r\n")
    report = Report()
    source = read_source(path, "w.toml", report)
    assert source == Source("w.toml", "a = 1\r\n[b]\r\nc = 'é' # x\r\n")
    document = read_document(source, report)
    assert document is not None
    assert document.data == {"a": 1, "b": {"c": "é"}}
    place = document.value_place(("b", "c"))
    assert (str(place), source.line_text(3)) == ("w.toml:3:5", "c = 'é' # x")
    assert not len(report)


def test_a_missing_file_names_the_near_one(tmp_path: FilePath) -> None:
    (tmp_path / "workflow.toml").touch()
    finding = refused(tmp_path / "workfow.toml", "configs/workfow.toml")
    assert finding.code == "not-found"
    assert finding.message == "there is no file `configs/workfow.toml`"
    assert finding.helps == ("did you mean `configs/workflow.toml`?",)


def test_a_missing_file_lists_what_there_is(tmp_path: FilePath) -> None:
    for name in ("one.toml", "two.toml", "data.csv"):
        (tmp_path / name).touch()
    assert refused(tmp_path / "zzz", "zzz").helps == ("TOML files there: `one.toml`, `two.toml`",)
    assert refused(tmp_path / "no" / "zzz", "no/zzz").notes == (f"there is no folder `{tmp_path / 'no'}` either",)
    assert refused(tmp_path / "one.toml" / "zzz", "one.toml/zzz").message == (
        "there is no `one.toml/zzz`: `one.toml` is a file, not a folder"
    )


def test_a_folder(tmp_path: FilePath) -> None:
    finding = refused(tmp_path, "configs")
    assert (finding.code, finding.message) == ("not-found", "`configs` is a folder without a `workflow.toml`")
    assert finding.helps == ("`osmosis-run init` writes a workflow that works",)
    (tmp_path / "workflow.toml").touch()
    finding = refused(tmp_path, "configs")
    assert (finding.code, finding.message) == ("not-readable", "`configs` is a folder, not a file")
    assert finding.helps == ("name the file in it: `configs/workflow.toml`",)


def test_what_the_system_refuses(tmp_path: FilePath) -> None:
    assert refused(FilePath("a\0b"), "a\0b").code == "not-readable"
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    assert "symbolic links" in refused(loop, "loop.toml").message
    assert "too long" in refused(tmp_path / ("a" * 300), "a").message


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("a = 1".encode("utf-16"), "`w` is UTF-16 text, TOML is UTF-8"),
        ("a = 1".encode("utf-32"), "`w` is UTF-32 text, TOML is UTF-8"),
        ("abcdef = 1".encode("utf-16-le"), "`w` looks like UTF-16 text without a byte order mark, TOML is UTF-8"),
        (b"PK\x03\x04\n\0\0", "`w` is a binary file, not a TOML text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 30)), "`w` is not UTF-8: byte 0x89 at offset 0, line 1"),
    ],
)
def test_not_utf8(tmp_path: FilePath, raw: bytes, message: str) -> None:
    path = tmp_path / "w"
    path.write_bytes(raw)
    finding = refused(path, "w")
    assert (finding.code, finding.message) == ("bad-encoding", message)


def test_latin_1_is_pointed_at(tmp_path: FilePath) -> None:
    path = tmp_path / "w"
    path.write_bytes("a = 'ü'\nb = 'caf".encode() + b"\xe9'\n")
    finding = refused(path, "w")
    assert finding.message == "`w` is not UTF-8: byte 0xe9 at offset 17, line 2"
    assert (str(finding.place), finding.label) == ("w:2:9", "`é` in Latin-1 or Windows-1252")
