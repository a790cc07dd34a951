"""The first generation's helpers for logs, metrics and traces of one's own code.

Nothing is on before its `configure_…`; until then, and without the library it needs, each helper does nothing.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.telemetry import log_context, span_names
from runner.workflows.loop.settings import (
    RolloutLoggingSettings,
    RolloutMetricsSettings,
    RolloutTracingSettings,
    get_settings,
)

if TYPE_CHECKING:
    from runner.telemetry.logs import Logs
    from runner.telemetry.metrics import Metrics
    from runner.telemetry.own_spans import Tracer

_logs: Logs | None = None
_metrics: Metrics | None = None
_tracer: Tracer | None = None


class SpanNames:
    """What spans of a rollout are called."""

    ROLLOUT_INIT = span_names.INIT
    ROLLOUT_RUN = span_names.RUN
    ROLLOUT_ERROR = span_names.ERROR
    LLM_CHAT_COMPLETIONS = span_names.LLM_CHAT
    LLM_COMPLETE_ROLLOUT = span_names.LLM_COMPLETE
    TOOL_EXECUTE = span_names.TOOL
    HTTP_REQUEST = span_names.HTTP


class Logger:
    """A logger that takes its facts as keywords: `log.info("tool_called", name="add")`."""

    def __init__(self, logger: logging.Logger, facts: Mapping[str, Any] | None = None) -> None:
        self._logger = logger
        self._facts = dict(facts or {})

    def bind(self, **facts: Any) -> Logger:
        """The same with `facts` in every record."""
        return Logger(self._logger, {**self._facts, **facts})

    def debug(self, event: str, *args: Any, **facts: Any) -> None:
        self._log(logging.DEBUG, event, args, facts)

    def info(self, event: str, *args: Any, **facts: Any) -> None:
        self._log(logging.INFO, event, args, facts)

    def warning(self, event: str, *args: Any, **facts: Any) -> None:
        self._log(logging.WARNING, event, args, facts)

    def error(self, event: str, *args: Any, **facts: Any) -> None:
        self._log(logging.ERROR, event, args, facts)

    def exception(self, event: str, *args: Any, **facts: Any) -> None:
        """An error with the traceback of the exception that is handled."""
        self._log(logging.ERROR, event, args, {"exc_info": True, **facts})

    def _log(self, level: int, event: str, args: tuple[Any, ...], facts: dict[str, Any]) -> None:
        exc_info = facts.pop("exc_info", None)
        known = {**self._facts, **facts}
        words = "".join(f" {name}={value!r}" for name, value in known.items())
        text = event + (words.replace("%", "%%") if args else words)
        self._logger.log(level, text, *args, exc_info=exc_info, stacklevel=3)


def get_logger(name: str | None = None) -> Logger:
    """The logger `name`. Its records go where the standard library's go."""
    return Logger(logging.getLogger(name or "osmosis"))


def set_rollout_id(rollout_id: str) -> None:
    """Let the records of this task carry `rollout_id`."""
    log_context.bind(rollout_id=rollout_id)


def set_context(**facts: Any) -> None:
    """Let the records of this task carry `facts`."""
    log_context.bind(**{name: None if value is None else str(value) for name, value in facts.items()})


def clear_context() -> None:
    """Let the records of this task carry nothing."""
    log_context.clear()


def configure_logging(settings: RolloutLoggingSettings | None = None) -> None:
    """Log to stderr as `settings` say, or those of the process."""
    global _logs
    from runner.telemetry.logs import configure

    said = settings or get_settings().logging
    if _logs is not None:
        _logs.close()
    _logs = configure(said.level.lower(), said.format, said.include_timestamp, said.include_caller)


def configure_metrics(settings: RolloutMetricsSettings | None = None) -> None:
    """Count as `settings` say, or those of the process; switched off they count nothing."""
    global _metrics
    said = settings or get_settings().metrics
    if not said.enabled:
        _metrics = None
        return
    from runner.telemetry.metrics import Metrics

    _metrics = Metrics(said.prefix, default_labels=said.include_default_labels)


def configure_tracing(settings: RolloutTracingSettings | None = None) -> None:
    """Make spans as `settings` say, or those of the process; switched off they are made nowhere.

    Raises ImportError, which says what to install.
    """
    global _tracer
    said = settings or get_settings().tracing
    if _tracer is not None:
        _tracer.close()
        _tracer = None
    if not said.enabled:
        return
    from runner.records.failure import ConfigFailure
    from runner.telemetry.tracing import Tracing, check_installed

    tracing = Tracing(said.service_name, said.exporter, said.endpoint, said.sample_rate, tuple(said.propagators))
    try:
        check_installed(tracing)
    except ConfigFailure as failure:
        raise ImportError(str(failure)) from failure
    from runner.telemetry.own_spans import Tracer

    _tracer = Tracer(tracing)


def get_metrics() -> Metrics | NoopMetric:
    """What counts; something that takes every call and counts nothing where metrics are off."""
    return _metrics or NoopMetric()


def get_metrics_content() -> tuple[bytes, str]:
    """The exposition for Prometheus and its content type; empty where metrics are off."""
    return (b"", "text/plain; charset=utf-8") if _metrics is None else _metrics.text()


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Any]:
    """A span for as long as the block; an exception is noted on it and goes on."""
    if _tracer is None:
        yield NoopSpan()
        return
    with _tracer.span(name, attributes) as made:
        yield made


def trace_async(name: Any = None, **attributes: Any) -> Any:
    """A decorator, with or without arguments: each call of an async function is a span, by its own name or `name`."""
    if callable(name):
        return trace_async()(name)

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        async def traced(*args: Any, **kwargs: Any) -> Any:
            with span(name or function.__name__, **attributes):
                return await function(*args, **kwargs)

        return traced

    return decorate


def trace_sync(name: Any = None, **attributes: Any) -> Any:
    """The same for a function that is not async."""
    if callable(name):
        return trace_sync()(name)

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with span(name or function.__name__, **attributes):
                return function(*args, **kwargs)

        return traced

    return decorate


def inject_trace_context(carrier: dict[str, str] | None = None) -> dict[str, str]:
    """`carrier`, headers for whom is asked next, with the current trace in them."""
    made = {} if carrier is None else carrier
    return made if _tracer is None else _tracer.inject(made)


def extract_trace_context(carrier: Mapping[str, str]) -> Any:
    """The trace that the headers `carrier` go on, as opentelemetry has it; None where tracing is off."""
    return None if _tracer is None else _tracer.extract(carrier)


class NoopMetric:
    """Takes every call, and is every metric, and counts nothing."""

    def __getattr__(self, name: str) -> NoopMetric:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoopMetric:
        return self


class NoopSpan(NoopMetric):
    """A span that goes nowhere."""

    def __enter__(self) -> NoopSpan:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class NoopTracer:
    """Makes spans that go nowhere."""

    def start_as_current_span(self, name: str, **more: Any) -> NoopSpan:
        return NoopSpan()

    def start_span(self, name: str, **more: Any) -> NoopSpan:
        return NoopSpan()
