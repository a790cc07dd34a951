def first_at_least(values, wanted):
    """Where the first of the sorted `values` is that is not below `wanted`; their number, if there is none."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
