"""From a path to the reader of its format, or a sentence about why it is no dataset."""

from __future__ import annotations

import stat
from pathlib import Path

from runner.datasets.dataset import DatasetError
from runner.datasets.reader import Reader

_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_PACKED = {
    b"\x1f\x8b": ("is compressed with gzip", "gunzip -k"),
    b"PK\x03\x04": ("is a zip archive", "unzip"),
    b"\x28\xb5\x2f\xfd": ("is compressed with zstd", "unzstd"),
    b"BZh": ("is compressed with bzip2", "bunzip2 -k"),
    b"\xfd7zXZ": ("is compressed with xz", "unxz -k"),
}


def open_reader(path: Path, format: str | None) -> Reader:
    """The reader for `path`. Raises `DatasetError` if it is not a file of that format."""
    head = _head(path)
    kind = format or _format_of(path, head)
    if kind == "parquet":
        from runner.datasets.parquet import ParquetReader

        if head and not head.startswith(b"PAR1"):
            raise DatasetError(f"{path}: is not a Parquet file", "`format` may be jsonl, csv or parquet")
        _refuse_empty(path, head)
        return ParquetReader(path)
    _refuse_empty(path, head)
    _refuse_binary(path, head)
    if kind == "csv":
        from runner.datasets.csv import CsvReader

        return CsvReader(path)
    if kind == "jsonl":
        from runner.datasets.jsonl import JsonlReader, array_hint

        if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            raise DatasetError(f"{path}: holds one JSON array, not one record a line", array_hint(path))
        return JsonlReader(path)
    raise DatasetError(f"{path}: there is no dataset format `{kind}`", "formats: jsonl, csv, parquet")


def _head(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DatasetError(f"{path}: is a folder, not a file", _files_in(path))
        if not stat.S_ISREG(mode):
            raise DatasetError(f"{path}: is not a regular file; a dataset is read more than once", "save it to a file")
        with path.open("rb") as file:
            return file.read(4096)
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file", _near(path)) from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _files_in(folder: Path) -> str:
    names = sorted(each.name for each in folder.iterdir() if each.suffix.lower() in _FORMATS)
    return "it holds " + ", ".join(f"`{name}`" for name in names[:8]) if names else ""


def _near(path: Path) -> str:
    from difflib import get_close_matches

    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        return f"there is no folder `{path.parent}` either"
    match = get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"did you mean `{path.parent / match[0]}`?" if match else ""


def _format_of(path: Path, head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    for magic, (what, command) in _PACKED.items():
        if head.startswith(magic):
            raise DatasetError(f"{path}: {what}", f"unpack it first: `{command} {path}`")
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        words = f"`{path.suffix}` is no known ending" if path.suffix else "the name has no ending"
        raise DatasetError(
            f"{path}: the format cannot be told: {words}",
            'name it .jsonl, .csv or .parquet, or set `format = "jsonl"` in [dataset]',
        )
    return kind


def _refuse_empty(path: Path, head: bytes) -> None:
    if not head.strip():
        what = "holds only blank lines" if head and path.stat().st_size <= len(head) else "is empty"
        if not head or path.stat().st_size <= len(head):
            raise DatasetError(f"{path}: the file {what}")


def _refuse_binary(path: Path, head: bytes) -> None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DatasetError(f"{path}: is UTF-16 text", f"save it as UTF-8: `iconv -f UTF-16 -t UTF-8 {path}`")
    for magic, (what, command) in _PACKED.items():
        if head.startswith(magic):
            raise DatasetError(f"{path}: {what}", f"unpack it first: `{command} {path}`")
    if b"\0" in head:
        raise DatasetError(f"{path}: is a binary file, not text", "datasets are JSON lines, CSV or Parquet")
