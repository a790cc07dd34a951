from durations import seconds

DEFAULTS = {"wait": "250ms", "timeout": "30s", "total": "2h"}


def limits(given):
    """The limits of the crawler in seconds, with those that are given in place of ours."""
    return {name: seconds(text) for name, text in {**DEFAULTS, **given}.items()}
