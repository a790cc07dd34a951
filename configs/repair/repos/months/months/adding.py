from datetime import date


def add_months(day, count):
    """The same day `count` months later (or earlier), or the last one of a month that has no such day."""
    month = day.month - 1 + count
    return date(day.year + month // 12, month % 12 + 1, day.day)
