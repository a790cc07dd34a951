"""The stock list: name, price, count."""

from stock.item import Item


def read(lines):
    """Items of the lines of a CSV file; the first line is the header."""
    items = []
    for number, line in enumerate(lines):
        line = line.strip()
        if number == 0 or not line:
            continue
        name, price, count = line.split(",")
        items.append(Item(name, float(price), int(count)))
    return items
