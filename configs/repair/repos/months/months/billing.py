from months.adding import add_months


def due_dates(start, count):
    """The first `count` days on which a subscription that began on `start` is due."""
    return [add_months(start, number) for number in range(1, count + 1)]
