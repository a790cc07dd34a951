"""Values that point out of the file: code (`Reference`), paths (`Location`), texts (`Text`) and schemas (`SchemaText`).

A model parses the words only. `load` then anchors each value in the folder of the file that said it, which through
`extends` need not be the file that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from runner.records.quick import quick

REFERENCE_PATTERN = (
    r"^(?:(?![^:]*\.py:)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\.{1,2}/[^:]+\.py):[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$"
)

ENTRYPOINT_PATTERN = r"^(?:\.{1,2}/[^:]+\.py|(?:[A-Za-z_]\w*\.)+(?!py$)[a-z_]\w*)$"
"""A module by itself: what it holds is found. A last part with a capital is a class whose colon was forgotten."""


def _plain(parse: Any) -> CoreSchema:
    """A core schema that is one function, written back as the words of the file."""
    said = core_schema.plain_serializer_function_ser_schema(lambda value: value.said())
    return core_schema.no_info_plain_validator_function(parse, serialization=said)


def _file_of(value: Any) -> str | None:
    """`x` of `{ file = "x" }`, else None."""
    if isinstance(value, Mapping) and set(value) == {"file"} and isinstance(value["file"], str):
        return str(value["file"])
    return None


@quick
class Reference:
    """Code by name: `"package.module:name"`, or `"./file.py:name"` relative to the file that says it.

    `folder` is that file's folder, absolute; it is where a relative file is looked for, and what joins `sys.path`.
    An entrypoint is a reference without a name: what the module holds is found by itself.
    """

    text: str
    folder: Path = field(default_factory=Path)

    @property
    def target(self) -> str:
        """The part before the colon: a module's name or a file's path as written."""
        return self.text.rpartition(":")[0] or self.text

    @property
    def name(self) -> str:
        """The part after the colon: an attribute, dotted if nested; empty for an entrypoint."""
        return self.text.rpartition(":")[2] if ":" in self.text else ""

    @property
    def file(self) -> Path | None:
        """The file to load, absolute, or None when the target is a module."""
        return (self.folder / self.target).resolve() if self.target.endswith(".py") else None

    def anchored(self, folder: Path) -> Reference:
        return replace(self, folder=folder)

    def said(self) -> str:
        return self.text

    @classmethod
    def entrypoint(cls, text: str) -> Reference | None:
        """The reference to a whole module, or None where `text` is none: then it may be another kind of word."""
        return cls(text) if re.fullmatch(ENTRYPOINT_PATTERN[1:-1], text) else None

    @classmethod
    def parse(cls, value: Any) -> Reference:
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "a string", {})
        if not re.fullmatch(REFERENCE_PATTERN[1:-1], value):
            raise PydanticCustomError("reference", "a reference", {"text": value})
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _plain(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        examples = ["package.module:name", "./tools.py:search"]
        return {"type": "string", "pattern": REFERENCE_PATTERN, "examples": examples}


@quick
class Location:
    """A path as written, relative to the file that says it. `path` is absolute."""

    text: str
    folder: Path = field(default_factory=Path)

    @property
    def path(self) -> Path:
        return (self.folder / self.text).resolve()

    def anchored(self, folder: Path) -> Location:
        return replace(self, folder=folder)

    def said(self) -> str:
        return self.text

    @classmethod
    def parse(cls, value: Any) -> Location:
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "a string", {})
        if not value or "\0" in value:
            raise PydanticCustomError("empty", "a path", {})
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _plain(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "pattern": r"^[^\u0000]*$"}


@quick
class Text:
    """A text in the file, or in a file beside it: `"…"` or `{ file = "…" }`.

    `text` is the content either way once the config is loaded; `file` says where it was read from, or is None.
    """

    text: str
    file: Location | None = None

    def anchored(self, folder: Path) -> Text:
        """With its file read. Raises OSError or UnicodeDecodeError when it cannot be."""
        if self.file is None:
            return self
        file = self.file.anchored(folder)
        return Text(file.path.read_text("utf-8"), file)

    def said(self) -> Any:
        return self.text if self.file is None else {"file": self.file.text}

    @classmethod
    def parse(cls, value: Any) -> Text:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value)
        name = _file_of(value)
        if name is None:
            raise PydanticCustomError("text_or_file", "a string or a file", {"table": isinstance(value, Mapping)})
        return cls("", Location.parse(name))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _plain(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, FILE_SCHEMA]}


@quick
class SchemaText:
    """A JSON Schema: a table in the file, or `{ file = "…" }` naming a JSON file beside it."""

    table: Mapping[str, Any]
    file: Location | None = None

    def anchored(self, folder: Path) -> SchemaText:
        """With its file read. Raises OSError, or ValueError when it holds no JSON object."""
        if self.file is None:
            return self
        import json

        file = self.file.anchored(folder)
        table = json.loads(file.path.read_text("utf-8"))
        if not isinstance(table, dict):
            raise ValueError("a JSON Schema must be an object")
        return SchemaText(table, file)

    def said(self) -> Any:
        return dict(self.table) if self.file is None else {"file": self.file.text}

    @classmethod
    def parse(cls, value: Any) -> SchemaText:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise PydanticCustomError("dict_type", "a table", {})
        name = _file_of(value)
        return cls(value) if name is None else cls({}, Location.parse(name))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return _plain(cls.parse)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "object"}


FILE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"file": {"type": "string", "minLength": 1}},
    "required": ["file"],
    "additionalProperties": False,
}
