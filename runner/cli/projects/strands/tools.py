"""The tools of the file: what the engine runs, with its limits, tests and records."""

from strands import tool

PRICES = {"kettle": 40.0, "cup": 8.0, "pot": 25.0}


@tool
def price_of(thing: str) -> str:
    """Say what a thing costs.

    Args:
        thing: One thing, for example "cup".
    """
    if thing not in PRICES:
        # The model reads this sentence and can act on it.
        raise ValueError(f"there is no {thing!r}; there are {', '.join(PRICES)}")
    return f"{PRICES[thing]:g}"
