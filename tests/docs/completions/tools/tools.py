"""A tool for parts of workflows."""


def lookup_order(order_id: str) -> str:
    """Say where an order is."""
    return order_id
