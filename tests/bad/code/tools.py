"""Tools that the broken files name, most of them sound."""

from __future__ import annotations

from typing import Any, Literal

VERSION = "1.4"
CATALOGUE = {"refund": "30 days"}


def search(query: str, top_k: int = 5) -> list[str]:
    """Search the help centre."""
    return [query][:top_k]


def lookup_order(order_id: str, db: dict[str, Any]) -> str:
    """Say where an order is."""
    return str(db[order_id])


def calculate(expression: str, precision: int) -> str:
    """Evaluate an arithmetic expression."""
    return f"{expression} to {precision} places"


def add(a: int, b: int, /) -> int:
    """Add two numbers."""
    return a + b


def store(socket: Socket, text: str) -> str:  # noqa: F821
    """Keep a text."""
    return text


def forward(**anything: Any) -> str:
    """Hand everything on."""
    return str(anything)


class Connection:
    """What no JSON can hold."""


def query(connection: Connection, sql: str) -> str:
    """Ask the database."""
    return sql


def convert(amount: str, unit: Literal["m", "ft"]) -> str:
    """Convert a length."""
    return f"{amount} {unit}"
