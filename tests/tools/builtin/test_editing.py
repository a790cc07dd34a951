"""Edits and encodings, as texts: what is replaced, where lines go, and that nothing else in a file changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.tools.builtin.editing import EditFault, inserted, line_count, numbered, replaced
from runner.tools.builtin.text_file import NotText, TextFile, read_text

ENCODED = {
    "utf-8": "grün\nend\n".encode(),
    "with a mark": "\ufeffgrün\n".encode(),
    "utf-16": b"\xff\xfe" + "grün\r\n".encode("utf-16-le"),
    "utf-16, big": b"\xfe\xff" + "grün\n".encode("utf-16-be"),
    "latin-1": "grün\n".encode("latin-1"),
    "no newline at the end": b"a\nb",
    "empty": b"",
    "crlf": b"a\r\nb\r\n",
    "mixed": b"a\r\nb\nc\r",
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED)
def test_a_file_is_written_as_it_was_read(data: bytes) -> None:
    assert read_text(data).data() == data


@given(st.binary(max_size=200).filter(lambda data: b"\0" not in data))
def test_any_bytes_that_are_text_survive(data: bytes) -> None:
    assert read_text(data).data() == data


def test_a_binary_file_is_refused() -> None:
    with pytest.raises(NotText, match="binary"):
        read_text(b"\x7fELF\0\0")


def test_a_sign_that_the_encoding_has_not_is_refused() -> None:
    file, _ = replaced(read_text("grün".encode("latin-1")), "gr", "→")
    with pytest.raises(NotText, match="latin-1"):
        file.data()


@given(st.text(max_size=60), st.text(min_size=1, max_size=10), st.text(max_size=10))
def test_a_replacement_changes_one_place_and_can_be_found(text: str, old: str, new: str) -> None:
    file = TextFile(text + "§" + old + "§")
    if ("§" + old) in text or new == old or "\r" in file.text:
        return
    edited, line = replaced(file, "§" + old + "§", "§" + new + "§")
    assert edited.text == text + "§" + new + "§"
    assert line == text.count("\n") + 1


def test_lines_that_end_in_crlf_stay_so() -> None:
    file = read_text(b"one\r\ntwo\r\nthree\r\n")
    edited, line = replaced(file, "one\ntwo", "1\n2\n2.5")
    assert (edited.data(), line) == (b"1\r\n2\r\n2.5\r\nthree\r\n", 1)
    assert inserted(file, 1, "new")[0].data() == b"one\r\nnew\r\ntwo\r\nthree\r\n"


@pytest.mark.parametrize(
    ("text", "after", "new", "result"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 2, "x", "a\nb\nx\n"),
        ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
        ("a\nb", 2, "x\n", "a\nb\nx"),
        ("", 0, "x", "x\n"),
        ("a\x0cb\u2028c\n", 1, "x\n", "a\x0cb\u2028c\nx\n"),
    ],
)
def test_lines_are_inserted_where_they_belong(text: str, after: int, new: str, result: str) -> None:
    edited, line = inserted(TextFile(text), after, new)
    assert (edited.text, line) == (result, after + 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "x", "is empty"),
        ("nowhere", "x", "not in the file"),
        ("b", "x", "2 times, on lines 2, 3"),
        ("a", "a", "nothing to change"),
        ("  a", "x", "line 1 is the same but for its white space"),
    ],
)
def test_a_replacement_that_cannot_be_made_says_why(old: str, new: str, words: str) -> None:
    with pytest.raises(EditFault, match=words):
        replaced(TextFile("a\nb\nb\n"), old, new)


def test_places_that_overlap_are_several() -> None:
    with pytest.raises(EditFault, match="2 times"):
        replaced(TextFile("aaa"), "aa", "b")


def test_a_line_that_is_not_there_is_named() -> None:
    with pytest.raises(EditFault, match="0 to 2"):
        inserted(TextFile("a\nb\n"), 3, "x")


def test_lines_are_numbered_from_one() -> None:
    assert numbered("a\r\nb\r\n", 1, 2) == "     1\ta\n     2\tb"
    assert [line_count(text) for text in ("", "a", "a\n", "a\nb", "\n")] == [0, 1, 1, 2, 1]
