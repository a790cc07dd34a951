"""Resources that the broken files name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

DATABASE = "orders.db"


@asynccontextmanager
async def open_orders(path: str, read_only: bool = True) -> AsyncIterator[dict[str, str]]:
    yield {"A-1": f"shipped, says {path}"}
