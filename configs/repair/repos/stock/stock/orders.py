def to_order(items, least=5):
    """Names and counts of what has run low."""
    return {item.name: least - item.count for item in items if item.count < least}
