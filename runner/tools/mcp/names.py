"""What a server's tools are called: `files/read_file` in the file and to people, a name without `/` to the model."""

from __future__ import annotations

import re
from hashlib import sha256

_LONGEST = 64
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def wire_name(name: str) -> str:
    """The name that endpoints take: `files/read_file` is `files__read_file`; other names are as they are.

    One that is too long, or that only differed in signs no endpoint takes, ends in a digest of the whole.
    """
    if "/" not in name:
        return name
    plain = name.replace("/", "__")
    legal = _ILLEGAL.sub("_", plain)
    if legal == plain and len(legal) <= _LONGEST:
        return legal
    return f"{legal[: _LONGEST - 9]}_{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
