"""Open files: each call in flight holds a connection, and many shells allow a process no more than 1,024 files."""

from __future__ import annotations

_SPARE = 256
"""Files that a run needs beside its connections: the journal, the dataset, workers, the user's own."""


def allow_open_files(connections: int) -> str:
    """Raise this process's own limit for so many connections, as far as the system lets it.

    Returns a warning when that is not far enough, else an empty text.
    """
    try:
        import resource
    except ImportError:  # not a POSIX system: there is no such limit to raise
        return ""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return ""
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed >= wanted:
        return ""
    return f"{connections} rollouts in flight need {wanted} open files, and the system allows {hard} (`ulimit -Hn`)"
