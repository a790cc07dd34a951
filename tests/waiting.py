"""Waiting for what is in another's hands: a socket, a process, a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def until(true: Callable[[], Any], seconds: float = 5.0) -> None:
    """Return once something is true. Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 (what is waited for tells nobody)
            await asyncio.sleep(0.002)
