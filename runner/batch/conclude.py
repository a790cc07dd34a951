"""The end of a command: the summary from the journal, the gates, the baseline, and what the exit code will be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.batch.figures import many, number
from runner.batch.gates import Gate, check_gates
from runner.batch.log import RunLog
from runner.batch.options import RunResult
from runner.batch.past_run import PastRun
from runner.batch.statistics import Estimate

if TYPE_CHECKING:
    from runner.config.eval import EvalSection


def conclude(
    past: PastRun, section: EvalSection, stopped: str, interrupted: bool, log: RunLog, *, cell: str = ""
) -> RunResult:
    """Write `summary.json` and say how the run ended."""
    summary = past.summary(stopped)
    gates = check_gates([Gate(gate.metric, gate.bound, gate.min, gate.max) for gate in section.gates], summary)
    if gates:
        summary["gates"] = [result.to_json() for result in gates]
    if section.baseline is not None:
        summary["baseline"] = against(past, section.baseline.path, section.baseline.text)
    recorded = summary["rollouts"]["recorded"]
    failed = summary["outcomes"]["failed"] / recorded if recorded else 0.0
    too_many = failed > section.max_failed
    if too_many:
        summary["over_max_failed"] = {"share": failed, "allowed": section.max_failed}
    past.folder.write_summary(summary)
    for gate in gates:
        log.say(f"gate {'passed' if gate.passed else 'failed'}: {gate.text}")
    return RunResult(past.folder.path, summary, gates, summary["stopped"], interrupted, too_many, cell)


def against(past: PastRun, baseline: Path, shown: str) -> dict[str, Any]:
    """The paired difference in reward from another run, or a sentence that says why there is none."""
    from runner.batch.compare import NotComparable, compare
    from runner.store.errors import StoreError

    try:
        other = PastRun.open(baseline)
        found = compare(side(other, shown), side(past, past.name))
    except (StoreError, NotComparable) as error:
        return {"run": shown, "text": f"not comparable: {error}"}
    return {"run": shown, **found.reward.to_json(), "text": _difference(found.reward.estimate, found.reward.p)}


def side(run: PastRun, shown: str) -> Any:
    """A run as `compare` takes it."""
    from runner.batch.compare import Side

    return Side(shown, run.tally(), run.facts, str((run.manifest.get("dataset") or {}).get("fingerprint", "")))


def _difference(estimate: Estimate, p: float | None) -> str:
    if estimate.value is None:
        return "no row is scored in both"
    interval = "" if estimate.low is None else f" [{estimate.low:+.3f}, {estimate.high:+.3f}]"
    chance = "" if p is None else f", p = {number(p)}"
    return f"reward {estimate.value:+.3f}{interval} over {many(estimate.rows, 'row')}{chance}"
