"""Which rows a run is about where its journal holds others too: those that the last command asked for.

Without it a run would be about two rows in its summary, and about all of its journal when it is exported or compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runner.batch.plan import Groups, RunPlan, row_key
from runner.batch.tally import group_name, group_values

if TYPE_CHECKING:
    from runner.build.plan import Plan


def selection(plan: Plan, run: RunPlan, before: Mapping[str, Any] | None) -> dict[str, list[str]] | None:
    """The manifest's `selection`: each row as `DIGEST ID`, with its values of `group_by`.

    None where the journal says the same by itself: every row it has of this configuration is wanted, and was recorded
    with these groups. That is nearly always, so that a manifest stays small.
    """
    columns = plan.config.eval.group_by
    if not run.leaves_out and not _regrouped(run, columns, before):
        return None
    rows = plan.dataset.rows() if plan.dataset is not None else ()
    return {
        f"{row.digest} {row.id}": [group_name(value) for value in group_values(row.data, columns).values()]
        for row in rows
    }


def _regrouped(run: RunPlan, columns: Any, before: Mapping[str, Any] | None) -> bool:
    """True if records that count were perhaps written with other groups than those asked for now."""
    if not columns or before is None or not run.counts["reuse"]:
        return False
    return list(before.get("group_by", ())) != list(columns) or before.get("selection") is not None


def selected(manifest: Mapping[str, Any]) -> dict[int, Groups] | None:
    """The rows of the manifest's `selection` by their `row_key`, with their groups; None if it wants all."""
    found: Mapping[str, list[str]] | None = manifest.get("selection")
    if found is None:
        return None
    made: dict[int, Groups] = {}
    for key, groups in found.items():
        row_digest, _, row_id = key.partition(" ")
        made[row_key(row_id, hash(row_digest))] = tuple(groups)
    return made
