"""Why a server cannot listen, in one sentence."""

from __future__ import annotations

import errno
import socket

from runner.cli.exit import CommandError


def cannot_listen(error: OSError, host: str, port: int) -> Exception:
    """What to raise for an OSError that binding `host` and `port` raised: a sentence of ours, or the error itself."""
    other = "choose another with `--port`, or `--port 0` for any free one"
    if isinstance(error, socket.gaierror):
        return CommandError(f"the host `{host}` is not known", "`--host 127.0.0.1` serves this machine alone")
    if error.errno == errno.EADDRINUSE:
        return CommandError(f"port {port} of {host} is in use by another process", other)
    if error.errno == errno.EADDRNOTAVAIL:
        return CommandError(f"{host} is no address of this machine", "`--host 127.0.0.1` serves this machine alone")
    if error.errno == errno.EACCES:
        return CommandError(f"no permission to listen on port {port}", other)
    return error
