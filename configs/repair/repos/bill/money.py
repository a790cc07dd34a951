def cents(amount):
    """Cents of an amount such as "12.34"."""
    whole, _, rest = amount.partition(".")
    return int(whole) * 100 + int((rest + "00")[:2])


def text(amount):
    """Cents as an amount."""
    return f"{amount // 100}.{amount % 100:02}"
