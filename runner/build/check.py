"""What `validate` finds beyond the words of the file: code that does not import or fit, templates, dataset columns."""

from __future__ import annotations

from runner.build.dataset import build_dataset, check_columns, check_prompts
from runner.build.parts import Parts, assemble
from runner.build.site import Site
from runner.config.load import Loaded
from runner.records.completion import ToolSpec
from runner.records.quick import quick
from runner.workflows.loop.shape import Offers


@quick
class Checked:
    """What a check saw: how many tools and graders could be built, and the rows it read, or None.

    `notes` say what was decided that the file does not say.
    """

    tools: int = 0
    graders: int = 0
    rows: int | None = None
    notes: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    """The tools that an agent loop brings along, by name."""
    servers: int = 0


def check_build(loaded: Loaded, *, imports: bool = True, read_rows: bool = False) -> Checked:
    """Build every sound part of `loaded`, adding what is wrong to its report. Nothing is run, nobody is called.

    With `imports=False` no user code is imported. With `read_rows` every row of the dataset is read, and its prompt
    and label are rendered; without it only the first rows.
    """
    if loaded.config is None:
        return Checked()
    site = Site(loaded.config, loaded.report, imports, loaded=loaded)
    parts = assemble(site)
    rows = None if loaded.is_broken(("dataset",)) else _check_dataset(site, parts, glance=not read_rows)
    offered: tuple[ToolSpec, ...] = parts.make_workflow.offered if isinstance(parts.make_workflow, Offers) else ()
    return Checked(
        len(site.config.tools),
        len(site.config.graders),
        rows if read_rows else None,
        tuple(site.notes),
        tuple(spec.name for spec in offered),
        len(site.config.mcp),
    )


def _check_dataset(site: Site, parts: Parts, *, glance: bool) -> int | None:
    dataset = build_dataset(site, glance=glance)
    if dataset is None:
        return None
    before = site.report.errors
    rows = check_columns(site, dataset)
    if site.report.errors == before and _whole(site, parts):
        check_prompts(site, dataset, parts.prompts)
    return rows


def _whole(site: Site, parts: Parts) -> bool:
    """Whether the templates of the prompt are all there: a row that lacks what a broken one gives is no finding."""
    workflow = site.config.workflow
    said = (workflow.system, parts.prompts.system), (workflow.user, parts.prompts.user)
    broken = site.loaded is not None and site.loaded.is_faulty(("workflow",))
    label = "label" not in workflow.model_fields_set or parts.prompts.label is not None
    return not broken and label and all(text is None or template is not None for text, template in said)
