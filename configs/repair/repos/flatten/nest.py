def nest(flat):
    """Tables within tables, of a flat one. Lists come back as tables with numbers for names."""
    root = {}
    for path, value in flat.items():
        *above, name = path.split(".")
        table = root
        for part in above:
            table = table.setdefault(part, {})
        table[name] = value
    return root
