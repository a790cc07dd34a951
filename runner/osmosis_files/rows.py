"""`[dataset]` from what an Osmosis file says of its rows: where they are, which, and what their columns are called."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from runner.datasets.dataset import DatasetError
from runner.datasets.open import FileDataset, open_dataset
from runner.diag.suggest import nearest
from runner.osmosis_files.imported import Importing
from runner.osmosis_files.keys import EVAL_02
from runner.osmosis_files.workspace import find_dataset, relative

COLUMNS = ("system_prompt", "user_prompt", "ground_truth")


def import_rows(work: Importing, table: str, given: Path | None) -> None:
    """Write `[dataset]`; `given` is a file from the command line, which wins over what the file names."""
    named, ours = work.file.get(table, "dataset"), work.page.table("dataset")
    path = given.resolve() if given is not None else _find(work, table, named)
    if path is None:
        if work.file.kind is not EVAL_02:
            advice = (
                "the name of a dataset on the platform: download it and set `path`, or import with `--dataset FILE`"
            )
            work.note("dataset", (table, "dataset"), advice)
            _limit(work, None)
        return
    said = str(path) if Path(named).is_absolute() and given is None else relative(path, work.folder)
    ours.set("path", said.removeprefix("./"))
    if given is not None:
        work.note("dataset", (table, "dataset"), "the file that `--dataset` names takes its place")
    try:
        dataset = open_dataset(path)
        columns = dataset.columns()
        _limit(work, dataset)
    except DatasetError as error:
        work.refuse("dataset-bad", (table, "dataset"), str(error), error.hint or "mend the dataset")
        return
    _columns(work, table, columns)


def _find(work: Importing, table: str, named: str) -> Path | None:
    """The dataset's file; with the later files, whose datasets are names on the platform, always None."""
    if work.file.kind is not EVAL_02:
        return None
    found = find_dataset(work.file, named, work.workspace.root)
    if not found:
        folder = (work.workspace.root / named).parent
        near = nearest(Path(named).name, [each.name for each in folder.iterdir()] if folder.is_dir() else [])
        label = f"did you mean `{Path(named).with_name(near)}`?" if near else "or import with `--dataset FILE`"
        work.refuse("dataset-missing", (table, "dataset"), f"there is no dataset `{named}`", label)
        return None
    if len(found) > 1:
        others = ", ".join(f"`{each}`" for each in found[1:])
        work.note("dataset", (table, "dataset"), f"this is `{found[0]}`, as in the SDK; there is {others}, too")
    return found[0]


def _limit(work: Importing, dataset: FileDataset | None) -> None:
    """`limit` rows from `offset` on. Where the later files say 0 or less, they mean all."""
    table = "eval" if work.file.kind is EVAL_02 else "evaluation"
    limit, offset = work.file.get(table, "limit"), work.file.get(table, "offset", 0)
    ours = work.page.table("dataset")
    if limit is not None and limit < 1:
        work.note("dataset", (table, "limit"), "all rows, which is the default here")
        return
    if not offset or dataset is None:
        if limit is not None:
            ours.set("limit", limit)
        return
    total = dataset.count()
    last = total - 1 if limit is None else min(total, offset + limit) - 1
    if offset > last:
        message = f"`eval.offset` {offset} leaves no row: the dataset has {total}"
        work.refuse("out-of-range", ("eval", "offset"), message, f"less than {total}")
        return
    ours.set("rows", f"{offset}-{last}", "`limit` and `offset`, counted from 0")


def _columns(work: Importing, table: str, columns: Iterable[str]) -> None:
    known = list(columns)
    mapped = _folded(work, table, known) if work.file.kind is EVAL_02 else _aliased(work, table, known)
    if mapped:
        work.page.table("dataset").set("columns", mapped)


def _folded(work: Importing, table: str, known: list[str]) -> dict[str, str]:
    """Names of 0.2, which ignore case; every row must have the three columns."""
    mapped: dict[str, str] = {}
    for ours in COLUMNS:
        same = [name for name in known if name.lower() == ours]
        if not same:
            _missing(work, table, ours, known)
        elif ours not in same and len(same) > 1:
            message = f"`{ours}` may be any of the columns {', '.join(f'`{name}`' for name in same)}"
            work.refuse("missing-column", (table, "dataset"), message, "rename all but one")
        elif ours not in same:
            mapped[ours] = same[0]
    return mapped


def _aliased(work: Importing, table: str, known: list[str]) -> dict[str, str]:
    """Names of the later files: exact, `label` for a missing `ground_truth`, and prompts may be in `metadata`."""
    mapped = {"ground_truth": "label"} if "label" in known and "ground_truth" not in known else {}
    if "metadata" in known:
        if "user_prompt" not in known:
            user = work.page.table("workflow")
            user.set(
                "user", "", "rows have no `user_prompt`; the SDK starts them from no message, here from an empty one"
            )
        return mapped
    if "user_prompt" not in known:
        _missing(work, table, "user_prompt", known)
    if "ground_truth" not in known and "label" not in known:
        _missing(work, table, "ground_truth", known)
    return mapped


def _missing(work: Importing, table: str, column: str, known: list[str]) -> None:
    near = nearest(column, known)
    label = f"did you mean the column `{near}`? rename it" if near else "add the column"
    message = f"the dataset has no column `{column}`"
    work.refuse("missing-column", (table, "dataset"), message, label, f"columns: {', '.join(known[:12])}")
