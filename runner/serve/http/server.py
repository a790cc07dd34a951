"""One worker of the server: hypercorn on sockets that are bound already, from the first request to the end of a drain.

Sockets are bound before anything else happens: a port in use costs nothing, `port = 0` is known at once, and who
connects early waits in the backlog.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from runner.serve.http.app import App

if TYPE_CHECKING:
    from hypercorn.config import Config

BACKLOG = 1024
"""Connections that wait to be accepted: a training step asks for thousands of rollouts at one moment."""
_SETTINGS: dict[str, Any] = {
    "backlog": BACKLOG,
    # Longer than clients keep an idle connection: the side that closes first must not be the one that is written to.
    "keep_alive_timeout": 75.0,
    "keep_alive_max_requests": 1_000_000,
    # Else a peer that says "HTTP/2" and then nothing stays for ever: hypercorn starts no idle timer for it. All
    # answers of ours are ready sooner than this.
    "read_timeout": 120,
    # The app sends its own, formatted once a second.
    "include_date_header": False,
    "include_server_header": False,
    # Unbounded: hypercorn's bounded queue waits for ever for an app that has already answered. `App` reads all it gets.
    "max_app_queue_size": 0,
}
_UNTAKEN = 60_000
"""Milliseconds that a peer may leave an answer untaken; hypercorn itself would wait for ever to hand it over."""
_GRACE = 5.0
"""Seconds that connections have to end once the drain is over."""
_PROTOCOL_FAULT = "Unhandled exception in client_connected_cb"
"""What asyncio says when the task of one connection ends with an error."""

log = logging.getLogger(__name__)


class CannotServe(Exception):
    """The server cannot start, and its user can mend that. `hint` says how."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class House(Protocol):
    """What one worker serves, open."""

    @property
    def app(self) -> App: ...
    async def drain(self, seconds: float) -> int:
        """Accept nothing more, let what plays end within `seconds`. How many could not be finished."""
        ...


@dataclass(frozen=True, slots=True)
class Serving:
    """`drain` in seconds; `hypercorn` are attributes of its `Config`; `ready` is called when requests are answered."""

    drain: float = 30.0
    hypercorn: Mapping[str, Any] = field(default_factory=dict)
    ready: Callable[[], None] | None = None
    draining: Callable[[], None] | None = None


def listen(host: str, port: int, backlog: int = BACKLOG) -> list[socket.socket]:
    """Sockets that listen at every address of `host`; with port 0 all at the same free one. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[socket.socket] = []
    problem: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        where = (address[0], made[0].getsockname()[1] if made and port == 0 else port, *address[2:])
        try:
            made.append(_listening(family, where, backlog))
        except OSError as error:
            # A name may have an address of a family that this machine does not speak.
            if error.errno is not None and "not available" not in os.strerror(error.errno).lower():
                _close(made)
                raise
            problem = error
    if not made:
        raise problem or OSError(f"{host} has no address")
    return made


def _listening(family: int, where: tuple[Any, ...], backlog: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # accepted connections inherit it
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN)
        made.bind(where)
        made.listen(backlog)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _close(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


def url_of(listening: socket.socket, hypercorn: Mapping[str, Any]) -> str:
    """Where others on this machine reach the server: a real address, never "any"."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
    scheme = "https" if hypercorn.get("certfile") and hypercorn.get("keyfile") else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def hypercorn_config(settings: Mapping[str, Any], sockets: Sequence[socket.socket]) -> Config:
    """Hypercorn's configuration: ours, the file's over it, and the sockets by number. Raises `CannotServe`."""
    from hypercorn.config import Config

    config = Config()
    config.errorlog = logging.getLogger("hypercorn.error")
    config.errorlog.setLevel(logging.WARNING)  # where it runs is said by who started it
    for name, value in {**_SETTINGS, **settings}.items():
        if name not in ("debug", "pid_path"):  # ours to do: see `run_worker`
            setattr(config, name, value)
    config.graceful_timeout = _GRACE
    _check_tls(config)
    config.bind = [f"fd://{os.dup(each.fileno())}" for each in sockets]
    return config


def _check_tls(config: Config) -> None:
    if (config.certfile is None) != (config.keyfile is None):
        raise CannotServe("TLS needs both `certfile` and `keyfile` of [serve.hypercorn]", "set the other one, too")
    try:
        config.create_ssl_context()
    except FileNotFoundError:
        missing = [str(path) for path in (config.certfile, config.keyfile, config.ca_certs) if path and not _is(path)]
        raise CannotServe(f"there is no file `{missing[0] if missing else config.certfile}`", "it is for TLS") from None
    except (ssl.SSLError, OSError, ValueError) as error:
        text = f"TLS cannot be set up with `{config.certfile}` and `{config.keyfile}`: {error}"
        raise CannotServe(text, "both are PEM files, and the key is the certificate's own") from None


def _is(path: str) -> bool:
    return Path(path).exists()


async def run_worker(
    open_house: Callable[[int], AbstractAsyncContextManager[House]],
    sockets: Sequence[socket.socket],
    serving: Serving,
    worker: int = 0,
) -> int:
    """Serve on `sockets` until SIGTERM or SIGINT, then drain. How many rollouts could not be finished.

    Whatever stands between a worker and its siblings is in `open_house(worker)`; nothing here knows of them. A second
    signal ends the process at once with 130. Raises `CannotServe`, and what opening the house raises.
    """
    config = hypercorn_config(serving.hypercorn, sockets)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_unhandled)
    if serving.hypercorn.get("debug"):
        loop.set_debug(True)
    asked = asyncio.Event()
    with _signals(asked), pid_file(serving.hypercorn.get("pid_path")):
        async with open_house(worker) as house:
            _collect_in_small_steps()
            return await _serve(house, config, serving, asked)


def _collect_in_small_steps() -> None:
    """Have the garbage collector stop the loop for some 50 ms at most, however many rollouts begin to wait.

    The command line's thresholds are a batch's: with ten thousand rollouts waiting, one of its collections of the
    middle generation takes a second (`benchmarks/serve_accepts.py`). A pause grows with what was made since the last
    but one collection, hence the 0: every second one is of the middle generation. With less than 50,000 there are
    collections, which find nothing, while a few hundred rollouts come and go.
    """
    gc.freeze()
    gc.set_threshold(50_000, 0, 1500)


async def _serve(house: House, config: Config, serving: Serving, asked: asyncio.Event) -> int:
    from runner.serve.http.worker import serve

    over = asyncio.Event()
    served = asyncio.ensure_future(serve(house.app, config, over.wait))
    waiting = asyncio.ensure_future(asked.wait())
    try:
        await asyncio.sleep(0)
        if serving.ready is not None and not served.done():
            serving.ready()
        await asyncio.wait({served, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if served.done():
            await served
            raise RuntimeError("hypercorn ended by itself")
        if serving.draining is not None:
            serving.draining()
        # Status, cancel and health are answered to the end; `drain` closes the door for new starts.
        return await house.drain(serving.drain)
    finally:
        waiting.cancel()
        over.set()
        await _ended(served)


async def _ended(served: asyncio.Future[None]) -> None:
    """Wait for hypercorn, but not for a peer that neither reads nor hangs up."""
    _, left = await asyncio.wait({served}, timeout=_GRACE + 2)
    if left:
        served.cancel()
        await asyncio.wait({served}, timeout=1)
    # It is cancelled by its own time-out when connections outlive the grace: no error of anybody's.
    if served.done() and not served.cancelled() and served.exception() is not None:
        log.warning("hypercorn ended with %r", served.exception())


@contextmanager
def _signals(asked: asyncio.Event) -> Iterator[None]:
    """While the block runs, SIGTERM and SIGINT set `asked`; a second one ends the process at once."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if asked.is_set():
            sys.stderr.write("interrupted\n")
            sys.stderr.flush()
            os._exit(130)
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextmanager
def pid_file(path: str | None) -> Iterator[None]:
    """While the block runs, a file at `path` holds the number of this process."""
    if path is None:
        yield
        return
    file = Path(path)
    file.write_text(f"{os.getpid()}")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no task of ours caught: a peer that fails the TLS handshake is its own business, the rest is logged."""
    error, message = context.get("exception"), context.get("message", "an error outside of any task")
    if isinstance(error, ssl.SSLError | ConnectionError | asyncio.CancelledError):  # cancelled: cut off at the end
        log.debug("a connection failed: %r", error)
    elif message == _PROTOCOL_FAULT:
        # `App` lets nothing through, so it is bytes that hypercorn's parsers did not expect. They end one connection.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        log.info("a connection was dropped, its peer does not keep to HTTP: %r", error)
        log.debug("where hypercorn gave it up", exc_info=error)
    else:
        log.error("%s", message, exc_info=error)
