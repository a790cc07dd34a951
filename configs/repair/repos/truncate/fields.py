from cut import cut


def field(text, size):
    """`text` as a field of exactly `size` bytes."""
    return cut(text, size).encode("utf-8").ljust(size, b"\0")


def read(data):
    """The text of a field."""
    return data.rstrip(b"\0").decode("utf-8")
