"""`file_editor` and `search` in a sandbox: what they show, what they change, and that nothing leads out of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.none import NoneMaker
from runner.sandboxes.sandbox import Command, Sandbox
from runner.tools.builtin.file_editor import FileEditor
from runner.tools.builtin.matching import Pattern, alike
from runner.tools.builtin.search import Search
from runner.tools.builtin.tool import BuiltinTool, with_history, with_search
from runner.tools.tool import ToolScope


def editor(**keys: Any) -> BuiltinTool:
    part = FileEditor(**keys)
    act = with_history("edit", "work", part)
    return BuiltinTool(part.spec("edit"), act, timeout=20.0, limit=None, max_output=16_000)


def finder(**keys: Any) -> BuiltinTool:
    part = Search(**keys)
    act = with_search("find", "work", part)
    return BuiltinTool(part.spec("find"), act, timeout=20.0, limit=None, max_output=16_000)


async def said(tool: BuiltinTool, scope: ToolScope, command: str, **arguments: Any) -> tuple[str, str]:
    result = await tool.call({"command": command, **arguments}, scope)
    return result.status, result.content


async def fill(sandbox: Sandbox, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        await sandbox.put(path, content.encode() if isinstance(content, str) else content)


def test_a_file_is_created_viewed_edited_and_brought_back(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        tool = editor()
        assert await said(tool, scope, "create", path="src/a.py", file_text="one\ntwo\nthree\n") == (
            "ok",
            "Created `src/a.py`, 3 lines.",
        )
        assert await said(tool, scope, "view", path="src/a.py", view_range=[2, -1]) == (
            "ok",
            "     2\ttwo\n     3\tthree",
        )
        assert (await said(tool, scope, "str_replace", path="src/a.py", old_str="two", new_str="2"))[1] == (
            "Edited `src/a.py`. It now reads:\n     1\tone\n     2\t2\n     3\tthree"
        )
        await said(tool, scope, "insert", path="src/a.py", insert_line=3, new_str="four")
        assert await sandbox.get("src/a.py") == b"one\n2\nthree\nfour\n"
        for left in (b"one\n2\nthree\n", b"one\ntwo\nthree\n"):
            assert (await said(tool, scope, "undo_edit", path="src/a.py"))[0] == "ok"
            assert await sandbox.get("src/a.py") == left
        assert "it is gone" in (await said(tool, scope, "undo_edit", path="src/a.py"))[1]
        assert await said(tool, scope, "view", path="src") == ("ok", "`src` is empty.")
        assert (await said(tool, scope, "undo_edit", path="src/a.py"))[0] == "error"

    bench.run(test)


def test_a_mode_line_endings_and_encodings_survive_an_edit(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        await sandbox.put("run.sh", b"#!/bin/sh\r\necho gr\xfcn\r\nexit 1", mode=0o755)
        await said(editor(), scope, "str_replace", path="run.sh", old_str="exit 1", new_str="exit 0\n")
        assert await sandbox.get("run.sh") == b"#!/bin/sh\r\necho gr\xfcn\r\nexit 0\r\n"
        ran = await sandbox.exec(Command(["stat", "-c", "%a", "run.sh"]))
        assert ran.stdout.strip() == b"755"

    bench.run(test)


def test_what_cannot_be_done_is_said(bench: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        await fill(sandbox, {"a.txt": "a\n", "b.bin": b"\0\1", "d/x.txt": "x", "big.txt": "y" * 2000})
        tool = editor(max_file_size=1000, allowed_extensions=[".txt", ".py"], check_syntax=True)
        cases: list[tuple[str, dict[str, Any], str]] = [
            ("view", {"path": "none.txt"}, "no such file"),
            ("view", {"path": "b.bin"}, "binary"),
            ("view", {"path": "big.txt"}, "larger than 1,000"),
            ("view", {"path": "a.txt", "view_range": [2, 3]}, "has 1 lines"),
            ("view", {"path": "d", "view_range": [1, 2]}, "is a folder"),
            ("create", {"path": "a.txt", "file_text": ""}, "exists already"),
            ("create", {"path": "c.sh", "file_text": ""}, "only files that end in .txt, .py"),
            ("create", {"path": "c.txt"}, "needs `file_text`"),
            ("create", {"path": "c.txt", "file_text": "z" * 2000}, "would be larger"),
            ("create", {"path": "c.py", "file_text": "def f(:\n"}, "no longer be valid Python in line 1"),
            ("create", {"path": "a.txt/b.txt", "file_text": ""}, "is a file, not a folder"),
            ("str_replace", {"path": "a.txt", "old_str": "q"}, "not in the file"),
            ("insert", {"path": "a.txt", "insert_line": 9, "new_str": "x"}, "0 to 1"),
            ("undo_edit", {"path": "a.txt"}, "no edit"),
        ]
        for command, arguments, words in cases:
            status, text = await said(tool, scope, command, **arguments)
            assert (status, words in text) == ("error", True), text
        assert (await said(editor(overwrite=True), scope, "create", path="a.txt", file_text="new"))[0] == "ok"

    bench.run(test)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder of the host that is under none of the sandbox's own, /tmp included."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_no_path_leads_out(bench: Any, outside: Path) -> None:
    secret = outside / "secret.txt"
    secret.write_text("secret")

    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        await sandbox.exec(Command(["sh", "-c", f"ln -s {secret} link; ln -s {outside} folder; ln -s link two"]))
        tool, finds = editor(), finder()
        for path in (str(secret), "../" * 12 + str(secret)[1:], "link", "two", "folder/secret.txt", "/etc/shadow"):
            status, text = await said(tool, scope, "view", path=path)
            assert (status, "secret" in text.replace(path, "")) == ("error", False), text
            assert (await said(tool, scope, "str_replace", path=path, old_str="secret", new_str="x"))[0] == "error"
        for path in ("folder/new.txt", f"{outside}/new.txt", "../new.txt"):
            assert (await said(tool, scope, "create", path=path, file_text="x"))[0] == "error"
        assert "secret" not in (await said(finds, scope, "search_text", pattern="secre"))[1].replace("secre`", "")
        assert (await said(finds, scope, "search_text", pattern="secret", path=str(outside)))[0] == "error"

    bench.run(test)
    assert secret.read_text() == "secret"
    assert [each.name for each in outside.iterdir()] == ["secret.txt"]


TREE: dict[str, str | bytes] = {
    "main.py": "import os\n\ndef Main():\n    return 'Grün'  # TODO\n",
    "lib/util.py": "def main_util():\n    pass\n\n\n# todo: later\n",
    "lib/data.json": '{"todo": 1}\r\n',
    "docs/read me.md": "TODO TODO\n",
    "bin.dat": b"todo\0todo",
    "latin.txt": "TODO grün".encode("latin-1"),
    "wide.txt": b"\xff\xfe" + "todo\r\n".encode("utf-16-le"),
    "build/out.py": "todo ignored\n",
    "lib/keep.log": "todo kept\n",
    "lib/drop.log": "todo dropped\n",
    ".hidden/x.py": "todo hidden\n",
    "node_modules/m.js": "todo module\n",
    ".gitignore": "build/\n*.log\n!keep.log\n",
    "lib/.ignore": "drop.log\n",
}


@pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "without"])
def test_text_is_found_where_it_counts(bench: Any, ripgrep: bool) -> None:
    if ripgrep and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed here")

    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        await fill(sandbox, TREE)
        tool = finder(ripgrep=ripgrep)
        assert await said(tool, scope, "search_text", pattern="todo") == (
            "ok",
            "docs/read me.md\n     1: TODO TODO\nlatin.txt\n     1: TODO gr\ufffdn\nlib/data.json\n"
            '     1: {"todo": 1}\nlib/keep.log\n     1: todo kept\nlib/util.py\n     5: # todo: later\nmain.py\n'
            "     4:     return 'Grün'  # TODO\nwide.txt\n     1: todo\n[7 lines in 7 files]",
        )
        assert await said(tool, scope, "search_text", pattern="main", path="lib", context_lines=1) == (
            "ok",
            "lib/util.py\n>    1: def main_util():\n     2:     pass\n[1 line in 1 file]",
        )
        assert "[1 line in 1 file]" in (await said(tool, scope, "search_text", pattern="Main", case_sensitive=True))[1]
        assert "[1 line in 1 file]" in (await said(tool, scope, "search_text", pattern="main", whole_words=True))[1]
        both = await said(tool, scope, "search_text", pattern=r"def \w+\(\)", regex=True, file_extensions=["py"])
        assert "[2 lines in 2 files]" in both[1]
        assert "(?<=" not in (await said(tool, scope, "search_text", pattern=r"(?<=def )main", regex=True))[1]
        assert (await said(tool, scope, "search_text", pattern="todo", max_results=2))[1].endswith("smaller folder]")
        assert (await said(tool, scope, "search_text", pattern="import", path="main.py"))[1].startswith("main.py\n")
        assert await said(tool, scope, "search_text", pattern="nothing like it") == ("ok", "No line matches.")
        status, text = await said(tool, scope, "search_text", pattern="(", regex=True)
        assert (status, "no regular expression" in text) == ("error", True)
        assert "there is no `gone`" in (await said(tool, scope, "search_text", pattern="x", path="gone"))[1]

    bench.run(test)


def test_files_and_folders_are_found_by_name(plain: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        await fill(sandbox, TREE)
        tool = finder()
        assert await said(tool, scope, "search_files", pattern="*.PY") == ("ok", "lib/util.py\nmain.py")
        assert await said(tool, scope, "search_files", pattern="*.PY", case_sensitive=True) == (
            "ok",
            "No file matches.",
        )
        assert await said(tool, scope, "search_files", pattern="data", path="lib") == ("ok", "lib/data.json")
        assert await said(tool, scope, "search_files", pattern="lib/*.json") == ("ok", "lib/data.json")
        assert await said(tool, scope, "search_dir", pattern="o") == ("ok", "docs/")
        assert await said(tool, scope, "search_dir", pattern="^l", regex=True) == ("ok", "lib/")

    plain.run(test)


def test_an_endless_expression_ends(plain: Any) -> None:
    async def test(sandbox: Sandbox, scope: ToolScope) -> None:
        await sandbox.put("a.txt", b"a" * 5000 + b"!")
        pattern = r"(a|a)*(?=x)$|(?:a+)+(?<!a)$"
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        part = Search()
        tool = BuiltinTool(part.spec("f"), with_search("f", "work", part), timeout=90.0, limit=None, max_output=9999)
        status, text = await said(tool, scope, "search_text", pattern=pattern, regex=True)
        ticking.cancel()
        assert (status, "took too long" in text) in {("error", True), ("ok", False)}
        assert ticks > 0

    plain.run(test)


LINES = st.lists(st.text("abAB1_ .-é\t", max_size=12), max_size=8).map("\n".join)
PATTERNS = st.sampled_from(
    [
        "a",
        "A",
        "ab",
        "a.b",
        "a+",
        "[a-b]+1",
        r"\bab\b",
        "^a",
        "b$",
        "(a|b)1",
        "a_?b",
        r"\w\s\w",
        "é",
        r"\d",
        "a b",
        "-",
        ".",
    ]
)


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed here")
@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(["a.txt", "b.py", "sub/c.py"]), LINES, max_size=3),
    PATTERNS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_ripgrep_and_our_own_search_say_the_same(
    files: dict[str, str], pattern: str, regex: bool, sensitive: bool, whole: bool
) -> None:
    assert alike(Pattern(pattern, regex=regex))

    async def test() -> None:
        maker = NoneMaker(LocalOptions(), control_groups=False)
        sandbox = await maker.make("same")
        await fill(sandbox, files)
        keys = {"regex": regex, "case_sensitive": sensitive, "whole_words": whole, "context_lines": 1}
        arguments = {"command": "search_text", "pattern": pattern, **keys}
        answers = [(await Search().use(sandbox, quick, arguments)).content for quick in (True, False)]
        assert answers[0] == answers[1]
        await sandbox.stop()

    asyncio.run(test())
