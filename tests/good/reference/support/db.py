"""The orders that a rollout may look up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def open_orders(carrier: str = "post") -> AsyncIterator[dict[str, str]]:
    """The state of each order by its number."""
    yield {"A-1": f"shipped by {carrier}", "A-2": "packed"}
