"""`Connections`: keep-alive connections to any number of origins, shared by all the models and callbacks of a process.

An origin costs nothing once it is idle: a controller may hand out a new host or port for every step, so what nobody
has used for a while is closed and forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from runner.models.address import Origin, unsendable_header
from runner.models.http1 import IDLE_TIME, Pool
from runner.models.http1_connection import Bounds
from runner.models.http1_parser import Answer, Sink
from runner.models.letter import Letter, Proxies
from runner.models.outgoing import Outgoing
from runner.models.transport import Carrier, Session, TransportError, addressed, send


class Connections:
    """Pools by origin. Bound to the event loop of its first use.

    At most `max` connections are open to an origin: further posts wait, within their own deadline. At most `idle` are
    kept while nobody needs them, for `idle_time` seconds.
    """

    def __init__(self, *, max: int | None = None, idle: int | None = None, idle_time: float = IDLE_TIME) -> None:
        self.proxies = Proxies()
        self._max = max
        self._idle = idle
        self._idle_time = idle_time
        self._outgoing = Outgoing()
        self._pools: dict[Origin, Pool] = {}
        self._session: Session | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def origins(self) -> int:
        """How many origins of plain http are remembered."""
        return len(self._pools)

    @property
    def open(self) -> int:
        """How many connections of plain http are open."""
        return sum(len(pool.open) for pool in self._pools.values())

    def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        timeout: float,
        max_body: int,
        body_wait: float | None = None,
        sink: Sink | None = None,
    ) -> Coroutine[Any, Any, Answer]:
        """Post JSON once, within `timeout` seconds. No redirect is followed. Raises TransportError.

        An answer larger than `max_body` bytes is an error, unless `body_wait` is given. Then the status is what
        matters: once it is here, its body may take so many seconds more, and `answer.body` is as much of it as came
        (`answer.whole` tells whether that was all); of a plain 2xx the headers are left out. `sink` takes the body of
        an event stream.
        """
        bad = unsendable_header(headers) if headers else ""
        if bad:
            raise TransportError(f"the header `{bad}` holds a character that HTTP cannot carry", retry=False)
        letter = addressed(url, headers, self.proxies)
        return send(self.carrier(letter), letter, body, Bounds(timeout, max_body, body_wait), sink)

    def carrier(self, letter: Letter) -> Carrier:
        """What takes this letter to its origin now. Not to be kept: an idle origin is forgotten."""
        if letter.head is not None:
            pool = self._pools.get(letter.origin)
            if pool is not None:
                return pool
        if self._closed:
            raise TransportError("this program is closing its connections", retry=False)
        if letter.head is not None:
            host, port = letter.origin
            pool = Pool(host, port, max=self._max, idle=self._idle, idle_time=self._idle_time, outgoing=self._outgoing)
            self._pools[letter.origin] = pool
            self._watch()
            return pool
        if self._session is None:
            self._session = Session(max=self._max, idle=self._idle)
        return self._session

    def _watch(self) -> None:
        if self._sweeping is None and self._pools:
            self._sweeping = asyncio.get_running_loop().call_later(self._idle_time / 2, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for too long, and forget the origins with nothing open."""
        self._sweeping = None
        for origin, pool in list(self._pools.items()):
            pool.close_idle()
            if not pool.in_use:
                del self._pools[origin]
        self._watch()

    async def aclose(self) -> None:
        """Drop every connection. Exchanges under way end with a TransportError."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()
        if self._session is not None:
            await self._session.aclose()
            self._session = None
