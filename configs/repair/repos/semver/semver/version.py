"""A version: three numbers and, for one that is not out yet, a tag."""

import re
from dataclasses import dataclass

_FORM = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?")


@dataclass(frozen=True)
class Version:
    major: str
    minor: str
    patch: str
    tag: str = ""

    @classmethod
    def parse(cls, text):
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no version")
        return cls(found[1], found[2], found[3], found[4] or "")

    def key(self):
        # A tagged version comes before the one without a tag.
        return (self.major, self.minor, self.patch, not self.tag, self.tag)

    def __str__(self):
        return f"{self.major}.{self.minor}.{self.patch}" + (f"-{self.tag}" if self.tag else "")
