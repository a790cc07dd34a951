"""`evaluate`: a plan on its dataset, resumed, journalled, summarised.

A rollout counts only once its line is on disk, and every number at the end is read from that disk: killing the
process at any moment loses no finished rollout and repeats none.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from runner.batch.conclude import conclude
from runner.batch.history import History, read_history
from runner.batch.log import RunLog
from runner.batch.manifest import make_manifest
from runner.batch.options import RunOptions, RunResult
from runner.batch.past_run import PastRun
from runner.batch.plan import Chooser, Digests, Explainer, RunPlan, make_plan
from runner.batch.playing import Playing
from runner.batch.reasons import placer
from runner.batch.standing import Nobody, Watcher
from runner.store.journal_reading import read
from runner.store.lock import RunLock
from runner.store.run_folder import RunFolder, distinct_name, safe_name

if TYPE_CHECKING:
    from runner.build.plan import Plan


class Control:
    """The way to stop a run from outside."""

    def __init__(self) -> None:
        self._run: Playing | None = None
        self.interrupted = False

    def attach(self, run: Playing | None) -> None:
        self._run = run
        if run is not None and self.interrupted:
            run.interrupt()

    def interrupt(self) -> bool:
        """Start nothing new, let what runs finish within its grace. False when that was asked before: end at once."""
        first, self.interrupted = not self.interrupted, True
        if first and self._run is not None:
            self._run.interrupt()
        return first


def run_folder(plan: Plan, options: RunOptions) -> RunFolder:
    """Where the run goes. Nothing is touched."""
    root = options.output if options.output is not None else plan.config.eval.output.path
    name = safe_name(options.name or plan.name)
    return RunFolder(root / (f"{name}@{distinct_name(options.cell)}" if options.cell else name))


def plan_run(plan: Plan, options: RunOptions) -> tuple[RunPlan, Chooser]:
    """What `evaluate` would do. Reads the journal and the dataset once, writes nothing.

    Raises `StoreError`, and `DatasetError`, also for a plan without a dataset.
    """
    folder = run_folder(plan, options)
    is_there = folder.manifest_path.is_file() and not options.fresh
    before = folder.manifest if is_there else None
    history = read_history(read(folder.journal_path)) if is_there else History()
    chooser = Chooser(history, Digests.of(plan.facts), retry_failed=options.retry_failed)
    earlier = [*before.get("earlier", []), before["facts"]] if before else []
    section, explainer = plan.config.eval, Explainer(plan.facts, earlier, placer(plan.config))
    run = make_plan(plan.require_dataset().rows(), section.attempts, chooser, explainer, section.group_by)
    run.spent_cost, run.spent_tokens = history.cost, history.tokens
    return run, chooser


async def evaluate(
    plan: Plan, options: RunOptions, watcher: Watcher | None = None, control: Control | None = None
) -> RunResult:
    """Run, or go on with, an evaluation, and write its summary.

    Raises `ConfigError` (no model), `StoreError` (locked, disk full, another version), `DatasetError`; a rollout that
    fails raises nothing.
    """
    plan.require_dataset()
    plan.require_model()
    with ExitStack() as stack:
        folder = _take(run_folder(plan, options), options, stack)
        run_plan, chooser = plan_run(plan, options)
        before = None if folder.is_new else folder.manifest
        folder.write_manifest(make_manifest(plan, run_plan, options, before, placer(plan.config)))
        log = stack.enter_context(RunLog(folder.log_path))
        past = PastRun(folder, run_plan.wanted)
        run = Playing(plan, options, (run_plan, chooser), past, watcher or Nobody(), log)
        if control is not None:
            control.attach(run)
        await run.play()
        stopped, interrupted = run.stopped, run.interrupted
        if control is not None:
            control.attach(None)
        del run, chooser  # the index of the journal is made anew: two of them would be the peak of memory
        return conclude(past, plan.config.eval, stopped, interrupted, log, cell=options.cell)


def _take(folder: RunFolder, options: RunOptions, stack: ExitStack) -> RunFolder:
    """The folder, made if need be and locked; with `fresh` a new one, and the old one is moved aside."""
    if options.fresh and folder.path.is_dir():
        old: RunLock = stack.enter_context(folder.lock())
        if folder.manifest_path.exists() or folder.journal_path.exists():
            folder.archive()
        else:
            old.release()
    made = RunFolder.create(folder.path)
    stack.enter_context(made.lock())
    stack.callback(made.discard_if_unused)
    return made
