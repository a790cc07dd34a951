"""`[serve.hypercorn]`: hypercorn's own settings by name, without importing hypercorn.

The lists are checked in, because the import would cost every command 40 ms; a test compares them with hypercorn's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from runner.config.config import RolloutConfig

SETTINGS: dict[str, str] = {
    "access_log_format": "string",
    "accesslog": "path",
    "alpn_protocols": "strings",
    "alt_svc_headers": "strings",
    "backlog": "whole",
    "ca_certs": "path",
    "certfile": "path",
    "ciphers": "string",
    "debug": "switch",
    "dogstatsd_tags": "string",
    "errorlog": "path",
    "h11_max_incomplete_size": "whole",
    "h11_pass_raw_headers": "switch",
    "h2_max_concurrent_streams": "whole",
    "h2_max_header_list_size": "whole",
    "h2_max_inbound_frame_size": "whole",
    "include_date_header": "switch",
    "include_server_header": "switch",
    "keep_alive_max_requests": "whole",
    "keep_alive_timeout": "number",
    "keyfile": "path",
    "keyfile_password": "secret",
    "max_app_queue_size": "whole",
    "pid_path": "path",
    "read_timeout": "whole",
    "root_path": "string",
    "server_names": "strings",
    "ssl_handshake_timeout": "number",
    "startup_timeout": "number",
    "statsd_host": "string",
    "statsd_prefix": "string",
    "verify_flags": "whole",
    "verify_mode": "verify",
}
"""The settings that a file may set, and what each takes."""

WANTED = {
    "string": "a string",
    "path": "a path",
    "strings": "an array of strings",
    "whole": "a whole number",
    "number": "a number",
    "switch": "`true` or `false`",
    "secret": '`{ env = "NAME" }`',
    "verify": "one of: CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED",
}
"""The kinds of values in words."""

OURS: dict[str, str] = {
    "application_path": "the server is the application",
    "bind": "set `serve.host` and `serve.port`",
    "cert_reqs": "write `verify_mode`",
    "daemon": "the server runs in the foreground",
    "graceful_timeout": "set `serve.drain`",
    "group": "it is for unix sockets, and the server listens at `serve.host`",
    "insecure_bind": "the server listens at one address: `serve.host` and `serve.port`",
    "logconfig": "set `[serve.log]`",
    "logconfig_dict": "set `[serve.log]`",
    "logger_class": "set `[serve.log]`",
    "loglevel": "set `serve.log.level`",
    "max_requests": "a worker holds rollouts and is not replaced for having worked",
    "max_requests_jitter": "a worker holds rollouts and is not replaced for having worked",
    "quic_bind": "the server listens at one address: `serve.host` and `serve.port`",
    "shutdown_timeout": "set `serve.drain`",
    "umask": "it is for unix sockets, and the server listens at `serve.host`",
    "use_reloader": "`osmosis-run serve --reload` does that",
    "user": "it is for unix sockets, and the server listens at `serve.host`",
    "websocket_max_message_size": "the server has no websockets",
    "websocket_ping_interval": "the server has no websockets",
    "worker_class": "the server runs on the fastest one there is",
    "workers": "set `serve.workers`",
    "wsgi_max_body_size": "set `serve.max_body`",
}
"""The settings that the server decides itself, and what to do instead."""

VERIFY = ("CERT_NONE", "CERT_OPTIONAL", "CERT_REQUIRED")


def fits(kind: str, value: Any) -> bool:
    """Whether `value` is of one of the kinds of `SETTINGS`."""
    if kind in ("whole", "number"):
        number = isinstance(value, int if kind == "whole" else int | float) and not isinstance(value, bool)
        return number and value >= 0
    if kind == "switch":
        return isinstance(value, bool)
    if kind == "strings":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if kind == "secret":
        return isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str)
    return value in VERIFY if kind == "verify" else isinstance(value, str) and value != ""


def hypercorn_settings(config: RolloutConfig, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """`[serve.hypercorn]` of a checked config as attributes for `hypercorn.Config`.

    Paths are absolute, relative ones starting from the folder of the file that says them (`-` stays: it is stderr);
    secrets and certificate modes are what they name.
    """
    return {name: _value(config, name, value, environ) for name, value in config.serve.hypercorn.items()}


def _value(config: RolloutConfig, name: str, value: Any, environ: Mapping[str, str]) -> Any:
    kind = SETTINGS[name]
    if kind == "path" and value != "-":
        folder = config.folder if config.file is None else config.origins.folder(("serve", "hypercorn", name))
        return str((folder / value).resolve())
    if kind == "secret":
        return environ.get(value["env"])
    if kind == "verify":
        import ssl  # 10 ms that only a server with client certificates pays

        return ssl.VerifyMode[value]
    return value
