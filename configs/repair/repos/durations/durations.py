import re

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(" + "|".join(SECONDS) + ")")


def seconds(text):
    """Seconds of a text such as "1h30m". Raises ValueError for what is none."""
    left = text.strip().lower()
    if not left:
        raise ValueError("an empty duration")
    total = 0.0
    while left:
        found = _PART.match(left)
        if found is None:
            raise ValueError(f"{text!r} is no duration")
        total += float(found[1]) * SECONDS[found[2]]
        left = left[found.end() :].lstrip()
    return total
