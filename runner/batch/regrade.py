"""`regrade`: the recorded rollouts under the graders of today.

The policy is never asked, and only a changed rubric asks its judge: scores of graders that did not change stand.

New lines supersede the old ones, which stay in the journal. What the policy did, and the digests of it, stay as they
were recorded, whatever else has changed in the file since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.batch.conclude import conclude
from runner.batch.history import History, Past
from runner.batch.kept import Kept
from runner.batch.log import RunLog
from runner.batch.manifest import earlier
from runner.batch.options import RunResult
from runner.batch.past_run import PastRun
from runner.batch.plan import Digests
from runner.batch.write import line_of, outcome_of, regraded
from runner.datasets.dataset import DatasetError, Row
from runner.models.absent import AbsentModel
from runner.records.rollout import Outcome
from runner.runtime.grading import grade_outcome
from runner.runtime.pool import Pool
from runner.store.journal import Journal
from runner.store.journal_reading import at
from runner.store.run_folder import RunFolder

if TYPE_CHECKING:
    from runner.build.live import Live
    from runner.build.plan import Plan


@dataclass(slots=True)
class RegradeCount:
    """What a regrade did. `changed` rewards differ from before; `rowless` were graded without their dataset row."""

    graded: int = 0
    kept: int = 0
    changed: int = 0
    rowless: int = 0

    def text(self) -> str:
        """One sentence."""
        text = f"{self.graded:,} graded again, {self.changed:,} with another reward; {self.kept:,} kept as they were"
        if self.rowless:
            text += f"; {self.rowless:,} graded without their dataset row, which is gone or has changed"
        return text


@dataclass(frozen=True, slots=True)
class _Item:
    past: Past
    row: Row | None
    attempt: int


async def regrade(plan: Plan, path: Path, *, everything: bool = False) -> tuple[RunResult, RegradeCount]:
    """Grade the run at `path` again with the plan's graders: what other graders graded, or `everything`.

    Failed and cancelled rollouts are not touched, nor any that does not count in this run. Raises `StoreError` (no run,
    locked, disk full).
    """
    count = RegradeCount()
    with ExitStack() as stack:
        folder = RunFolder.open(path)
        stack.enter_context(folder.lock())
        log = stack.enter_context(RunLog(folder.log_path))
        digests = Digests.of(plan.facts)
        items = list(_owed(plan, PastRun(folder), digests, everything, count))
        kept = Kept(plan.facts, folder.manifest, () if everything else plan.config.graders)
        async with (
            Journal.open(folder.journal_path) as journal,
            plan.open(model=AbsentModel("a regrade asks no policy")) as live,
        ):
            # First of all: a regrade that was killed is then one that is not done, and the next goes on with it.
            folder.write_manifest(_manifest(folder.manifest, plan, digests))
            for notice in live.notices:
                log.say(notice)

            async def play(item: _Item) -> None:
                await _grade(live, journal, item, (digests, kept), count)

            await Pool(plan.config.eval.concurrency).run(items, play)
        log.say(f"regrade: {count.text()}")
        result = conclude(PastRun(folder), plan.config.eval, "", False, log)
    return result, count


def _owed(plan: Plan, run: PastRun, digests: Digests, everything: bool, count: RegradeCount) -> Iterator[_Item]:
    """What is to be graded: rows of the dataset with their content, then recorded rows that it no longer has."""
    seen: set[int] = set()
    history = run.history
    for row in plan.dataset.rows() if plan.dataset is not None else ():
        for attempt in range(history.attempts):
            past = history.find(row.id, attempt)
            if past is None or past.content != hash(row.digest) or not run.is_asked_for(row.id, attempt, past):
                continue
            seen.add(hash((row.id, attempt)))
            if _is_owed(past, history, digests, everything, count):
                yield _Item(past, row, attempt)
    for row_id, attempt, past in history:
        if hash((row_id, attempt)) in seen or not run.is_asked_for(row_id, attempt, past):
            continue
        if _is_owed(past, history, digests, everything, count):
            count.rowless += 1
            yield _Item(past, None, attempt)


def _is_owed(past: Past, history: History, digests: Digests, everything: bool, count: RegradeCount) -> bool:
    graded_so = history.versions[past.version].grade == digests.grading
    if past.status in ("scored", "ungraded") and (everything or not graded_so):
        return True
    count.kept += 1
    return False


async def _grade(live: Live, journal: Journal, item: _Item, grading: tuple[Digests, Kept], count: RegradeCount) -> None:
    digests, kept = grading
    record = at(journal.path, item.past.place)
    before = _outcome(live.plan, record, item)
    same_label = before.request.label == record.get("label")
    outcome = await grade_outcome(live, before, kept.since(record["digests"]["grading"]) if same_label else ())
    content = Digests(record["digests"]["config"], digests.grading).record(record["digests"]["row"])
    line = line_of(outcome, content, item.row or _bare_row(outcome), ())
    line["regraded"] = regraded(outcome, record)
    if "groups" in record:
        line["groups"] = record["groups"]
    await journal.append(line)
    count.graded += 1
    count.changed += outcome.reward != record["reward"]


def _outcome(plan: Plan, record: Mapping[str, Any], item: _Item) -> Outcome:
    """The recorded outcome, with its row and with the label that today's file gives it."""
    if item.row is None:
        return outcome_of(record)
    try:
        return outcome_of(record, item.row.data, plan.request(item.row, item.attempt).label)
    except DatasetError:  # today's prompt does not fit the row; the label it was run with still does
        return outcome_of(record, item.row.data)


def _bare_row(outcome: Outcome) -> Row:
    request = outcome.request
    return Row(request.row_index, request.row_id, {}, "")


def _manifest(before: Mapping[str, Any], plan: Plan, digests: Digests) -> dict[str, Any]:
    """The manifest with today's grading; what the policy was run with stays."""
    facts = {**before["facts"], "grade": dict(plan.facts.get("grade", {}))}
    return {
        **before,
        "facts": facts,
        "earlier": earlier(before, facts),
        "digests": {"config": before["digests"]["config"], "grading": digests.grading},
        "pass_threshold": plan.config.eval.pass_threshold,
        "reward_range": plan.config.reward.range,
        "measured": list(plan.config.reward.measured),
    }
