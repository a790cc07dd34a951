from semver.version import Version


def older(first, second):
    """Whether the version `first` comes before `second`."""
    return Version.parse(first).key() < Version.parse(second).key()


def newest(texts):
    """The highest version of a list, as it was written."""
    return max(texts, key=lambda text: Version.parse(text).key())
