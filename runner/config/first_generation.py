"""The settings of the first generation's SDK, `OSMOSIS_ROLLOUT_*`, as keys of `[serve]`.

They reach `[serve]` and nothing else. A value is checked against the range that the SDK documents and put into this
format's words: seconds become durations, a number of retries becomes a number of tries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from runner.config.layers import Override
from runner.config.quantity import duration_text, parse_duration, size_text
from runner.config.variables import Variable
from runner.diag.diagnostic import Diagnostic, Place, Report
from runner.diag.suggest import nearest
from runner.records.quick import quick

Reader = Callable[[str], Any]


class _Unfit(ValueError):
    """A value that cannot be; says what it must be."""


@quick
class Setting:
    """What a variable of the SDK sets here: the keys of `[serve]`, and how its value is read."""

    keys: tuple[str, ...]
    read: Reader
    range: str


def _seconds(low: float, high: float) -> tuple[Reader, str]:
    wanted = f"a number of seconds from {low:g} to {high:g}"

    def read(text: str) -> str:
        value = float(text) if re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", text) else -1.0
        if not low <= value <= high:
            raise _Unfit(wanted)
        short = duration_text(value)
        return short if parse_duration(short) == value else f"{value:f}s"

    return read, wanted


def _whole(low: int, high: int, noun: str = "", put: Callable[[int], Any] = int) -> tuple[Reader, str]:
    wanted = f"a whole number{noun} from {low} to {high}"

    def read(text: str) -> Any:
        value = int(text) if re.fullmatch(r"\d{1,12}", text) else -1
        if not low <= value <= high:
            raise _Unfit(wanted)
        return put(value)

    return read, wanted


def _share() -> tuple[Reader, str]:
    wanted = "a number from 0 to 1"

    def read(text: str) -> float:
        value = float(text) if re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", text) else -1.0
        if not 0 <= value <= 1:
            raise _Unfit(wanted)
        return value

    return read, wanted


def _switch() -> tuple[Reader, str]:
    def read(text: str) -> bool:
        word = text.lower()
        if word in ("true", "1", "yes", "on", "t", "y"):
            return True
        if word in ("false", "0", "no", "off", "f", "n"):
            return False
        raise _Unfit("`true` or `false`")

    return read, "true or false"


def _word(text: str) -> str:
    return text.lower()


def _list(text: str) -> list[str]:
    """`a,b` or a JSON array: the SDK's settings read either."""
    return [word.strip().strip("\"'").lower() for word in text.strip("[]").split(",") if word.strip()]


def _tries(retries: int) -> int:
    return retries + 1


SETTINGS: dict[str, Setting] = {
    name: Setting(keys, *reader)
    for name, keys, reader in (
        ("CLIENT_TIMEOUT_SECONDS", ("chat.timeout",), _seconds(1, 3600)),
        ("CLIENT_MAX_RETRIES", ("chat.retries.attempts",), _whole(0, 10, put=_tries)),
        ("CLIENT_COMPLETE_ROLLOUT_RETRIES", ("callbacks.attempts",), _whole(0, 10, put=_tries)),
        ("CLIENT_RETRY_BASE_DELAY", ("chat.base_wait", "callbacks.base_wait"), _seconds(0.1, 60)),
        ("CLIENT_RETRY_MAX_DELAY", ("chat.retries.max_wait", "callbacks.max_wait"), _seconds(1, 300)),
        ("CLIENT_MAX_CONNECTIONS", ("connections.max",), _whole(1, 1000)),
        ("CLIENT_MAX_KEEPALIVE_CONNECTIONS", ("connections.idle",), _whole(1, 100)),
        ("SERVER_MAX_CONCURRENT_ROLLOUTS", ("max_concurrent",), _whole(1, 10000)),
        ("SERVER_RECORD_TTL_SECONDS", ("record_ttl",), _seconds(60, 86400)),
        ("SERVER_CLEANUP_INTERVAL_SECONDS", ("cleanup_interval",), _seconds(10, 3600)),
        ("SERVER_REQUEST_TIMEOUT_SECONDS", ("request_timeout",), _seconds(10, 3600)),
        ("MAX_METADATA_SIZE_BYTES", ("max_metadata",), _whole(1024, 104857600, " of bytes", size_text)),
        ("LOG_LEVEL", ("log.level",), (_word, "debug, info, warning or error")),
        ("LOG_FORMAT", ("log.format",), (_word, "console, json or plain")),
        ("LOG_INCLUDE_TIMESTAMP", ("log.timestamp",), _switch()),
        ("LOG_INCLUDE_CALLER", ("log.caller",), _switch()),
        ("TRACE_ENABLED", ("trace.enabled",), _switch()),
        ("TRACE_SERVICE_NAME", ("trace.service_name",), (str, "a name")),
        ("TRACE_EXPORTER", ("trace.exporter",), (_word, "otlp, jaeger, zipkin, console or none")),
        ("TRACE_ENDPOINT", ("trace.endpoint",), (str, "an address")),
        ("TRACE_SAMPLE_RATE", ("trace.sample_rate",), _share()),
        ("TRACE_PROPAGATORS", ("trace.propagators",), (_list, "names with commas between")),
        ("METRICS_ENABLED", ("metrics.enabled",), _switch()),
        ("METRICS_PREFIX", ("metrics.prefix",), (str, "a name")),
        ("METRICS_INCLUDE_DEFAULT_LABELS", ("metrics.default_labels",), _switch()),
        ("METRICS_EXPOSE_ENDPOINT", ("metrics.expose",), _switch()),
    )
}
"""By what follows `OSMOSIS_ROLLOUT_`."""

RESERVED: dict[str, Setting] = {
    "_OSMOSIS_ROLLOUT_PORT": Setting(("port",), *_whole(0, 65535)),
    "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT": Setting(("archive",), str, "a folder"),
}
"""Variables of the third generation that a platform sets, by their whole names."""

PREFIX = "OSMOSIS_ROLLOUT_"
_FAMILIES = ("CLIENT_", "SERVER_", "LOG_", "TRACE_", "METRICS_", "MAX_METADATA")
_REGISTRATION = "SERVER_REGISTRATION_"


def all_settings() -> dict[str, Setting]:
    """Every variable by its whole name."""
    return {**{PREFIX + name: setting for name, setting in SETTINGS.items()}, **RESERVED}


def is_setting(name: str) -> bool:
    """Whether a variable of this name is, or looks like, one of the SDK's settings."""
    name = name.upper()
    return name in RESERVED or (name.startswith(PREFIX) and name.removeprefix(PREFIX).startswith(_FAMILIES))


def serve_keys(variables: Iterable[Variable], report: Report) -> list[Override]:
    """The settings of those variables that the SDK knows; unknown ones and unfit values are findings.

    An empty variable sets nothing, as in a container whose file names every variable.
    """
    found: list[Override] = []
    for variable in variables:
        name = variable.name.upper()
        setting = RESERVED.get(name) or SETTINGS.get(name.removeprefix(PREFIX) if name.startswith(PREFIX) else "")
        if setting is None and is_setting(name):
            report.add(_unknown(variable, name))
        text = variable.value.strip()
        if setting is None or not text:
            continue
        try:
            value = setting.read(text)
        except _Unfit as unfit:
            report.add(_unfit(variable, str(unfit)))
        else:
            found += [variable.override(f"serve.{key}", value) for key in setting.keys]
    return found


def _unfit(variable: Variable, wanted: str) -> Diagnostic:
    place = variable.spot.value if variable.value else variable.spot.key
    message = f"`{variable.name}` must be {wanted}, found `{variable.value}`"
    return Diagnostic("bad-variable", message, place, wanted)


def _unknown(variable: Variable, name: str) -> Diagnostic:
    if name.removeprefix(PREFIX).startswith(_REGISTRATION):
        message = f"`{variable.name}` sets nothing: this server registers nowhere"
        return _warning(message, variable.spot.key, "unset it")
    near = nearest(name, [PREFIX + known for known in SETTINGS])
    label = f"did you mean `{near}`?" if near else "unset it"
    return _warning(f"`{variable.name}` is no variable of the rollout server", variable.spot.key, label)


def _warning(message: str, place: Place, label: str) -> Diagnostic:
    return Diagnostic("unknown-setting", message, place, label, severity="warning")
