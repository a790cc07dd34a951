def links(pages, current, around=1):
    """Page numbers to show: the first, the last, and those around the current one; None where some are left out."""
    wanted = {1, pages.count, *range(current - around, current + around + 1)}
    shown = []
    for number in sorted(number for number in wanted if 1 <= number <= pages.count):
        if shown and number - shown[-1] > 1:
            shown.append(None)
        shown.append(number)
    return shown
