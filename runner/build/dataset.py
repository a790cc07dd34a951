"""`[dataset]` to an open dataset, and the columns that templates cannot do without."""

from __future__ import annotations

from runner.build.importing import from_here
from runner.build.prompts import Prompts
from runner.build.site import Site
from runner.config.dataset import DatasetSection
from runner.datasets.dataset import DatasetError
from runner.datasets.open import FileDataset, Missing, open_dataset
from runner.datasets.select import SelectionProblem
from runner.diag.diagnostic import Diagnostic, Path
from runner.diag.suggest import nearest

_LABEL_HELP = 'say where it is: [workflow] label = "{{ row.NAME }}" or [dataset] columns = { ground_truth = "NAME" }'
_GLANCE = 200
"""Rows that a check without `--dataset` reads."""


def build_dataset(site: Site, *, glance: bool = False) -> FileDataset | None:
    """The dataset of the file; None when it names none, or with a finding. `glance` keeps to the first rows."""
    section = site.config.dataset
    if section.path is None:
        return None
    limit = min(section.limit or _GLANCE, _GLANCE) if glance else section.limit
    try:
        return open_dataset(
            section.path.path,
            format=section.format,
            id_column=section.id,
            columns=section.columns,
            limit=limit,
            shuffle_seed=section.shuffle.seed if section.shuffle and not glance else None,
            rows=section.rows,
        )
    except SelectionProblem as problem:
        site.add("out-of-range", problem.message, ("dataset", "rows"), inside=(problem.offset, problem.length))
    except DatasetError as error:
        _report_bad(site, error)
    return None


def _report_bad(site: Site, error: DatasetError) -> None:
    section = site.config.dataset
    path: Path = ("dataset", "path")
    if error.column is not None:
        mapped = [ours for ours, theirs in section.columns.items() if theirs == error.column]
        path = ("dataset", "columns", mapped[0]) if mapped and error.column != section.id else ("dataset", "id")
    message, label = _from_here(site, str(error)), ""
    helps = (error.hint,) if error.hint else ()
    if error.column is not None and error.hint.startswith("did you mean"):
        label, helps = error.hint, ()
    elif not helps:
        label = _unlike(section) or "mend the file, or name another"
    site.add("dataset-bad", message, path, label=label, helps=helps)


def _unlike(section: DatasetSection) -> str:
    """The cure where the file's ending and `format` say different things."""
    ending = section.path.path.suffix.lower().lstrip(".") if section.path else ""
    if section.format is None or ending == section.format or ending not in ("jsonl", "csv", "parquet"):
        return ""
    return f'it is read as {section.format}, because `format = "{section.format}"` says so'


def _from_here(site: Site, text: str) -> str:
    """A message of the dataset with its file as one would write it here."""
    path = site.config.dataset.path
    return text if path is None else text.replace(str(path.path), from_here(path.path))


def check_columns(site: Site, dataset: FileDataset) -> int:
    """Read every row: a record that cannot be read, or one that lacks what a template needs, is a finding.

    Returns how many rows there are.
    """
    try:
        known = dataset.columns()
        _group_by(site, known)
        for missing in dataset.missing([needed.path for needed in site.columns]):
            _report(site, dataset, missing, known)
        return dataset.count()
    except DatasetError as error:
        _report_bad(site, error)
        return 0


def _group_by(site: Site, known: tuple[str, ...]) -> None:
    for index, name in enumerate(site.config.eval.group_by):
        if name not in known and name.split(".")[0] not in known:
            near = nearest(name, known)
            site.add(
                "missing-column",
                f"no row has a column `{name}` to group by",
                ("eval", "group_by", index),
                label=f"did you mean `{near}`?" if near else "",
                notes=(f"columns: {', '.join(known[:12])}",),
            )


def _report(site: Site, dataset: FileDataset, missing: Missing, known: tuple[str, ...]) -> None:
    column = ".".join(missing.path)
    file = from_here(dataset.path)
    where = f"{file}:{missing.line}" if missing.line else f"{file}, row {missing.row}"
    near = nearest(missing.path[0], known)
    for path, place, cure in site.columns:
        if path == missing.path:
            site.report.add(
                Diagnostic(
                    "missing-column",
                    f"row {missing.row} has no column `{column}`",
                    place,
                    f"did you mean `row.{near}`?" if near and near != missing.path[0] else cure,
                    notes=(f"{where} is the first such row; columns: {', '.join(known[:12])}",),
                )
            )


def check_prompts(site: Site, dataset: FileDataset, prompts: Prompts) -> None:
    """Render every row's prompt and label; the first row that cannot be is a finding."""
    needs_label = site.labelled
    for row in dataset.rows():
        try:
            _, label = prompts.render(row, dataset.place(row))
        except DatasetError as error:
            _report_bad(site, error)
            return
        if needs_label and (label is None or not label.strip()):
            site.add(
                "missing-column",
                f"row {row.index} has no label, and grader `{needs_label[0]}` compares with it",
                ("graders", needs_label[0]),
                at_key=True,
                helps=(_LABEL_HELP,),
                notes=(f"{_from_here(site, dataset.place(row))} is the first such row",),
            )
            return
