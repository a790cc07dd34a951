from wrap import wrap


def receipt(items, width=32):
    """Items and prices in cents; the price stands at the end of an item's last line."""
    lines = []
    for name, price in items:
        *first, last = wrap(name, width - 10)
        lines += [*first, f"{last:<{width - 9}}{price / 100:9.2f}"]
    return lines
