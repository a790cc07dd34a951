"""`[serve]`: nobody gets in who should not, and no key contradicts another or does nothing."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from runner.config.checks.checking import Checking
from runner.config.hypercorn import OURS, SETTINGS, WANTED, fits
from runner.config.layers import ENVIRONMENT_PREFIX
from runner.config.quantity import duration_text, size_text
from runner.diag.diagnostic import Path
from runner.diag.suggest import nearest

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

_HERE = ("127.0.0.1", "localhost", "::1", "[::1]")
_HYPERCORN = ("serve", "hypercorn")
_PATTERN = re.compile(r"(?:\[(?P<six>[^\]/@]+)\]|[^:/@\[\]]+)(?::(?:\*|[0-9]{1,5}))?(?:/.*)?")
"""What follows the scheme: host, port, path."""
_RESERVED = "_OSMOSIS_"
_TRANSPORT_FILES = ("certfile", "keyfile", "ca_certs")


def check_serve(check: Checking, *, serving: bool) -> None:
    """`[serve]` and the variables of `[env]` that would be about it. What `serving` needs is an error only then."""
    _host(check)
    _open(check)
    _key(check, serving)
    _callbacks(check)
    _waits(check)
    _trace(check)
    _hypercorn(check)
    _transport(check, serving)
    _env(check)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at `host`."""
    if host.lower() in _HERE:
        return True
    address = _ip(host)
    return address is not None and address.is_loopback


def _host(check: Checking) -> None:
    found = re.fullmatch(r"(?P<host>[^:]+):(?P<port>\d+)", check.config.serve.host)
    if found:
        message = f"`serve.host` is an address without a port, found `{check.config.serve.host}`"
        label = f'write `host = "{found["host"]}"` and `port = {found["port"]}`'
        check.report("bad-value", ("serve", "host"), message, label)


def _open(check: Checking) -> None:
    serve = check.config.serve
    unsure = any(check.loaded.is_faulty(("serve", key)) for key in ("host", "api_key", "allow_anonymous"))
    if unsure or serve.api_key is not None or serve.allow_anonymous or is_loopback(serve.host):
        return
    message = f"other machines reach `{serve.host}`, and no key is asked for"
    helps = (
        'ask for one: `api_key = { env = "ROLLOUT_API_KEY" }` in `[serve]`',
        "or let anybody in who reaches the port: `allow_anonymous = true`",
    )
    check.report("open-server", ("serve", "host"), message, "name a key", helps=helps)


def _key(check: Checking, serving: bool) -> None:
    """The key's variable is set when a server starts. Other commands need no key, so to them it is a warning."""
    serve = check.config.serve
    if serve.api_key is None:
        return
    variable, path = serve.api_key.env, ("serve", "api_key", "env")
    value = check.loaded.environ.get(variable, check.config.env.get(variable))
    if value is None or not value.strip():
        state = "is not set" if value is None else "is empty"
        message = f"the environment variable `{variable}` {state}, and `serve` asks controllers for it"
        check.report(
            "secret-missing", path, message, f"`export {variable}=…`", severity="error" if serving else "warning"
        )
    elif serve.allow_anonymous:
        message = "a key is asked for, so nobody is anonymous"
        check.warn("no-effect", ("serve", "allow_anonymous"), message, "remove it, or `api_key`", key=True)


def _callbacks(check: Checking) -> None:
    """Each pattern is `scheme://host[:port][/path]` and matches some URL."""
    for index, pattern in enumerate(check.config.serve.allow_callbacks):
        path = ("serve", "allow_callbacks", index)
        scheme, rest = pattern.rpartition("://")[::2]
        if not re.fullmatch(r"[a-z*]+", scheme) or not any(fnmatchcase(one, scheme) for one in ("http", "https")):
            message = f"`{pattern}` matches no URL: one begins with `http://` or `https://`"
            label = f'write `"https://{rest}"`' if rest and "://" not in rest else 'for example `"https://*"`'
            check.report("bad-value", path, message, label)
        elif not _is_address(rest):
            message = f"`{pattern}` is no pattern of a URL"
            check.report("bad-value", path, message, 'write `"https://host:port/path"`, with `*` for anything')


def _is_address(text: str) -> bool:
    found = _PATTERN.fullmatch(text)
    if found is None:
        return False
    return found["six"] is None or "*" in found["six"] or _ip(found["six"]) is not None


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    import ipaddress  # 4 ms that the default does not pay

    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _waits(check: Checking) -> None:
    serve = check.config.serve
    _order(check, ("serve", "chat", "base_wait"), serve.chat.base_wait, serve.chat.retries.max_wait)
    _order(check, ("serve", "callbacks", "base_wait"), serve.callbacks.base_wait, serve.callbacks.max_wait)
    idle, most = serve.connections.idle, serve.connections.max
    if idle is not None and most is not None and idle > most:
        message = f"`idle` is {idle}, and no more than {most} are ever open"
        _conflict(check, ("serve", "connections", "idle"), message, f"at most {most}")
    if serve.max_metadata > serve.max_body:
        body = size_text(serve.max_body)
        message = f"`max_metadata` is {size_text(serve.max_metadata)}, and a whole body may be {body}"
        _conflict(check, ("serve", "max_metadata"), message, f"at most {body}")


def _order(check: Checking, path: Path, base: float, most: float) -> None:
    if base > most:
        message = f"the first pause is {duration_text(base)}, and the longest {duration_text(most)}"
        _conflict(check, path, message, f"at most {duration_text(most)}")


def _conflict(check: Checking, path: Path, message: str, label: str) -> None:
    if check.is_set(path):
        check.warn("limits-conflict", path, message, label)


def _trace(check: Checking) -> None:
    trace = check.config.serve.trace
    if trace.endpoint is not None and trace.exporter in ("none", "console"):
        message = f"the exporter `{trace.exporter}` sends nothing to `endpoint`"
        path = ("serve", "trace", "endpoint")
        check.warn("no-effect", path, message, "remove it, or choose another exporter", key=True)


def _hypercorn(check: Checking) -> None:
    for name, value in check.config.serve.hypercorn.items():
        path = (*_HYPERCORN, name)
        if name in OURS:
            message = f"`{name}` of hypercorn is not for the file to set"
            check.report("misplaced-key", path, message, OURS[name], key=True)
        elif name not in SETTINGS:
            near = nearest(name, SETTINGS)
            label = f"did you mean `{near}`?" if near else "see the settings of `hypercorn.Config`"
            check.report("unknown-key", path, f"hypercorn has no setting `{name}`", label, key=True)
        elif SETTINGS[name] == "secret" and isinstance(value, str):
            message = f"`serve.hypercorn.{name}` holds a secret in the file"
            check.report("secret-in-file", path, message, 'name the variable instead: `{ env = "NAME" }`')
        elif not fits(SETTINGS[name], value):
            wanted = WANTED[SETTINGS[name]]
            check.report("wrong-type", path, f"`serve.hypercorn.{name}` must be {wanted}", f"expected {wanted}")


def _transport(check: Checking, serving: bool) -> None:
    """TLS needs certificate and key; a half of it would be a server in the clear."""
    settings = check.config.serve.hypercorn
    for name, other in (("certfile", "keyfile"), ("keyfile", "certfile")):
        if name in settings and other not in settings:
            message = f"`{name}` is given and `{other}` is not, so there would be no TLS"
            check.report("missing-key", (*_HYPERCORN, name), message, f'add `{other} = "…"`', key=True)
    if "certfile" not in settings and "keyfile" not in settings:
        for name in ("ca_certs", "verify_mode", "verify_flags", "ciphers", "keyfile_password", "ssl_handshake_timeout"):
            if name in settings:
                message = f"without `certfile` and `keyfile` there is no TLS, and `{name}` does nothing"
                check.warn("no-effect", (*_HYPERCORN, name), message, "add them, or remove it", key=True)
    for name in _TRANSPORT_FILES if serving else ():
        path, value = (*_HYPERCORN, name), settings.get(name)
        if isinstance(value, str) and not (check.loaded.origins.folder(path) / value).is_file():
            label = "relative to the file that says so"
            check.report("not-found", path, f"there is no file `{value}`", label)


def _env(check: Checking) -> None:
    """`[env]` is set after the settings were read, and reaches none of them."""
    for name in check.config.env:
        path = ("env", name)
        if name.upper().startswith(_RESERVED):
            message = f"`{name}` may not be set in a file: `{_RESERVED}` names are the platform's"
            check.report("reserved-name", path, message, _instead(name), key=True)
        elif name.upper().startswith(("OSMOSIS_ROLLOUT_", ENVIRONMENT_PREFIX)) and _instead(name) != "remove it":
            message = f"`{name}` sets nothing here: settings are read before"
            check.warn("no-effect", path, message, _instead(name), key=True)


def _instead(name: str) -> str:
    from runner.config.first_generation import all_settings

    if name.upper().startswith(ENVIRONMENT_PREFIX):
        return f"set the key itself: `{name[len(ENVIRONMENT_PREFIX) :].lower().replace('__', '.')}`"
    setting = all_settings().get(name.upper())
    return "remove it" if setting is None else f"set `{'` and `'.join(f'serve.{key}' for key in setting.keys)}`"
