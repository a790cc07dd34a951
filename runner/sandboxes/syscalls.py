"""A filter of system calls for bubblewrap: what no program needs that works on files, and kernels were broken through.

A list of what is refused, so that nothing ordinary breaks; everything else is the namespaces' to hold.
"""

from __future__ import annotations

import platform
import struct

_ERRNO = 0x0005_0000
_EPERM, _ENOSYS = 1, 38
_ALLOW = 0x7FFF_0000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x4000_0000

_SAME = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
         "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442}  # fmt: skip
"""Calls that have one number everywhere."""

_REFUSED: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000_003E,
        {"add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
         "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
         "open_by_handle_at": 304, "mount": 165, "umount2": 166, "pivot_root": 155, "setns": 308, "unshare": 272,
         "acct": 163, "swapon": 167, "swapoff": 168, "reboot": 169, "quotactl": 179, "syslog": 103, "iopl": 172,
         "ioperm": 173, **_SAME},
    ),
    "aarch64": (
        0xC000_00B7,
        {"add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
         "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
         "open_by_handle_at": 265, "mount": 40, "umount2": 39, "pivot_root": 41, "setns": 268, "unshare": 97,
         "acct": 89, "swapon": 224, "swapoff": 225, "reboot": 142, "quotactl": 60, "syslog": 116, **_SAME},
    ),
}  # fmt: skip
"""By machine: its number among architectures, and what is refused with EPERM."""


def syscall_filter(machine: str = "") -> bytes:
    """A program for `bwrap --seccomp`, or b"" for a machine whose numbers are not known here.

    Calls by another architecture's numbers do not exist (ENOSYS): they would go past a list of these.
    """
    known = _REFUSED.get(machine or platform.machine())
    if known is None:
        return b""
    architecture, refused = known
    numbers = sorted(refused.values())
    lines = [
        (_LOAD, 0, 0, 4),  # the architecture
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        (_LOAD, 0, 0, 0),  # the number
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        *((_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
