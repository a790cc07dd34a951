"""A text file as bytes that must survive: its encoding, line endings and end are kept, whatever is edited between."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class NotText(ValueError):
    """Bytes that nobody edits as text, or text that the file's encoding cannot hold. The message says which."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file, with what it takes to write it back: `mark` is its byte order mark, if it has one."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def newline(self) -> str:
        """What ends its lines: the only one there is; LF for a file that mixes them or has none."""
        pairs, bare = self.text.count("\r\n"), self.text.count("\n")
        return "\r\n" if pairs and pairs == bare else "\n"

    def with_text(self, text: str) -> TextFile:
        return TextFile(text, self.encoding, self.mark)

    def data(self) -> bytes:
        """The file's bytes. Raises `NotText` for a sign that its encoding has not."""
        try:
            return self.mark + self.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            sign = self.text[error.start]
            raise NotText(f"the file is written in {self.encoding}, which has no {sign!r}") from None


def read_text(data: bytes) -> TextFile:
    """The text in some bytes: UTF-8, UTF-16 with its mark, else Latin-1, which keeps any byte. Raises `NotText`."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return TextFile(data[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError:
                break
    if b"\0" in data[:8192]:
        raise NotText("it is a binary file")
    try:
        return TextFile(data.decode("utf-8"))
    except UnicodeDecodeError:
        return TextFile(data.decode("latin-1"), "latin-1")
