"""bubblewrap against code that means harm. Each test does the harm and looks at what came of it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from pathlib import Path

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.asked import Limits, Mount
from runner.sandboxes.bubblewrap import BubblewrapMaker
from runner.sandboxes.local import LocalSandbox
from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.sandbox import Command, Ran
from runner.sandboxes.syscalls import syscall_filter
from tests.sandboxes.conftest import needs_bubblewrap, needs_groups, opened, play, sh

pytestmark = needs_bubblewrap


def python(sandbox: LocalSandbox, code: str, **more: float) -> asyncio.Task[Ran]:
    command = Command(["python3", "-c", code], **{"timeout": 20.0, **more})  # type: ignore[arg-type]
    return asyncio.create_task(sandbox.exec(command))


@needs_groups
def test_a_fork_bomb_is_stopped_and_hurts_nobody_after() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        bomb = "import os\ntry:\n while True: os.fork()\n"
        bomb += "except OSError as e: print(e.errno, flush=True); import time; time.sleep(30)"
        ran = await python(sandbox, bomb, timeout=2.0)
        assert ran.timed_out and b"11" in ran.stdout  # EAGAIN
        assert (await sh(sandbox, "echo alive")).stdout == b"alive\n"
        group = sandbox.place.group
        assert group is not None
        end = time.monotonic() + 5
        while any((folder / "cgroup.procs").read_text() for folder in group.folders):
            assert time.monotonic() < end
            await asyncio.sleep(0.02)

    play("bubblewrap", work, LocalOptions(limits=Limits(pids=40)))


@needs_groups
def test_commands_beside_a_session_that_used_up_all_processes_fail_as_commands() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        bomb = "import os, time\ntry:\n while True: os.fork()\nexcept OSError: time.sleep(30)"
        session = await sandbox.start(Command(["python3", "-c", bomb]))
        await asyncio.sleep(0.5)
        ran = await sh(sandbox, "echo alive")
        assert ran.code != 0 and not ran.timed_out  # and no SandboxError: it is its own doing
        await session.kill()
        assert (await sh(sandbox, "echo alive")).stdout == b"alive\n"

    play("bubblewrap", work, LocalOptions(limits=Limits(pids=20)))


@needs_groups
def test_a_memory_hog_is_killed_and_told() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        ran = await python(sandbox, "x = bytearray(400 << 20); print('held')")
        assert ran.code == 137 and ran.out_of_memory and b"held" not in ran.stdout
        # Split over processes: the limit is the sandbox's.
        many = (
            "import os, time\nfor _ in range(8):\n  if not os.fork(): x = bytearray(40 << 20); time.sleep(9)\nos.wait()"
        )
        ran = await python(sandbox, many)
        assert ran.seconds < 9
        fine = await python(sandbox, "x = bytearray(20 << 20); print('held')")
        assert fine.stdout == b"held\n" and not fine.out_of_memory
        killed = await sh(sandbox, "kill -9 $$")
        assert killed.code == 137 and not killed.out_of_memory

    play("bubblewrap", work, LocalOptions(limits=Limits(memory=128 << 20)))


@needs_groups
def test_memory_in_files_of_memory_counts() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        ran = await sh(sandbox, "head -c 400000000 /dev/zero > /dev/shm/big; echo $?")
        assert ran.stdout != b"0\n" or ran.code != 0

    play("bubblewrap", work, LocalOptions(limits=Limits(memory=128 << 20)))


@needs_groups
def test_processors_are_shared_out() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        code = (
            "import time\nend = time.monotonic() + 1.0\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
        )
        ran = await python(sandbox, code)
        assert float(ran.stdout) < 0.55

    play("bubblewrap", work, LocalOptions(limits=Limits(cpus=0.25)))


def test_no_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        async def work(sandbox: LocalSandbox) -> None:
            code = (
                "import socket, sys\n"
                f"for a in (('127.0.0.1', {port}), ('1.1.1.1', 53), ('169.254.169.254', 80)):\n"
                " try: socket.create_connection(a, 2); print('reached', a)\n"
                " except OSError as e: print('no')\n"
                "print(open('/proc/net/dev').read().count(':'))"
            )
            assert (await python(sandbox, code)).stdout == b"no\nno\nno\n1\n"

        play("bubblewrap", work)


def test_no_abstract_socket_of_the_host() -> None:
    name = f"\0osmosis-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()

        async def work(sandbox: LocalSandbox) -> None:
            ran = await python(sandbox, f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})")
            assert b"ConnectionRefusedError" in ran.stderr

        play("bubblewrap", work)


def test_nothing_is_written_outside() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        places = (
            "/ /usr /usr/bin /etc /etc/passwd /bin /lib /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys /root"
        )
        for place in places.split():
            ran = await sh(sandbox, f"if [ -d {place} ]; then touch {place}/x; else : >> {place}; fi")
            assert ran.code != 0, place
        assert (await sh(sandbox, "touch /tmp/x /workspace/x && mount -t tmpfs none /mnt")).code != 0
        assert not Path("/tmp/x").exists()  # noqa: S108 (the sandbox has one of its own)

    play("bubblewrap", work)


def test_no_secret_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-in-the-environment")
    (tmp_path / "key.pem").write_text("sk-in-a-file")

    async def work(sandbox: LocalSandbox) -> None:
        looked = (
            f"cat {tmp_path}/key.pem /etc/shadow /root/.bashrc /proc/1/environ /proc/*/environ /home/*/.ssh/id_rsa; "
        )
        looked += "env; cat /etc/passwd /etc/hosts; hostname; ls -a / /etc; cat /proc/*/cmdline; mount"
        ran = await sh(sandbox, looked)
        said = ran.stdout + ran.stderr
        assert b"sk-in" not in said and b"bash_history" not in said
        assert socket.gethostname().encode() not in ran.stdout.replace(b"sandbox", b"")
        assert (await sh(sandbox, "ls -d /home /root /var /etc/shadow /work /mnt 2>/dev/null")).stdout == b""

    play("bubblewrap", work)


def test_variables_are_no_words_that_others_can_read() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        task = asyncio.create_task(sh(sandbox, "sleep 1", timeout=5, env={"TOKEN": "sk-of-the-tool"}))
        await asyncio.sleep(0.3)
        words = [each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists()]
        assert any(b"sleep 1" in each for each in words) and not any(b"sk-of-the-tool" in each for each in words)
        await task

    play("bubblewrap", work)


def test_no_other_process_and_no_capability() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        ran = await sh(sandbox, "ls /proc | grep -c '^[0-9]'; grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status")
        lines = ran.stdout.decode().split()
        assert int(lines[0]) < 6
        assert [int(each, 16) for each in lines[2::2]] == [0, 0, 0, 1]
        assert (await sh(sandbox, f"kill -9 {os.getpid()}; kill -9 1; echo still")).stdout == b"still\n"

    play("bubblewrap", work)


def test_it_is_nobody_to_the_machine() -> None:
    """Root of the machine without its capabilities still owns its devices and its kernel's settings."""

    async def work(sandbox: LocalSandbox) -> None:
        before = stat.S_IMODE(os.stat("/dev/null").st_mode)
        assert (await sh(sandbox, f"chmod {before:o} /dev/null")).code != 0
        # Pressure may be watched by anybody: a trigger there is the writer's own.
        apart = "-not -path '/proc/[0-9]*' -not -path '/proc/*self*' -not -path '/proc/pressure/*'"
        found = await sh(sandbox, f"find /proc -writable -type f {apart} 2>/dev/null")
        assert found.stdout == b""
        await sh(sandbox, "touch f; mkdir d")
        owner = os.stat(sandbox.place.folder / "work" / "f").st_uid
        assert owner != 0 and (os.geteuid() == 0) == (owner != os.geteuid())

    play("bubblewrap", work)


def test_without_control_groups_each_command_is_limited_by_itself() -> None:
    async def main() -> None:
        limits = Limits(memory=1 << 30, pids=30)
        async with opened("bubblewrap", LocalOptions(limits=limits), control_groups=False) as sandbox:
            bomb = "import os, time\ntry:\n while True: os.fork()\n"
            bomb += "except OSError as e: print(e.errno, flush=True); time.sleep(9)"
            ran = await python(sandbox, bomb, timeout=2.0)
            assert ran.timed_out and b"11" in ran.stdout
            hog = await python(sandbox, "x = bytearray(2 << 30); print('held')")
            assert b"MemoryError" in hog.stderr and hog.code == 1
            assert (await sandbox.exec(Command(["no-such-program"]))).code == 127
            assert (await sh(sandbox, "exit 5")).code == 5

    asyncio.run(main())


def test_no_set_user_id_and_no_user_namespace_of_its_own() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        assert (await sh(sandbox, "unshare -Ur id")).code != 0
        ran = await sh(sandbox, "cp /bin/sleep ./s; chmod 4755 ./s; grep ' /workspace ' /proc/mounts")
        assert b"nosuid" in ran.stdout and b"nodev" in ran.stdout

    play("bubblewrap", work)


def test_calls_that_no_program_here_needs_are_refused() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        code = (
            "import ctypes, os, platform\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "x = platform.machine() == 'x86_64'\n"
            "for n in (250, 321, 425, 165, 272, 323) if x else (219, 280, 425, 40, 97, 282):\n"
            " ctypes.set_errno(0); r = libc.syscall(n, 0, 0, 0, 0, 0); print(r, ctypes.get_errno())\n"
            "print(open('/proc/self/status').read().split('Seccomp:')[1].split()[0])"
        )
        assert (await python(sandbox, code)).stdout == b"-1 1\n" * 6 + b"2\n"
        assert (await sh(sandbox, "echo 'int main(){}' > a.c; git init -q r && ls r/.git | wc -l")).code == 0

    play("bubblewrap", work)


def test_a_filter_for_each_machine_and_none_for_strangers() -> None:
    assert len(syscall_filter("x86_64")) % 8 == 0 and syscall_filter("aarch64") and not syscall_filter("mips")


def test_no_descriptor_of_ours_is_open_inside() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        ran = await python(sandbox, "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])")
        assert ran.stdout == b"[0, 1, 2]\n"

    play("bubblewrap", work)


def test_the_terminal_is_not_ours() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        assert (await python(sandbox, "open('/dev/tty')")).code != 0

    play("bubblewrap", work)


def test_a_planted_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sk-host")
    (tmp_path / "shared").mkdir()
    options = LocalOptions(mounts={"/data": Mount(tmp_path / "shared", writable=False)})

    async def work(sandbox: LocalSandbox) -> None:
        await sh(sandbox, f"ln -s {tmp_path}/secret out; ln -s {tmp_path} away; ln -s /etc/passwd who; ln -s / root; "
                          "ln -s ../../../../../../.. up; ln -s loop loop; mkfifo pipe; echo in > inside; "
                          "ln -s /workspace/inside whole; ln -s /data mounted; mkdir d; ln -s . d/here")  # fmt: skip
        # Its own /tmp is not ours: what leads there is read and written there, and nowhere else.
        for path in ("out", "away/secret", "who", "root/etc/passwd", "up/etc/passwd", "/etc/passwd", "../../etc/passwd",
                     "loop", "pipe", f"{tmp_path}/secret", "/proc/self/environ", "d/../../etc/passwd"):  # fmt: skip
            with pytest.raises(OSError):
                await sandbox.get(path)
            with pytest.raises(OSError):
                await sandbox.list(path)
        for path in ("who", "root/etc/passwd", "up/etc/x", "/etc/x", "../x", "loop", "pipe/x", "/x", "/usr/x", "root"):
            with pytest.raises(OSError):
                await sandbox.put(path, b"overwritten")
        await sandbox.put("out", b"its own")
        assert (await sh(sandbox, f"cat {tmp_path}/secret")).stdout == b"its own"
        assert await sandbox.get("whole") == b"in\n" == await sandbox.get("d/here/../inside")
        await sandbox.put("whole", b"new")
        assert (await sh(sandbox, "cat inside; readlink whole")).stdout == b"new/workspace/inside\n"
        with pytest.raises(PermissionError):
            await sandbox.put("mounted/x", b"")
        with pytest.raises(PermissionError):
            await sandbox.remove("/data")
        await sandbox.remove("out")
        assert (tmp_path / "secret").read_text() == "sk-host" and not list((tmp_path / "shared").iterdir())

    play("bubblewrap", work, options)


def test_a_folder_that_is_swapped_for_a_link_all_the_time(tmp_path: Path) -> None:
    """The race that a check before the use would lose."""
    (tmp_path / "f").write_text("sk-host")

    async def work(sandbox: LocalSandbox) -> None:
        await sandbox.put("d/f", b"mine")
        swap = f"import os\nos.symlink({str(tmp_path)!r}, 'l')\nwhile True:\n"
        swap += " os.rename('d', 'k'); os.rename('l', 'd'); os.rename('d', 'l'); os.rename('k', 'd')\n"
        running = await sandbox.start(Command(["python3", "-c", swap]))
        await asyncio.sleep(0.2)
        seen: set[bytes] = set()
        for n in range(300):
            try:
                seen.add(await sandbox.get("d/f"))
                await sandbox.put("d/n", str(n).encode())
            except OSError:
                pass
        await running.kill()
        assert seen <= {b"mine"} and [each.name for each in tmp_path.iterdir()] == ["f"]

    play("bubblewrap", work)


def test_a_huge_sparse_file_is_not_read_into_memory() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        await sh(sandbox, "truncate -s 1T big")
        with pytest.raises(OSError, match="at once"):
            await sandbox.get("big")
        assert await sandbox.get("big", limit=10) == bytes(10)

    play("bubblewrap", work)


def test_nothing_it_says_passes_for_a_dead_sandbox() -> None:
    """A policy that could fake an infrastructure failure would not be graded for what it did."""

    async def work(sandbox: LocalSandbox) -> None:
        ran = await sh(sandbox, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
        assert ran.code == 1
        assert (await sh(sandbox, "exit 125")).code == 125
        for signal in (9, 15, 2, 11):
            assert (await sh(sandbox, f"kill -{signal} -1; kill -{signal} 1; kill -{signal} $$")).code == 128 + signal
        assert (await sh(sandbox, "rm -rf /workspace /tmp 2>/dev/null; exit 3")).code == 3
        assert (await sh(sandbox, "chmod 000 /workspace /tmp; exit 4")).code == 4
        assert (await sh(sandbox, "chmod 700 /workspace; echo ok", cwd="/")).stdout == b"ok\n"
        await sandbox.put("a", b"b")

    play("bubblewrap", work)


def test_the_dead_sandbox_is_lost_at_once() -> None:
    """Somebody on the host kills `bwrap`: that is no result of the command."""

    async def work(sandbox: LocalSandbox) -> None:
        task = asyncio.create_task(sh(sandbox, "sleep 30"))
        await asyncio.sleep(0.3)
        (process,) = sandbox._running
        os.kill(process.pid, 9)
        with pytest.raises(SandboxError, match="killed by signal 9") as caught:
            await asyncio.wait_for(task, 3)
        assert caught.value.kind == "sandbox_lost"

    play("bubblewrap", work)


def test_what_it_leaves_is_removed_whatever_its_rights() -> None:
    folders: list[Path] = []

    async def work(sandbox: LocalSandbox) -> None:
        folders.append(sandbox.place.folder)
        await sh(sandbox, "mkdir -p a/b/c; echo x > a/b/c/f; chmod 000 a/b/c/f a/b/c a/b; mkfifo p; ln -s / l")
        await python(sandbox, "import os\nfor _ in range(1200): os.mkdir('d'); os.chdir('d')")

    play("bubblewrap", work)
    assert not folders[0].exists()


def test_modes_and_owner_of_what_is_put() -> None:
    async def work(sandbox: LocalSandbox) -> None:
        await sandbox.put("deep/run.sh", b"#!/bin/sh\nid -un\n", mode=0o755)
        assert (await sh(sandbox, "deep/run.sh; touch deep/run.sh deep/x")).stdout == b"sandbox\n"
        await sandbox.put("deep/run.sh", b"#!/bin/sh\necho new\n")
        assert (await sh(sandbox, "deep/run.sh")).stdout == b"new\n"
        assert stat.S_IMODE(os.stat(sandbox.place.folder / "work/deep/run.sh").st_mode) == 0o755

    play("bubblewrap", work)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can stay root")
@pytest.mark.parametrize("writable", [False, True])
def test_commands_that_stay_root_are_announced(tmp_path: Path, writable: bool) -> None:
    async def probed() -> list[str]:
        folder = tmp_path if writable else Path("/usr/share")
        maker = BubblewrapMaker(LocalOptions(mounts={"/data": Mount(folder, writable)}))
        try:
            return [said for said in await maker.probe() if "as root of this machine" in said]
        finally:
            await maker.aclose()

    assert len(asyncio.run(probed())) == int(writable)
