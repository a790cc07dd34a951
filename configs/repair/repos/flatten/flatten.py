def items(value):
    """Names and values of what a table or a list holds; None for anything else."""
    if isinstance(value, dict):
        return value.items()
    try:
        return [(str(number), each) for number, each in enumerate(value)]
    except TypeError:
        return None


def flatten(value, prefix=""):
    """A nested table as a flat one, with names joined by dots."""
    flat = {}
    for name, each in items(value):
        path = f"{prefix}.{name}" if prefix else str(name)
        if items(each) is None:
            flat[path] = each
        else:
            flat.update(flatten(each, path))
    return flat
