"""The patch of a folder, taken by real git in a real sandbox and applied to a fresh copy."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from runner.records.failure import WorkflowError
from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.none import NoneMaker
from runner.sandboxes.sandbox import Command, Sandbox
from runner.workflows.coding.baseline import Baseline, Patch

FILES: Mapping[str, bytes] = {
    "a.py": b"one\ntwo\n",
    "crlf.txt": b"x\r\ny\r\n",
    "latin.txt": "caf\xe9\n".encode("latin-1"),
    "bin.dat": bytes(range(256)),
    "no_end": b"last",
    "sub/deep/b.txt": b"b\n",
    "gone.txt": b"gone\n",
    ".gitattributes": b"* text=auto eol=lf\n*.txt filter=none\n",
}


def play(work: Callable[[Sandbox], Awaitable[None]]) -> None:
    async def main() -> None:
        maker = NoneMaker(LocalOptions())
        try:
            await work(await maker.make("test"))
        finally:
            await maker.aclose()

    asyncio.run(main())


async def sh(sandbox: Sandbox, text: str) -> None:
    ran = await sandbox.exec(Command(["sh", "-ec", text], env={"GIT_CONFIG_GLOBAL": "/dev/null"}))
    assert ran.code == 0, ran.stderr


async def fill(sandbox: Sandbox, files: Mapping[str, bytes] = FILES) -> None:
    for path, data in files.items():
        await sandbox.put(path, data)


async def patch_of(sandbox: Sandbox, change: Callable[[], Awaitable[None]], *, most: int = 1 << 20) -> Patch:
    baseline = await Baseline.take(sandbox, ".")
    await change()
    patch = await baseline.patch(most)
    await baseline.forget()
    ran = await sandbox.exec(Command(["ls", baseline.at]))
    assert ran.code != 0  # nothing is left behind
    return patch


async def everything(sandbox: Sandbox) -> None:
    await sandbox.put("a.py", b"one\n2\n")
    await sandbox.put("crlf.txt", b"x\r\nz\r\n")
    await sandbox.put("latin.txt", "th\xe9\n".encode("latin-1"))
    await sandbox.put("bin.dat", bytes(range(255, -1, -1)))
    await sandbox.put("no_end", b"last\nand more")
    await sandbox.put("new/file é.txt", "naïve 🙂\n".encode())
    await sandbox.put("tool.sh", b"#!/bin/sh\n", mode=0o755)
    await sandbox.put("__pycache__/a.pyc", b"\0")
    await sandbox.remove("gone.txt")
    await sh(sandbox, "ln -s a.py link; mv sub/deep/b.txt sub/b.txt")


def tree(folder: Path) -> dict[str, tuple[str, bytes | str]]:
    found: dict[str, tuple[str, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_file() and not name.startswith((".git/", "__pycache__/")):
            found[name] = ("exec" if os.access(path, os.X_OK) else "file", path.read_bytes())
    return found


def applied(folder: Path, files: Mapping[str, bytes], patch: Patch) -> dict[str, tuple[str, bytes | str]]:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    # As a grader would, in a folder that is no repository.
    run = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=folder, input=patch.text.encode(),
                         capture_output=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    return tree(folder)


@pytest.mark.parametrize("repository", [False, True])
def test_everything_that_changed_is_in_the_patch_byte_for_byte(tmp_path: Path, repository: bool) -> None:
    async def work(sandbox: Sandbox) -> None:
        await fill(sandbox)
        if repository:
            await sh(sandbox, "git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm 1")
        patch = await patch_of(sandbox, lambda: everything(sandbox))
        assert (patch.problem, patch.files) == ("", 11)
        assert applied(tmp_path, FILES, patch) == tree(Path(sandbox.workdir))
        assert "-two\n+2\n" in patch.text and "GIT binary patch" in patch.text

    play(work)


def test_commits_stashes_and_resets_of_the_agent_make_no_difference(tmp_path: Path) -> None:
    async def work(sandbox: Sandbox) -> None:
        await fill(sandbox, {"a.py": b"1\n"})
        await sh(sandbox, "git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm 1")

        async def change() -> None:
            await sandbox.put("a.py", b"2\n")
            await sh(sandbox, "git add -A && git -c user.name=x -c user.email=x@x commit -qm 2 && rm -rf .git")

        patch = await patch_of(sandbox, change)
        assert patch.text.endswith("-1\n+2\n")

    play(work)


def test_ignored_files_are_left_out_unless_they_are_tracked() -> None:
    async def work(sandbox: Sandbox) -> None:
        await fill(sandbox, {".gitignore": b"build/\n", "build/kept.txt": b"1\n"})
        await sh(sandbox, "git init -q . && git add -Af && git -c user.name=x -c user.email=x@x commit -qm 1")

        async def change() -> None:
            await sandbox.put("build/kept.txt", b"2\n")
            await sandbox.put("build/made.txt", b"made\n")

        patch = await patch_of(sandbox, change)
        assert (patch.files, "made" in patch.text) == (1, False)

    play(work)


def test_nested_repositories_break_nothing() -> None:
    async def work(sandbox: Sandbox) -> None:
        await fill(sandbox, {"src/a.py": b"1\n"})

        async def change() -> None:
            await sandbox.put("src/a.py", b"2\n")
            await sh(sandbox, "git init -q empty && git init -q src")

        patch = await patch_of(sandbox, change)
        assert (patch.problem, patch.files) == ("", 1)

    play(work)


def test_what_makes_no_patch_is_told(tmp_path: Path) -> None:
    async def work(sandbox: Sandbox) -> None:
        await fill(sandbox, {"a/x.py": b"1\n"})
        patch = await patch_of(sandbox, lambda: sandbox.put("big.txt", b"line\n" * 1000), most=500)
        assert patch.text == "" and "at most 500 are kept" in patch.problem
        baseline = await Baseline.take(sandbox, "a")
        await sh(sandbox, "rm -rf a")
        assert "is gone" in (await baseline.patch(1000)).problem
        await baseline.forget()
        with pytest.raises(WorkflowError, match="no folder 'nowhere'") as raised:
            await Baseline.take(sandbox, "nowhere")
        assert raised.value.kind == "no_folder"

    play(work)


def test_an_unchanged_folder_has_an_empty_patch() -> None:
    async def work(sandbox: Sandbox) -> None:
        await fill(sandbox)

        async def change() -> None:
            return None

        assert await patch_of(sandbox, change) == Patch()

    play(work)


def test_a_sandbox_without_git_is_told(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")

    async def main() -> None:
        maker = NoneMaker(LocalOptions(env={"PATH": str(tmp_path)}))
        try:
            with pytest.raises(WorkflowError, match="no `git`"):
                await Baseline.take(await maker.make("test"), ".")
        finally:
            await maker.aclose()

    asyncio.run(main())
