"""Rows that are broken, doubled, huge, many, or in another encoding: named by their place, or played as they are."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest


def row(n: int, **more: Any) -> str:
    return json.dumps({"id": f"q{n}", "q": f"{n}?", "a": str(n), **more})


BROKEN = {
    "invalid JSON": (row(0) + "\n" + '{"id": "q1", "q": \n', "rows.jsonl:2:"),
    "not an object": (row(0) + '\n["q1"]\n', "rows.jsonl:2"),
    "a doubled id": (row(0) + "\n" + row(1) + "\n" + row(0) + "\n", "rows.jsonl:3"),
    "no id": (row(0) + '\n{"q": "1?", "a": "1"}\n', "rows.jsonl:2"),
    "a bare NaN": (row(0) + '\n{"id": "q1", "q": "1?", "a": NaN}\n', "rows.jsonl:2"),
    "a lone surrogate": (
        row(0) + '\n{"id": "q1", "q": "half \\ud83d", "a": "1"}\n',
        "rows.jsonl:2: column `q` holds a lone",
    ),
    "latin-1": ((row(0) + '\n{"id": "q1", "q": "caf\xe9", "a": "1"}\n').encode("latin-1"), "rows.jsonl:2:23"),
    "UTF-16": ((row(0) + "\n").encode("utf-16"), "UTF-16"),
    "a raw NUL": (row(0).encode() + b'\n{"id": "q1", "q": "\0", "a": "1"}\n', "rows.jsonl"),
    "NULs at the end": (row(0).encode() + b"\n" + b"\0" * 6000, "rows.jsonl"),
    "nested too deeply": (row(0) + '\n{"id": "q1", "q": "1?", "a": ' + "[" * 50_000 + "\n", "rows.jsonl:2"),
    "a torn last line": (row(0) + "\n" + row(1)[:-9], "rows.jsonl:2:"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_row_is_named_before_anything_is_spent(project: Any, what: str) -> None:
    content, said = BROKEN[what]
    project.write("rows.jsonl", content)
    done = project.run("eval", code=1)
    assert said in done.err and "hint: " in done.err
    assert done.out == "" and not project.journal().exists()
    assert len(done.err.splitlines()) <= 11


def test_missing_columns_fail_their_own_rows_only(project: Any) -> None:
    lines = [row(n) for n in range(40)]
    lines[7] = '{"id": "q7", "a": "7"}'
    lines[9] = '{"id": "q9", "q": null, "a": "9"}'
    lines[11] = '{"id": "q11", "q": "11?"}'
    project.write("rows.jsonl", "\n".join(lines))
    project.run("eval", "-q", code=3)
    last = project.last()
    assert len(last) == 40
    seven = last["q7", 0]
    assert (seven["outcome"], seven["reward"], seven["failure"]["boundary"]) == ("failed", None, "config")
    assert "`q`" in seven["failure"]["message"] or "'q'" in seven["failure"]["message"]
    assert last["q11", 0]["outcome"] != "scored" and last["q11", 0]["reward"] is None, "no label is never a 0"
    assert sum(line["outcome"] == "scored" for line in last.values()) >= 37
    done = project.run("validate", "--dataset", "rows.jsonl", code=1)
    assert "q" in done.out and "8" in done.out


def test_odd_but_honest_files_are_read(project: Any) -> None:
    lines = [row(0), "", row(1, note="\u2028 a line separator"), "   ", row(2, emoji="🙂")]
    project.write("rows.jsonl", b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    project.run("eval", "-q")
    assert {key[0] for key in project.last()} == {"q0", "q1", "q2"}


def test_control_characters_are_kept_and_never_reach_the_terminal(project: Any) -> None:
    asked = "NUL \0, escape \x1b[2J, backspace \b, separator \u2028, emoji 🙂"
    project.write("rows.jsonl", json.dumps({"id": "q\x1b[2J", "q": asked, "a": asked}) + "\n")
    project.run("eval", "-q")
    (line,) = project.lines()
    assert line["messages"][0]["content"] == asked and line["reward"] == 1.0
    for words in (("runs/it",), ("runs/it", "0"), ("runs/it", "--list")):
        assert not {"\x1b", "\0", "\b"} & set(project.run("show", *words).out), words
    assert "1 re-used, 0 to run" in project.run("plan").out
    project.run("export", "runs/it", "--format", "trl-sft")


def test_fields_of_ten_megabytes(project: Any) -> None:
    rows = [row(n, q="x" * 10_000_000) for n in range(3)] + [row(n) for n in range(3, 6)]
    project.write("rows.jsonl", "\n".join(rows))
    project.run("eval", "-q")
    assert {line["reward"] for line in project.last().values()} == {1.0}
    assert len(project.last()["q1", 0]["messages"][0]["content"]) == 10_000_000
    project.run("show", "runs/it", "q1")
    assert "6 re-used, 0 to run" in project.run("plan").out


def test_a_hundred_thousand_rows_are_planned_quickly(project: Any) -> None:
    project.rows(100_000)
    started = time.monotonic()
    assert "100,000 rows x 1 attempt: 100,000 to run" in project.run("plan").out
    assert time.monotonic() - started < 15
    project.run("eval", "-q", "--rows", "99990-99999")
    assert len(project.last()) == 10
    assert "100,000 rows x 1 attempt: 10 re-used, 99,990 to run" in project.run("plan").out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_broken_tables(project: Any, kind: str) -> None:
    if kind == "csv":
        project.write("rows.csv", 'id,q,a\nq0,0?,0\nq1,"1?,1\n')
    else:
        project.write("rows.parquet", b"PAR1" + b"\0" * 400)
    done = project.run("eval", f"rows.{kind}", code=1)
    assert f"rows.{kind}" in done.err and "hint: " in done.err
