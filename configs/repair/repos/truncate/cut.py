def cut(text, size):
    """As much of the start of `text` as fits into `size` bytes of UTF-8."""
    return text[:size]
