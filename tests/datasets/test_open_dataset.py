"""Reading datasets of every format: order, names, places of faults."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.datasets.dataset import DatasetError
from runner.datasets.open import open_dataset


def jsonl(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def table(path: Path, records: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return path


def parquet(path: Path, records: list[dict[str, Any]], group: int = 7) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path, row_group_size=group)
    return path


MAKERS = {"jsonl": jsonl, "csv": table, "parquet": parquet}


def fault(path: Path, **options: Any) -> tuple[str, str]:
    """The message with the folder's name taken out, and the hint."""
    with pytest.raises(DatasetError) as caught:
        list(open_dataset(path, **options).rows())
    return str(caught.value).replace(f"{path.parent}/", ""), caught.value.hint.replace(f"{path.parent}/", "")


@pytest.mark.parametrize("format", MAKERS)
def test_every_format_gives_the_same_rows(tmp_path: Path, format: str) -> None:
    records = [{"q": f'say "{number}",\nthen é', "a": str(number)} for number in range(40)]
    dataset = open_dataset(MAKERS[format](tmp_path / f"data.{format}", records))
    for _ in range(2):
        rows = list(dataset.rows())
        assert [dict(row.data) for row in rows] == records
        assert [row.index for row in rows] == list(range(40))
        assert [row.id for row in rows] == [str(number) for number in range(40)]
    assert dataset.count() == 40
    assert dataset.columns() == ("q", "a")
    assert dataset.fingerprint == hashlib.sha256(dataset.path.read_bytes()).hexdigest()
    canonical = json.dumps(records[3], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert rows[3].digest == hashlib.sha256(canonical.encode()).hexdigest()[:16]


@pytest.mark.parametrize("format", MAKERS)
def test_selection_then_shuffle_then_limit(tmp_path: Path, format: str) -> None:
    path = MAKERS[format](tmp_path / f"data.{format}", [{"n": str(number)} for number in range(50)])

    def values(**options: Any) -> list[str]:
        dataset = open_dataset(path, **options)
        found = [row.data["n"] for row in dataset.rows()]
        assert len(found) == dataset.count()
        return found

    assert values(rows="40-42,3", limit=3) == ["3", "40", "41"]
    shuffled = values(shuffle_seed=7)
    assert sorted(shuffled, key=int) == [str(number) for number in range(50)]
    assert shuffled != sorted(shuffled, key=int)
    assert values(shuffle_seed=7, limit=10) == shuffled[:10]
    assert values(shuffle_seed=8) != shuffled
    assert sorted(values(shuffle_seed=7, rows="10-13"), key=int) == ["10", "11", "12", "13"]
    rows = list(open_dataset(path, shuffle_seed=7).rows())
    assert [str(row.index) for row in rows] == shuffled
    if format != "parquet":
        assert [row.line for row in rows] == [row.index + (1 if format == "jsonl" else 2) for row in rows]


def test_lines_are_counted_through_blank_and_quoted_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"n": 1}\r\n\r\n  \n{"n": 2}\n\n{"n": 3}')
    assert [(row.index, row.line, row.data["n"]) for row in open_dataset(path).rows()] == [
        (0, 1, 1),
        (1, 4, 2),
        (2, 6, 3),
    ]
    again = {(row.index, row.line, row.data["n"]) for row in open_dataset(path, shuffle_seed=1).rows()}
    assert again == {(0, 1, 1), (1, 4, 2), (2, 6, 3)}
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfn,t\r\n1,"two\r\nlines"\r\n\r\n2,x\r\n')
    expected = [(0, 2, "1", "two\r\nlines"), (1, 5, "2", "x")]
    for seed in (None, 1):
        rows = open_dataset(path, shuffle_seed=seed).rows()
        assert sorted((row.index, row.line, row.data["n"], row.data["t"]) for row in rows) == expected


@settings(max_examples=60, deadline=None)
@given(
    records=st.lists(
        st.fixed_dictionaries({"a": st.text(max_size=9), "b,": st.text(max_size=9)}).filter(
            lambda r: r["a"] or r["b,"]
        ),
        min_size=1,
        max_size=6,
    ),
    seed=st.integers(0, 5),
)
def test_csv_fields_come_back_as_they_were(tmp_path_factory: Any, records: list[dict[str, str]], seed: int) -> None:
    records = [{key: value.replace("\0", "") + "." for key, value in record.items()} for record in records]
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["a", "b,"], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(records)
    assert [dict(row.data) for row in open_dataset(path).rows()] == records
    shuffled = {row.index: dict(row.data) for row in open_dataset(path, shuffle_seed=seed).rows()}
    assert [shuffled[index] for index in range(len(records))] == records


def test_columns_are_mapped_and_the_originals_stay(tmp_path: Path) -> None:
    record = {"question": "Q", "meta": {"answer": {"value": 4}}, "a.b": "dotted"}
    path = jsonl(tmp_path / "a.jsonl", [record, {"question": "R", "ground_truth": "stale"}])
    columns = {"user_prompt": "question", "ground_truth": "meta.answer.value", "x": "a.b"}
    first, second = open_dataset(path, columns=columns).rows()
    assert first.data == {**record, "user_prompt": "Q", "ground_truth": 4, "x": "dotted"}
    assert second.data == {"question": "R", "user_prompt": "R"}


def test_ids(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"meta": {"id": 7}}, {"meta": {"id": "x"}}])
    assert [row.id for row in open_dataset(path, id_column="meta.id").rows()] == ["7", "x"]
    path = jsonl(tmp_path / "b.jsonl", [{"id": 1}, {"id": 2}, {"id": "1"}, {"ID": 4}])
    assert fault(path, id_column="id") == (
        "b.jsonl:3: the id `1` is used twice, first on line 1",
        "ids in `id` must differ",
    )
    assert fault(path, id_column="id", shuffle_seed=1)[0].endswith(("first on line 1", "first on line 3", "or empty"))
    message = ("b.jsonl:4: the id column `id` is missing or empty", "there is `ID`")
    assert fault(path, id_column="id", rows="3") == message
    path = parquet(tmp_path / "c.parquet", [{"id": "a"}, {"id": "a"}])
    assert fault(path, id_column="id")[0] == "c.parquet: row 1: the id `a` is used twice, first on row 0"


def test_a_fixed_header_is_checked_at_once(tmp_path: Path) -> None:
    for path in (table(tmp_path / "a.csv", [{"question": "q"}]), parquet(tmp_path / "a.parquet", [{"question": "q"}])):
        with pytest.raises(DatasetError, match="there is no column `qestion`") as caught:
            open_dataset(path, columns={"user_prompt": "qestion"})
        assert caught.value.hint == "did you mean `question`?"
        with pytest.raises(DatasetError, match="there is no column `ticket`"):
            open_dataset(path, id_column="ticket")
        assert open_dataset(path, columns={"id": "question"}, id_column="id").count() == 1


def test_missing_columns_are_found_with_their_rows(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"q": 1, "m": {"x": 1}}, {"q": None, "m": {}}, {"m": 3}])
    found = open_dataset(path).missing([("q",), ("m", "x"), ("m",), ("z",)])
    assert found == [(("q",), 2, 3), (("m", "x"), 1, 2), (("z",), 0, 1)]
    assert open_dataset(path, limit=1).missing([("q",), ("m", "x")]) == []


JSONL_FAULTS = {
    b'{"a": 1}\n{"a": }\n': ("data.jsonl:2:7: not JSON: a value is missing or is no JSON", ""),
    b'{"a": 1,}\n': ("data.jsonl:1:9: not JSON: ", ""),
    b'{"a": "x}\n': ("data.jsonl:1:7: not JSON: a string is not closed", ""),
    b'{"a": "x\ty"}\n': ("data.jsonl:1:9: not JSON: a raw control character", ""),
    b'{"a": 1} {"a": 2}\n': ("data.jsonl:1:10: not JSON: something follows the record on its line", ""),
    b'{\n"a": 1\n}\n': ("data.jsonl:1:2: not JSON: ", "each record stands on one line"),
    b'{"a": "\\x"}\n': ("data.jsonl:1:8: not JSON: an escape that JSON does not know", ""),
    b'{"a": NaN}\n': ("data.jsonl:1: `NaN` is not JSON", "write `null`"),
    b'{"a": 1e999}\n': ("data.jsonl:1: column `a` holds a number that JSON cannot hold", ""),
    b'{"b": 1, "a": ["\\ud800"]}\n': ("data.jsonl:1: column `a` holds a lone surrogate (U+D800)", ""),
    b"{}\n[1, 2]\n": ("data.jsonl:2: the record is an array, not an object", "JSON lines are needed"),
    b'"text"\n': ("data.jsonl:1: the record is a string, not an object", "each line holds one object"),
    b"null\n": ("data.jsonl:1: the record is null, not an object", ""),
    b"3\n": ("data.jsonl:1: the record is a number, not an object", ""),
    b'{}\n{"a": "caf\xe9"}\n': ("data.jsonl:2:11: byte 0xe9 is not UTF-8 text", "iconv -f LATIN1"),
    b'[{"a": 1}]\n': ("data.jsonl: holds one JSON array, not one record a line", "jq -c '.[]' data.jsonl"),
    b"": ("data.jsonl: the file is empty", ""),
    b"\n \n": ("data.jsonl: the file holds only blank lines", ""),
    b"\n" * 9000: ("data.jsonl: the dataset has no record", ""),
    b"\x00\x01\x02": ("data.jsonl: is a binary file, not text", ""),
    b"\x1f\x8b\x08\x00": ("data.jsonl: is compressed with gzip", "gunzip"),
    '{"a": 1}'.encode("utf-16"): ("data.jsonl: is UTF-16 text", "iconv -f UTF-16"),
    b'{"a": ' + b"[" * 100_000: ("data.jsonl:1: the record is nested too deeply", ""),
    b'{"a": ' + b"9" * 5000 + b"}": (
        "data.jsonl:1: Exceeds the limit (4300 digits)",
        "write such a number as a string",
    ),
}


@pytest.mark.parametrize("content", JSONL_FAULTS, ids=lambda content: repr(content[:20]))
def test_faults_in_json_lines_have_their_place(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    message, hint = fault(path)
    expected, expected_hint = JSONL_FAULTS[content]
    assert message.startswith(expected)
    assert expected_hint in hint


CSV_FAULTS = {
    b"a,b\n1,2\n\n3\n": ("data.csv:4: the record has 1 field, the header has 2", "double quotes"),
    b"a,b\n1,2,3\n": ("data.csv:2: the record has 3 fields, the header has 2", "double quotes"),
    b'a,b\n1,2\n3,"x\ny\n': ("data.csv:3: a quote is opened in this record and never closed", "written twice"),
    b'a,b\n1,"x"y\n': ("data.csv:2: a closing quote is followed by text", "written twice"),
    b"a,,c\n1,2,3\n": ("data.csv:1: column 2 has no name", "the first line must name every column"),
    b"a,b,a\n1,2,3\n": ("data.csv:1: columns 1 and 3 are both called `a`", ""),
    b"a,b\n": ("data.csv: the dataset has no record", ""),
    b"a,b\n1,2\n3,\xff\n": ("data.csv:3:3: byte 0xff is not UTF-8 text", "iconv"),
    b"": ("data.csv: the file is empty", ""),
}


@pytest.mark.parametrize("content", CSV_FAULTS, ids=lambda content: repr(content[:20]))
def test_faults_in_csv_have_their_place(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    message, hint = fault(path)
    expected, expected_hint = CSV_FAULTS[content]
    assert message.startswith(expected)
    assert expected_hint in hint


def test_separators(tmp_path: Path) -> None:
    for name, text in (("a.csv", "x;y\n1;2,3\n"), ("a.tsv", "x\ty\n1\t2,3\n")):
        (tmp_path / name).write_text(text)
        assert [dict(row.data) for row in open_dataset(tmp_path / name).rows()] == [{"x": "1", "y": "2,3"}]


def test_what_is_no_dataset(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "data.jsonl", [{"a": 1}])
    assert fault(tmp_path / "dta.jsonl") == ("dta.jsonl: there is no such file", "did you mean `data.jsonl`?")
    assert fault(tmp_path / "no" / "data.jsonl")[0] == "data.jsonl: there is no such file"
    folder = tmp_path / "folder"
    folder.mkdir()
    jsonl(folder / "x.jsonl", [{}])
    assert fault(folder) == ("folder: is a folder, not a file", "it holds `x.jsonl`")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert fault(tmp_path / "pipe.jsonl")[0].startswith("pipe.jsonl: is not a regular file")
    path.rename(tmp_path / "data.xlsx")
    message, hint = fault(tmp_path / "data.xlsx")
    assert message == "data.xlsx: the format cannot be told: `.xlsx` is no known ending"
    assert 'format = "jsonl"' in hint
    assert open_dataset(tmp_path / "data.xlsx", format="jsonl").count() == 1
    assert fault(tmp_path / "data.xlsx", format="xml")[0] == "data.xlsx: there is no dataset format `xml`"
    assert fault(tmp_path / "data.xlsx", format="parquet")[0] == "data.xlsx: is not a Parquet file"
    (tmp_path / "data.json").write_text('[\n{"a": 1}\n]')
    assert fault(tmp_path / "data.json")[0] == "data.json: holds one JSON array, not one record a line"
    jsonl(tmp_path / "lines.json", [{"a": 1}, {"a": 2}])
    assert open_dataset(tmp_path / "lines.json").count() == 2


def test_a_selection_past_the_end(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "data.jsonl", [{"a": 1}] * 3)
    expected = "data.jsonl: row 9 is selected, and the file has 3 rows (0 to 2)"
    assert fault(path, rows="1,9")[0] == expected
    assert fault(path, rows="1,9", shuffle_seed=1)[0] == expected


def test_parquet_values_become_json(tmp_path: Path) -> None:
    import datetime
    import decimal

    record = {
        "t": datetime.date(2024, 5, 1),
        "d": decimal.Decimal("1.50"),
        "l": [{"x": 1}],
        "n": None,
        "f": 0.5,
        "b": True,
    }
    (row,) = open_dataset(parquet(tmp_path / "a.parquet", [record])).rows()
    assert row.data == {"t": "2024-05-01", "d": "1.50", "l": [{"x": 1}], "n": None, "f": 0.5, "b": True}
    path = parquet(tmp_path / "b.parquet", [{"f": 1.0}, {"f": float("nan")}])
    assert fault(path)[0] == "b.parquet: row 1: column `f` holds a number that JSON cannot hold (NaN or infinite)"
    path = parquet(tmp_path / "c.parquet", [{"raw": b"\xff"}])
    assert fault(path)[0].startswith("c.parquet: a value in rows 0 to 0 cannot be read: ")


def test_a_broken_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [{"text": str(number) * 100} for number in range(2000)], group=500)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert fault(path)[0].startswith("a.parquet: not a readable Parquet file: ")
    path.write_bytes(whole[:200] + b"\xaa" * 4000 + whole[4200:])
    assert fault(path)[0].startswith("a.parquet: not a readable Parquet file: ")


def test_parquet_without_pyarrow(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", [{"a": 1}])
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from runner.datasets.open import open_dataset, DatasetError\n"
        "try: open_dataset(sys.argv[1]).count()\n"
        "except DatasetError as error: print(error, '|', error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    expected = f'{path}: reading Parquet needs pyarrow, which is not installed | pip install "osmosis-run[parquet]"'
    assert done.stdout.strip() == expected


def test_opening_json_lines_imports_nothing_heavy(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"a": 1}])
    code = (
        "import sys; from runner.datasets.open import open_dataset; list(open_dataset(sys.argv[1]).rows())\n"
        "print([name for name in ('pyarrow', 'jinja2', 'pydantic', 'asyncio', 'csv') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_large_fields(tmp_path: Path) -> None:
    large = "é" * 5_000_000
    for path in (jsonl(tmp_path / "a.jsonl", [{"a": large}]), table(tmp_path / "a.csv", [{"a": large}])):
        for seed in (None, 3):
            (row,) = open_dataset(path, shuffle_seed=seed).rows()
            assert row.data["a"] == large


@pytest.mark.parametrize(
    "options", [{}, {"id_column": "id"}, {"shuffle_seed": 1}, {"id_column": "id", "shuffle_seed": 1}]
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, options: dict[str, Any]) -> None:
    count = 10_000
    path = jsonl(tmp_path / "a.jsonl", [{"id": f"ticket-{number}", "text": "x" * 200} for number in range(count)])
    tracemalloc.start()
    yielded = sum(1 for _ in open_dataset(path, **options).rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert yielded == count
    assert peak / count < 150 + 50_000 / count
