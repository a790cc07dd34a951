from money import cents, text


def shares(total, people):
    """What each of `people` pays of `total` (a text such as "10.00"), as texts. They add up to the total."""
    if people < 1:
        raise ValueError("somebody has to pay")
    each = round(cents(total) / people)
    return [text(each)] * people
