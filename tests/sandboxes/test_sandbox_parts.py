"""Parts by themselves: what is kept of a stream, how a group of version 2 is written, copies over what lies there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.graders.junit import passed_share
from runner.graders.protected import glob_pattern
from runner.sandboxes.asked import Limits, Mount
from runner.sandboxes.capture import Capture
from runner.sandboxes.inside import Inside
from runner.sandboxes.limits import Group, Hierarchy


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=40)), st.integers(0, 60))
def test_head_and_tail(pieces: list[bytes], limit: int) -> None:
    capture, whole = Capture(limit), b"".join(pieces)
    for piece in pieces:
        capture.add(piece)
    head = (limit + 1) // 2
    tail = whole[max(head, len(whole) - (limit - head)) :] if limit > head else b""
    assert capture.kept() == (whole if len(whole) <= limit else whole[:head] + tail)
    assert len(capture.kept()) + capture.dropped == len(whole)


def test_memory_is_bounded_whatever_comes() -> None:
    capture = Capture(1000)
    for _ in range(1000):
        capture.add(b"x" * 65536)
        assert len(capture._head) + len(capture._tail) < 300_000
    assert capture.dropped == 1000 * 65536 - 1000


def test_a_group_of_version_2(tmp_path: Path) -> None:
    """As the kernel's documentation has it; this suite's machine may have version 1."""
    names = dict.fromkeys(("cpu", "memory", "pids"), tmp_path)
    group = Group(Hierarchy(2, names), "one", Limits(memory=1 << 20, cpus=1.5, pids=7))
    (folder,) = group.folders
    said = {file.name: file.read_text() for file in folder.iterdir()}
    assert said == {"memory.max": str(1 << 20), "pids.max": "7", "cpu.max": "150000 100000"}
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.killed_for_memory() and not group.killed_for_memory()
    (folder / "memory.events").write_text("oom_kill 3\n")
    assert group.killed_for_memory() and not group.gone


def test_a_copy_over_a_link_that_an_earlier_copy_left(tmp_path: Path) -> None:
    for name in ("host", "work", "first", "second/dir"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "host" / "file").write_text("mine")
    (tmp_path / "first" / "dir").symlink_to(tmp_path / "host")
    (tmp_path / "first" / "file").symlink_to(tmp_path / "host" / "file")
    (tmp_path / "second" / "dir" / "file").write_text("theirs")
    (tmp_path / "second" / "file").write_text("theirs")
    inside = Inside({"/workspace": Mount(tmp_path / "work")}, "/workspace")
    inside.copy_in(tmp_path / "first", ".")
    inside.copy_in(tmp_path / "second" / "file", "file2")
    with pytest.raises(OSError):
        inside.copy_in(tmp_path / "second", ".")
    with pytest.raises(OSError):
        inside.copy_in(tmp_path / "second" / "file", "dir/file")
    assert (tmp_path / "host" / "file").read_text() == "mine"
    assert inside.read("file2") == b"theirs"


@pytest.mark.parametrize(
    ("glob", "hit", "miss"),
    [
        ("tests/**", "tests/a tests/a/b.py", "test/a a/tests/b tests"),
        ("tests/", "tests/a tests/a/b", "atests/a"),
        ("*.py", "a.py b/c/a.py", "a.pyc a.py/x"),
        ("conftest.py", "conftest.py x/conftest.py", "xconftest.py conftest.py/x"),
        ("./a/*.txt", "a/b.txt", "a/b/c.txt b/a/b.txt"),
        ("**/test_*.py", "test_a.py x/y/test_b.py", "x/atest_a.py"),
        ("a/test_[0-9!].py", "a/test_1.py a/test_!.py", "a/test_a.py"),
        ("a/[!x]?", "a/yz", "a/xz a/y a/y/"),
        ("a.b", "a.b", "axb"),
    ],
)
def test_globs(glob: str, hit: str, miss: str) -> None:
    import re

    assert all(re.fullmatch(glob_pattern(glob), name) for name in hit.split())
    assert not any(re.fullmatch(glob_pattern(glob), name) for name in miss.split())


def test_reports() -> None:
    assert passed_share(b"<testsuite><testcase name='a'/><testcase name='b'><error/></testcase></testsuite>")[0] == 0.5
    for nothing in (b"", b"<a", b"<testsuite/>", b"<!doctype x [<!ENTITY a 'b'>]><testsuite/>"):
        assert passed_share(nothing)[0] == 0.0
