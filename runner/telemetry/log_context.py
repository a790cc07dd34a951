"""What a log record belongs to: `rollout_id`, `request_id` and the like, bound for as long as a task works on it.

A context variable, so a task started inside has it too and two rollouts at once do not mix; always put back by its
token, so that leaving an inner binding restores the outer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import MappingProxyType

_context: ContextVar[Mapping[str, str]] = ContextVar("log_context", default=MappingProxyType({}))


def bind(**values: str | None) -> Token[Mapping[str, str]]:
    """Add `values` to what records carry from here on; those that are None or empty are left out."""
    bound = dict(_context.get())
    for name, value in values.items():
        if value:
            bound[name] = value
    return _context.set(bound)


def unbind(token: Token[Mapping[str, str]]) -> None:
    """Put back what was bound before the `bind` that gave `token`."""
    _context.reset(token)


def clear() -> None:
    """Bind nothing from here on."""
    _context.set(MappingProxyType({}))


@contextmanager
def bound(**values: str | None) -> Iterator[None]:
    """`bind` for the time of a `with` block."""
    token = bind(**values)
    try:
        yield
    finally:
        unbind(token)


def current() -> Mapping[str, str]:
    """What is bound here."""
    return _context.get()
