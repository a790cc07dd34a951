"""`Capture`: what a stream said, its head and its tail, in bounded memory however long it was."""

from __future__ import annotations


class Capture:
    """Keeps at most `limit` bytes: the first half as it came, and what came last.

    The cut is after the first `(limit + 1) // 2` bytes. `dropped` counts what was cut.
    """

    __slots__ = ("_head", "_room", "_tail", "_tail_size", "total")

    def __init__(self, limit: int) -> None:
        self._room = (max(limit, 0) + 1) // 2
        self._tail_size = max(limit, 0) - self._room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        if len(self._head) < self._room:
            taken = self._room - len(self._head)
            self._head += data[:taken]
            data = data[taken:]
        if data and self._tail_size:
            self._tail += data[-self._tail_size :]
            if len(self._tail) > 2 * self._tail_size + 65536:  # rarely: each time moves what is kept
                del self._tail[: -self._tail_size]

    @property
    def dropped(self) -> int:
        return self.total - len(self.kept())

    def kept(self) -> bytes:
        tail = self._tail[-self._tail_size :] if self._tail_size else b""
        return bytes(self._head) + bytes(tail)
