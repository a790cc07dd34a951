"""`CodingWorkflow`: the tool loop on a repository in a sandbox: explore, edit, run the tests, finish.

The agent is told nothing that it could not know, and held to no phases: what it did is counted, and the two things
agents forget, to stop reading and to test, it is reminded of. Its result is the patch it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.failure import LimitReached, WorkflowError
from runner.records.message import Message
from runner.workflows.answers import ToolAnswers
from runner.workflows.calling import Calling, Turn
from runner.workflows.coding.baseline import Baseline, Patch
from runner.workflows.coding.course import Course
from runner.workflows.coding.settings import CodingSettings
from runner.workflows.tools import DEFAULT_STOP_WHEN, ToolsWorkflow
from runner.workflows.workflow import AgentWorkflowContext, AgentWorkflowOutput

PATCH_FILE = "patch.diff"

_PROMPT = """You are a careful software engineer. You work on a repository, in {where}, with the tools you are \
given. Nobody answers questions: decide for yourself, and go on until the work is done.

Work like this:
1. Explore: search for what the task names, and read the code that matters, its tests too. Do not read everything.
2. Reproduce the problem if you can, with a test or a short command.
3. Edit: make the smallest change that solves the task at its cause, in the style of the code around it. Do not \
change what the task does not ask for, and never make a test pass by weakening it.
4. {test}
5. Finish with one or two sentences on what was wrong and what you changed.

Call a tool in every turn until you are done. When a call fails, read what it says before you try again."""


class CodingWorkflow(ToolsWorkflow):
    """Works on `settings.folder` of the sandbox `sandbox`. `kinds` is which built-in tool each tool is, by its name.

    Stop reasons are those of `ToolsWorkflow`, and max_attempts. `info` has "patch", for `git apply`, and
    "patch_problem" where what the agent left makes none; the patch is an artifact too, where such are kept.
    """

    def __init__(
        self,
        settings: CodingSettings,
        sandbox: str,
        kinds: Mapping[str, str],
        *,
        stop_when: Sequence[str] = DEFAULT_STOP_WHEN,
        calling: Calling | None = None,
    ) -> None:
        super().__init__(stop_when, calling)
        self._settings = settings
        self._sandbox = sandbox
        self._course = Course(kinds, settings.test_command)
        self._baseline: Baseline | None = None
        self._reminded = False
        self._told_to_edit = False

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        if not any(message.get("role") == "system" for message in ctx.prompt):
            ctx.prompt.insert(0, _system(self._settings))
        try:
            output = await super().run(ctx)
        except LimitReached:
            output = AgentWorkflowOutput()  # what was done until then is its result: the engine knows the limit
        patch = await self._patch(ctx)
        info = {"patch": patch.text, **({"patch_problem": patch.problem} if patch.problem else {})}
        metrics = {
            **self._course.metrics(),
            "patch_files": float(patch.files),
            "patch_bytes": float(len(patch.text.encode())),
        }
        return output.model_copy(update={"info": info, "metrics": metrics})

    async def _before_calls(self, ctx: AgentWorkflowContext[Any]) -> None:
        if self._baseline is None:
            handle = ctx.sandboxes.get(self._sandbox)
            if handle is None:
                raise WorkflowError(f"there is no sandbox {self._sandbox!r} to work in", kind="no_sandbox")
            self._baseline = await Baseline.take(await handle.get(), self._settings.folder)

    def _after_calls(self, turn: Turn, answers: ToolAnswers) -> str:
        course, most = self._course, self._settings.max_files_to_explore
        course.note(turn.calls, answers.statuses)
        if most is None or self._told_to_edit or course.edited or len(course.viewed) < most:
            return ""
        self._told_to_edit = True
        return f"You have viewed {len(course.viewed)} files and changed none. That is enough: make your change now."

    def _ends(self) -> str | None:
        most = self._settings.max_implementation_attempts
        return "max_attempts" if most is not None and self._course.attempts >= most else None

    def _before_end(self) -> str:
        if self._course.untested and self._settings.test_after_changes and not self._reminded and self._can_test():
            self._reminded = True
            how = f" (`{self._settings.test_command}`)" if self._settings.test_command else ""
            return f"You have changed files since the tests were last run. Run them{how}, then finish."
        return ""

    def _can_test(self) -> bool:
        return "bash" in self._course.kinds.values()

    async def _patch(self, ctx: AgentWorkflowContext[Any]) -> Patch:
        if self._baseline is None:
            return Patch()  # no tool was ever called
        patch = await self._baseline.patch(self._settings.max_patch_bytes)
        await self._baseline.forget()
        folder = ctx.artifacts_dir
        if folder is not None and patch.text:
            (folder / PATCH_FILE).write_bytes(patch.text.encode())
        return patch


def _system(settings: CodingSettings) -> Message:
    where = "the folder your tools start in" if settings.folder == "." else f"the folder `{settings.folder}`"
    test = (
        f"Test: run `{settings.test_command}`, and mend what fails because of you."
        if settings.test_command
        else "Test: find out how the tests are run, run those that matter, and mend what fails because of you."
    )
    return {"role": "system", "content": _PROMPT.format(where=where, test=test)}
