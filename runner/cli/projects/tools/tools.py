"""The tools that the agent may call."""

ORDERS = {
    "A-1001": "delivered on 3 May",
    "A-1002": "in transit, expected on 9 May",
    "A-1003": "cancelled, refund paid",
}


def lookup_order(order_id: str) -> str:
    """Say where an order is.

    Args:
        order_id: The number of the order, for example "A-1001".
    """
    if order_id not in ORDERS:
        # The model reads this sentence and can act on it.
        raise ValueError(f"there is no order {order_id!r}; order numbers look like A-1001")
    return ORDERS[order_id]
