"""`bubblewrap`: every command in namespaces of its own, over a folder of the rollout's that lasts.

Held apart: the network, all files but the system's (read-only) and the workspace, other processes, capabilities, the
environment. A command's processes end with it, because they share a process namespace that ends with it; files in the
workspace and in /tmp stay until the sandbox stops. What the command says of itself is not believed: the exit code is
the one that `bwrap` reports on a descriptor that the inside never sees.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from runner.records.failure import SandboxError
from runner.sandboxes.asked import DEFAULT_PIDS, Mount
from runner.sandboxes.inside import Inside
from runner.sandboxes.limits import Group, joining
from runner.sandboxes.local import Launch, LocalSandbox, Place
from runner.sandboxes.local_maker import LocalMaker, LocalOptions
from runner.sandboxes.none import PATH
from runner.sandboxes.owner import owned_folder, remove_tree, spare_user
from runner.sandboxes.process import Process, Start, exit_code
from runner.sandboxes.sandbox import Command
from runner.sandboxes.syscalls import syscall_filter

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "localtime", "mime.types", "ssl/openssl.cnf")
_ETC_FOLDERS = ("alternatives", "ssl/certs", "pki/tls/certs", "ca-certificates/extracted")
_ETC_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols")
_NOT_FOUND = 127
_MISSING = "No such file or directory"
_USED_UP = ("Resource temporarily unavailable", "Cannot allocate memory")
_TMP = "/tmp"  # noqa: S108 (inside: a folder of the sandbox's own)
_AS_ROOT = "commands run as root of this machine without its capabilities, not as nobody"


class BubblewrapMaker(LocalMaker):
    """Makes sandboxes of kind `bubblewrap`. `program` is what is started; found on PATH by default."""

    kind = "bubblewrap"

    def __init__(self, options: LocalOptions, *, control_groups: bool = True, program: str = "bwrap") -> None:
        super().__init__(options, control_groups=control_groups)
        self._program = program
        self._words: list[str] = []
        self._etc: Path | None = None
        # What is mounted to be written is written with our rights, or not at all.
        self._drops = spare_user() is not None and not any(mount.writable for mount in options.mounts.values())

    async def probe(self) -> Sequence[str]:
        path = shutil.which(self._program)
        if path is None:
            raise SandboxError(
                "bubblewrap is not installed: install it (Debian, Ubuntu: `apt-get install bubblewrap`), or choose "
                "another kind",
                kind="sandbox_unavailable",
            )
        said = list(await super().probe())
        self._etc = await asyncio.to_thread(_etc, self.options)
        self._words = await asyncio.to_thread(system_words, self.options, path, self._etc)
        why = await self._try()
        if why and self._drops:
            self._drops, first = False, why
            why = await self._try()
            said += [f"{_AS_ROOT}: {first}"]
        elif not self._drops and os.geteuid() == 0:
            mounted = any(mount.writable for mount in self.options.mounts.values())
            said += [f"{_AS_ROOT}: {'a mount is to be written' if mounted else 'there is no `setpriv`'}"]
        if not syscall_filter():
            said += [f"no filter of system calls is known for this machine ({platform.machine()})"]
        if why:
            raise SandboxError(f"bubblewrap cannot run a command here: {why}", kind="sandbox_unavailable")
        return said

    def missing_limits(self) -> list[str]:
        if self.hierarchy.has("pids") or shutil.which("prlimit") is None:
            return super().missing_limits()
        memory = "" if self.options.limits.memory is None else ", its memory for each process by itself"
        return [f"no control group can be made here: processes are limited for each command by itself{memory}"]

    async def _try(self) -> str:
        """Run a command. Why that does not work, or nothing."""
        sandbox = await self.make("probe")
        try:
            ran = await sandbox.exec(Command(["/bin/true"], timeout=20.0))
        except SandboxError as error:
            return str(error)
        finally:
            await sandbox.stop()
        text = ran.stderr.decode("utf-8", "replace").strip()
        return "" if ran.code == 0 else text or f"/bin/true exited with {ran.code}"

    async def aclose(self) -> None:
        if self._etc is not None:
            await asyncio.to_thread(remove_tree, self._etc)
        await super().aclose()

    def build(self, place: Place, forget: Callable[[LocalSandbox], None]) -> LocalSandbox:
        user = spare_user() if self._drops else None
        return BubblewrapSandbox(place, self.options, [*self._words], forget, user, self._each())

    def _each(self) -> list[str]:
        """Words before each command, inside: what holds where no control group does."""
        limits = self.options.limits
        if self.hierarchy.has("pids") or shutil.which("prlimit") is None:
            return []
        words = ["prlimit", f"--nproc={DEFAULT_PIDS if limits.pids is None else limits.pids}"]
        return [*words, *([] if limits.memory is None else [f"--as={limits.memory}"]), "--"]


class BubblewrapSandbox(LocalSandbox):
    """One workspace. `words` is how every command's `bwrap` starts, `each` what comes before the command inside.

    `user` is who it is to the machine, and owns its files: somebody who is nobody else, where we are root.
    """

    def __init__(
        self,
        place: Place,
        options: LocalOptions,
        words: Sequence[str],
        forget: Callable[[LocalSandbox], None],
        user: int | None = None,
        each: Sequence[str] = (),
    ) -> None:
        work, tmp = place.folder / "work", place.folder / "tmp"
        for folder in (work, tmp, place.folder):
            folder.mkdir(exist_ok=True)
            if user is not None:
                os.chown(folder, user, user)
        mounts = {**options.mounts, options.workdir: Mount(work), _TMP: Mount(tmp)}
        super().__init__(place, Inside(mounts, options.workdir, user), options.time, forget)
        who = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        self._who, self._each = who, list(each)
        self._filter = syscall_filter()
        self._workdir = options.workdir
        self._env = {"PATH": PATH, "HOME": _TMP, "TMPDIR": _TMP, "LANG": "C.UTF-8", **options.env}
        self._program, *fixed = words
        bound = [word for path, mount in _outer_first(mounts) for word in _bind(path, mount)]
        self._words = [*fixed, *bound, "--remount-ro", "/"]

    @property
    def workdir(self) -> str:
        return self._workdir

    def _launch(self, command: Command, *, merged: bool) -> Launch:
        env = {**self._env, **command.env}
        given = [word for name, value in env.items() for word in ("--setenv", name, value)]
        cwd = str(PurePosixPath(self._workdir) / command.cwd)
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        words = [*self._words, *given, "--chdir", cwd, "--json-status-fd", str(write)]
        fds = [write]
        if self._filter:
            fds.append(_memory(self._filter))
            words += ["--seccomp", str(fds[-1])]
        # By a descriptor, not as arguments: everybody on the machine could read the variables there.
        options = _memory(b"".join(os.fsencode(word) + b"\0" for word in words))
        fds.append(options)
        group = self.place.group
        joined = joining(group.folders if group else ())
        argv = [*joined, *self._who, self._program, "--args", str(options), "--", *self._each, *command.argv]
        start = Start(argv, {"PATH": PATH}, "/", fds, merged=merged)
        return _Launch(start, read, group, self.place.name)


class _Launch(Launch):
    def __init__(self, start: Start, status: int, group: Group | None, name: str) -> None:
        self.start = start
        self._status = status
        self._group = group
        self._name = name
        self._killed = False
        self._open = list(start.fds)

    def opened(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    def kill(self, process: Process) -> None:
        """Killing `bwrap` ends its process namespace, and with that everything in it, however it was started."""
        if not process.ended:
            self._killed = True
            process.signal(signal.SIGKILL)

    def judge(self, returned: int, said: bytes) -> int:
        code = self._reported()
        if code is not None:
            return code
        if self._killed:
            return 128 + signal.SIGKILL
        if returned < 0:
            if self._group is not None and self._group.killed_for_memory():
                return exit_code(returned)
            why = f"bwrap was killed by signal {-returned}"
            raise SandboxError(f"sandbox {self._name!r}: {why}", kind="sandbox_lost")
        return self._never_began(said)

    def close(self) -> None:
        self.opened()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1

    def _never_began(self, said: bytes) -> int:
        """`bwrap` ended before the command began, and says why: the command's own fault, or the end of the sandbox."""
        text = said.decode("utf-8", "replace").strip()
        if "bwrap: execvp " in text:
            return _NOT_FOUND if text.endswith(_MISSING) else _NOT_FOUND - 1
        if "Can't chdir to" in text:
            raise FileNotFoundError(errno.ENOENT, f"the folder to start in: {text.removeprefix('bwrap: ')}")
        if any(text.endswith(reason) for reason in _USED_UP):
            return _NOT_FOUND - 1  # what it has started uses up its own limits
        why = f"bwrap could not start the command: {text[-500:] or 'it does not say why'}"
        raise SandboxError(f"sandbox {self._name!r}: {why}", kind="sandbox_lost")

    def _reported(self) -> int | None:
        try:
            said = os.read(self._status, 1 << 16)
        except BlockingIOError:
            return None
        for line in said.splitlines():
            with suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict) and "exit-code" in told:
                    return int(told["exit-code"])
        return None


def _memory(data: bytes) -> int:
    """A descriptor that reads as `data`."""
    descriptor = os.memfd_create("bwrap", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def system_words(options: LocalOptions, program: str, etc: Path) -> list[str]:
    """The program and the words that are the same for every sandbox of a section: namespaces and the system's files."""
    words = [program, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not options.network:
        words += ["--unshare-net"]
    words += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv"]
    if _can(program, "--disable-userns"):
        words += ["--disable-userns"]
    words += ["--uid", str(options.user), "--gid", str(options.group)]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM:
        path = Path("/") / name
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    # Started by root, its processes are root's to the kernel, capabilities or not: /proc/sys would be theirs to write.
    words += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    words += ["--ro-bind", str(etc), "/etc"]
    for name in _ETC_FOLDERS:
        if (etc / name).is_dir():
            words += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    return words


def _can(program: str, word: str) -> bool:
    """Whether this version knows an option."""
    said = subprocess.run([program, "--help"], capture_output=True, check=False, timeout=10)
    return word.encode() in said.stdout + said.stderr


def _etc(options: LocalOptions) -> Path:
    """An /etc of our own: who is who, where libraries are, and nothing that tells of this machine."""
    folder = owned_folder() / f"etc-{secrets.token_hex(4)}"
    folder.mkdir()
    user, group = options.user, options.group
    (folder / "passwd").write_text(
        f"root:x:0:0:root:/root:/bin/sh\nsandbox:x:{user}:{group}:sandbox:/tmp:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
    (folder / "group").write_text(f"root:x:0:\nsandbox:x:{group}:\nnogroup:x:65534:\n")
    (folder / "hosts").write_text("127.0.0.1 localhost sandbox\n::1 localhost\n")
    (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    for name in (*_ETC, *(_ETC_NETWORK if options.network else ())):
        source, target = Path("/etc") / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError, shutil.Error):
            if source.is_file():
                shutil.copyfile(source, target)
    for name in _ETC_FOLDERS:
        if (Path("/etc") / name).is_dir():
            (folder / name).mkdir(parents=True, exist_ok=True)
    return folder


def _outer_first(mounts: Mapping[str, Mount]) -> list[tuple[str, Mount]]:
    """Mounts in the order in which they can be made: what lies in another comes after it."""
    return sorted(mounts.items(), key=lambda item: len(PurePosixPath(item[0]).parts))


def _bind(path: str, mount: Mount) -> list[str]:
    return ["--bind" if mount.writable else "--ro-bind", str(mount.host), path]
