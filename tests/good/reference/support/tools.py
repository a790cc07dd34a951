"""Tools of the help desk."""

from __future__ import annotations

from typing import Any

HELP_CENTRE = {
    "refund policy": "Refunds are possible within 30 days.",
    "shipping": "Orders ship within two days.",
    "payment": "We take cards and bank transfers.",
}


async def search(query: str, top_k: int = 5) -> list[str]:
    """Search the help centre."""
    words = query.lower().split()
    found = [text for title, text in HELP_CENTRE.items() if any(word in title for word in words)]
    return found[:top_k]


def lookup_order(order_id: str, db: dict[str, str], row: dict[str, Any]) -> str:
    """Say where an order is.

    Args:
        order_id: The number of the order, as the customer gave it.
    """
    return db.get(order_id, f"there is no order {order_id} of this customer")


def read_article(name: str, lines: int = 20) -> str:
    """Read an article of the help centre."""
    return "\n".join(HELP_CENTRE.get(name, "").splitlines()[:lines])


def finish(answer: str) -> str:
    """Give the final answer."""
    return answer
