"""`Acceptor`: takes connections from a listening socket, many in one turn of the event loop.

uvloop takes one in each turn. A training step opens hundreds at one moment, and behind the requests of the first ones
the last would wait for seconds (`benchmarks/serve_rate.py`).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeAlias

_AT_ONCE = 32
"""Connections taken in one turn: not all that wait, so that the other workers get theirs."""
_PAUSE = 0.5
"""Seconds without taking any when the process has no file left to open."""
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Make: TypeAlias = Callable[[], asyncio.Protocol]

log = logging.getLogger(__name__)


class Acceptor:
    """Has each connection heard by a protocol that `make` makes for it, until `close`. Takes over the socket.

    With `secure`, a TLS context and the seconds of its handshake, each that has shaken hands.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Make,
        backlog: int,
        secure: tuple[ssl.SSLContext, float | None] | None = None,
    ) -> None:
        self._listening = listening
        self._make = make
        self._secure: dict[str, Any] = {}
        if secure is not None:
            self._secure = {"ssl": secure[0], "ssl_handshake_timeout": secure[1]}
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        listening.setblocking(False)
        listening.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Take no more."""
        self._closed = True
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()

    def _watch(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                taken, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _SCARCE:
                    raise
                log.error("connections wait to be accepted: %s", error.strerror)
                self._loop.remove_reader(self._listening.fileno())
                self._loop.call_later(_PAUSE, self._watch)
                return
            task = self._loop.create_task(self._open(taken))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, taken: socket.socket) -> None:
        taken.setblocking(False)
        try:
            await self._loop.connect_accepted_socket(self._make, taken, **self._secure)
        except OSError as error:  # it has gone already, or does not speak TLS
            log.debug("a connection failed: %r", error)
            taken.close()
