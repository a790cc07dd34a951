from utc import to_utc, written


def timeline(entries):
    """Entries (time, text), the earliest first, with their times in UTC."""
    return [(written(time), text) for time, text in sorted((to_utc(time), text) for time, text in entries)]
