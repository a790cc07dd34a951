from intervals import merged

DAY = (0, 24 * 60)


def free(busy, within=DAY):
    """What is left of `within` when the busy spans are taken out."""
    start, end = within
    left = []
    for first, last in merged(busy):
        if first > start:
            left.append((start, min(first, end)))
        start = max(start, last)
    if start < end:
        left.append((start, end))
    return left
