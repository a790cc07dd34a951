from semver.compare import newest, older
from semver.version import Version

__all__ = ["Version", "newest", "older"]
