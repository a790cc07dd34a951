from datetime import datetime, timezone


def to_utc(text, default=timezone.utc):
    """A time such as "2024-03-10T09:30:00+02:00" in UTC; one that names no zone is of the zone `default`."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=default)
    return time.replace(tzinfo=timezone.utc)


def written(time):
    """A time as it stands in a log."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
