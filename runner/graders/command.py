"""`command`: what a command in a fresh sandbox says of the agent's patch.

The agent never was in this sandbox: what it left is text, a patch, and what that does to protected files is undone
before anything runs. So a recorded rollout can be graded again at any time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from runner.graders.grader import Grader, GraderContext, GraderMisfit, Score
from runner.graders.junit import passed_share
from runner.graders.protected import Protected
from runner.records.failure import GraderError, GraderTimeout
from runner.sandboxes.sandbox import Command, Ran, Sandbox

_TOLD = 2000
_MOST = 4 << 20
_APPLY = (
    "if command -v git >/dev/null 2>&1; then exec git apply --whitespace=nowarn -; "
    "else exec patch -p1 -s -f --no-backup-if-mismatch; fi"
)

Text: TypeAlias = Callable[[GraderContext], str]


@dataclass(frozen=True, slots=True)
class By:
    """What is read: "exit" the exit code, "regex" a number printed (`what` is the pattern), "junit" the file `what`."""

    kind: Literal["exit", "regex", "junit"] = "exit"
    what: str = ""


BY_EXIT = By()


class CommandGrader(Grader):
    """Scores by running `command` (of the row, from `folder`) within `timeout` seconds.

    A time-out is a `GraderTimeout`, a sandbox that is lost or cannot be had a `SandboxError`: never a score. Raises
    `GraderMisfit` for a pattern that cannot be compiled or has no group.
    """

    def __init__(
        self,
        command: Text,
        sandbox: str,
        *,
        timeout: float = 60.0,
        folder: str = ".",
        patch: bool = True,
        protect: Sequence[str] = (),
        by: By = BY_EXIT,
    ) -> None:
        super().__init__()
        self._command = command
        self._sandbox = sandbox
        self._timeout = timeout
        self._folder = folder
        self._patch = patch
        self._protect = protect
        self._by = by
        self._pattern = _compiled(by) if by.kind == "regex" else None
        if by.kind != "regex":
            self.range = (0.0, 1.0)

    async def grade(self, ctx: GraderContext) -> Score:
        text = self._command(ctx)
        patch = _patch_of(ctx) if self._patch else ""
        async with ctx.fresh_sandbox(self._sandbox) as sandbox:
            if patch.strip():
                await self._apply(sandbox, patch)
            if self._by.kind == "junit":
                await _forget(sandbox, self._report)
            ran = await sandbox.exec(
                Command(["/bin/sh", "-c", text], cwd=self._folder, timeout=self._timeout, max_output=_MOST)
            )
            if ran.timed_out:
                raise GraderTimeout(f"`{text}` did not end within {self._timeout:g} s")
            value, reason = await self._judge(sandbox, ran)
        output = (ran.stdout + ran.stderr)[-_TOLD:].decode("utf-8", "replace")
        details: dict[str, Any] = {"exit_code": ran.code, "seconds": round(ran.seconds, 3), "output": output}
        if ran.out_of_memory:
            details["out_of_memory"] = True
        return Score(value, reason, details)

    @property
    def _report(self) -> str:
        return self._by.what if self._by.what.startswith("/") else f"{self._folder.rstrip('/')}/{self._by.what}"

    async def _apply(self, sandbox: Sandbox, patch: str) -> None:
        protected = Protected(sandbox, self._folder, self._protect)
        if self._protect:
            await protected.remember()
        data = patch.encode("utf-8", "surrogateescape")
        ran = await sandbox.exec(Command(["/bin/sh", "-c", _APPLY], stdin=data, cwd=self._folder, timeout=120.0))
        if ran.code != 0:
            said = ran.stderr.decode("utf-8", "replace").strip()[-300:]
            raise GraderError(f"the agent's patch does not apply to a fresh copy: {said}", kind="patch_failed")
        if self._protect:
            await protected.restore()

    async def _judge(self, sandbox: Sandbox, ran: Ran) -> tuple[float, str]:
        if self._by.kind == "exit":
            return (1.0, "") if ran.code == 0 else (0.0, f"exit code {ran.code}")
        if self._pattern is not None:
            return _number(self._pattern, (ran.stdout + b"\n" + ran.stderr).decode("utf-8", "replace"))
        try:
            report = await sandbox.get(self._report, limit=_MOST)
        except OSError:
            return 0.0, f"exit code {ran.code}, and no report `{self._by.what}`"
        return passed_share(report)


def _patch_of(ctx: GraderContext) -> str:
    patch = ctx.info.get("patch")
    if not isinstance(patch, str):
        raise GraderError("the agent left no patch to grade: the agent `coding` does", kind="no_patch")
    return patch


async def _forget(sandbox: Sandbox, report: str) -> None:
    """A report that is there already says nothing: the patch may have brought it."""
    try:
        await sandbox.remove(report)
    except FileNotFoundError:
        return
    except OSError as error:
        raise GraderError(f"the old report `{report}` cannot be removed: {error}", kind="grader_error") from error


def _compiled(by: By) -> re.Pattern[str]:
    try:
        pattern = re.compile(by.what)
    except re.error as error:
        raise GraderMisfit(f"its pattern cannot be compiled: {error}", key="score") from error
    if not 1 <= pattern.groups <= 2:
        raise GraderMisfit("its pattern has no group for the number; put `( )` around it", key="score")
    return pattern


def _number(pattern: re.Pattern[str], text: str) -> tuple[float, str]:
    found = None
    for found in pattern.finditer(text):  # noqa: B007 (the last one counts)
        pass
    if found is None:
        return 0.0, "it printed no such number"
    try:
        value = float(found[1])
        if pattern.groups == 2:
            value /= float(found[2])
    except (ValueError, TypeError, ZeroDivisionError):
        return 0.0, f"`{found[0]:.80}` is no number"
    if value != value or value in (float("inf"), float("-inf")):
        return 0.0, f"`{found[0]:.80}` is no finite number"
    return value, f"`{found[0]:.80}`"
