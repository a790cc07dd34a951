"""The templates that make a row's prompt and label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.build.site import Site
from runner.build.templates import compile_text
from runner.datasets.dataset import DatasetError, Row
from runner.datasets.prompt import label_of, messages_of, with_system
from runner.records.message import Message
from runner.records.quick import quick
from runner.templates.template import Template

_NAMES = ("row",)


@quick
class Prompts:
    """How a row becomes messages and a label; a template that is None leaves it to the row's own columns."""

    system: Template | None = None
    user: Template | None = None
    label: Template | None = None

    def render(self, row: Row, where: str = "") -> tuple[tuple[Message, ...], str | None]:
        """The messages a rollout of `row` starts from, and its label. Raises `DatasetError`, naming the row."""
        where = where or f"row {row.id}"
        label = label_of(row.data, self.label, where=where)
        return tuple(messages_of(row.data, system=self.system, user=self.user, where=where)), label

    def served(
        self, messages: Sequence[Message], row: Mapping[str, Any], where: str
    ) -> tuple[tuple[Message, ...], str | None]:
        """The same for a request that brings its own messages; `row` is its metadata. Raises `DatasetError`.

        The label template was written for the dataset's columns. A request that lacks them keeps `row.ground_truth`, or
        has no label: whoever grades elsewhere sends none.
        """
        try:
            label = label_of(row, self.label, where=where)
        except DatasetError:
            label = label_of(row)
        return tuple(with_system(messages, row, self.system, where=where)), label


def build_prompts(site: Site) -> Prompts:
    """The templates of `[workflow]`; what does not compile is a finding."""
    workflow = site.config.workflow
    system = compile_text(site, workflow.system, ("workflow", "system"), _NAMES) if workflow.system else None
    user = compile_text(site, workflow.user, ("workflow", "user"), _NAMES) if workflow.user else None
    label = None
    if "label" in workflow.model_fields_set:
        label = compile_text(site, workflow.label, ("workflow", "label"), _NAMES)
    return Prompts(system, user, label)
