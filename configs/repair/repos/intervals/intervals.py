def merged(spans):
    """The spans put together where they touch or overlap, in order."""
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result


def total(spans):
    """Minutes that are in any of the spans."""
    return sum(end - start for start, end in merged(spans))
