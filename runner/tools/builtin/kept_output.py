"""`KeptOutput`: the head and the tail of what a command says, in bounded memory, while it is still speaking."""

from __future__ import annotations


class KeptOutput:
    """At most `limit` bytes of all that is added: the first half of them and the last."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many bytes in the middle were not kept."""
        return self._dropped

    def add(self, data: bytes) -> None:
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            over = len(self._tail) - self._tail_room
            if over > self._tail_room:  # in steps: moving the tail for every byte would cost its length each time
                self._drop(over)

    def text(self) -> str:
        """What was kept, with the cut said in its place."""
        self._drop(len(self._tail) - self._tail_room)
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n[… {self._dropped:,} bytes cut …]\n{tail}" if self._dropped else head + tail

    def _drop(self, count: int) -> None:
        if count > 0:
            del self._tail[:count]
            self._dropped += count
