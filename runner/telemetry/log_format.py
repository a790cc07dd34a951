"""How a log record looks: `json` for machines, `console` for a person at a terminal, `plain` for a file.

One record is one line of JSON; in the other two a further line of a record is indented, so that no message can pass
itself off as another record, and control characters are shown, not sent to the terminal.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from runner.telemetry.log_context import current
from runner.telemetry.redaction import Redaction

Format = Literal["console", "json", "plain"]

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}


def told(record: logging.LogRecord) -> str:
    """The message of a record, whatever its arguments: a slip in a log call must not lose the line."""
    try:
        return record.getMessage()
    except Exception:
        try:
            return f"{record.msg} {record.args!r}"
        except Exception:
            return f"a message from {record.pathname}:{record.lineno} that cannot be shown"


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What a record carries besides its message: the bound context, and what the call gave as `extra`."""
    extra = {name: value for name, value in vars(record).items() if name not in _KNOWN and not name.startswith("_")}
    return {**current(), **extra}


def failure(record: logging.LogRecord) -> str:
    """The traceback of a record, or its stack, or nothing."""
    parts = []
    if record.exc_info and record.exc_info[1] is not None:
        parts.append("".join(traceback.format_exception(record.exc_info[1])).rstrip())
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)


class JsonFormat:
    """`level`, `logger`, `event`, `timestamp` (UTC, milliseconds, Z), `caller`, the context, `exception`."""

    def __init__(self, timestamp: bool, caller: bool, redact: Redaction) -> None:
        self._timestamp, self._caller, self._redact = timestamp, caller, redact

    def __call__(self, record: logging.LogRecord) -> str:
        event = self._redact(told(record))
        line: dict[str, Any] = {"level": record.levelname.lower(), "logger": record.name, "event": event}
        if self._timestamp:
            moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
            line["timestamp"] = moment.replace("+00:00", "Z")
        if self._caller:
            line["caller"] = _caller(record)
        for name, value in fields(record).items():
            line.setdefault(name, self._redact.field(name, value))
        if detail := failure(record):
            line["exception"] = self._redact(detail)
        return json.dumps(line, ensure_ascii=False)


class LineFormat:
    """The message first for the eye, the fields as `name=value` after it, a traceback below it, indented."""

    def __init__(self, timestamp: bool, caller: bool, redact: Redaction, colour: bool | None = None) -> None:
        """`colour` None is the plain format: full time stamps and nothing aligned."""
        self._timestamp, self._caller, self._redact, self._colour = timestamp, caller, redact, colour

    def __call__(self, record: logging.LogRecord) -> str:
        extra = (f"{name}={_value(self._redact.field(name, value))}" for name, value in fields(record).items())
        text = "  ".join([self._redact(told(record)), *extra])
        if detail := failure(record):
            text += f"\n{self._redact(detail)}"
        head = self._head(record)
        return head + text.translate(_SHOWN).replace("\n", "\n    ")

    def _head(self, record: logging.LogRecord) -> str:
        level, name = record.levelname, record.name
        caller = f" {_caller(record)}" if self._caller else ""
        if self._colour is None:
            stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
            return (f"{stamp.replace('+00:00', 'Z')} " if self._timestamp else "") + f"{level} {name}{caller}: "
        stamp = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3] + " "
        place = f"{name + caller:<24} "
        if not self._colour:
            return f"{stamp if self._timestamp else ''}{level.lower():<8} {place}"
        tint = _COLOURS.get(level.lower(), "0")
        painted = f"\x1b[{tint}m{level.lower():<8}\x1b[0m \x1b[2m{place}\x1b[0m"
        return (f"\x1b[2m{stamp}\x1b[0m" if self._timestamp else "") + painted


def formatting(
    name: Format, timestamp: bool, caller: bool, colour: bool, redact: Redaction
) -> Callable[[logging.LogRecord], str]:
    """The format called `name`; only the console has colours. Raises ValueError for another name."""
    made: Mapping[str, Callable[[], Callable[[logging.LogRecord], str]]] = {
        "json": lambda: JsonFormat(timestamp, caller, redact),
        "console": lambda: LineFormat(timestamp, caller, redact, colour),
        "plain": lambda: LineFormat(timestamp, caller, redact),
    }
    if name not in made:
        raise ValueError(f"no log format is called {name!r}; there are {', '.join(made)}")
    return made[name]()


def _caller(record: logging.LogRecord) -> str:
    return f"{record.filename}:{record.lineno}"


def _value(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(mark in text for mark in ' "=\n') else text
