"""`Access`: the bearer key that controllers present. It is asked for before a byte of the body is read."""

from __future__ import annotations

from collections.abc import Iterable
from hmac import compare_digest


class Access:
    """`key` None asks for nothing. Raises ValueError for a key that would lock everybody out."""

    def __init__(self, key: str | None) -> None:
        if key is not None and (not key or key != key.strip() or not key.isprintable()):
            raise ValueError("the key is empty, or has blanks around it or characters that no header can carry")
        self._key = None if key is None else key.encode()

    @property
    def asks(self) -> bool:
        """Whether a key is configured."""
        return self._key is not None

    def admits(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request with these headers (names in lower case) may come in.

        `Bearer KEY` in any case and with any blanks between, or the bare key. Bytes are compared, in constant time, so
        a key that is not ASCII is a wrong key and no error.
        """
        if self._key is None:
            return True
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1:
            return False
        return compare_digest(_presented(given[0]), self._key)

    def is_for_a_page(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a browser sends this for a page, and there is no key that it would have to know.

        Any page that somebody reads on this machine can send requests to it; browsers say so by an Origin header.
        """
        if self._key is None:
            for name, _ in headers:
                if name == b"origin":
                    return True
        return False


def _presented(value: bytes) -> bytes:
    words = value.strip().split(None, 1)
    if len(words) == 2 and words[0].lower() == b"bearer":
        return words[1]
    return value.strip()
