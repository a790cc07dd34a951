import re


def slug(title, longest=60):
    """`title` in small letters, digits and single hyphens."""
    plain = title.encode("ascii", "ignore").decode("ascii").lower()
    words = re.findall(r"[a-z0-9]+", plain)
    return "-".join(words)[:longest].rstrip("-")


def unique(title, taken):
    """A slug that is not in `taken`: with a number at its end where it has to be."""
    first = slug(title) or "post"
    name, number = first, 2
    while name in taken:
        name, number = f"{first}-{number}", number + 1
    return name
