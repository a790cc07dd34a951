"""Tables whose keys depend on what one of them says: graders by `kind`, tools by `builtin`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator
from pydantic import Tag as Choice

from runner.config import builtins
from runner.config.builtins import BUILTINS
from runner.config.graders import KINDS, AnswerGrader, GraderSection
from runner.config.section import Section
from runner.config.tools import CallTool, ToolSection
from runner.records.quick import quick

CALL = "call"
"""What a tool that is not built in is told apart by."""


def _builtin(value: Any) -> Any:
    found = value.get("builtin", CALL) if isinstance(value, Mapping) else getattr(value, "builtin", CALL)
    return found if isinstance(found, str) else repr(found)


Tool = Annotated[
    Annotated[CallTool, Choice(CALL)]
    | Annotated[builtins.CalculatorTool, Choice("calculator")]
    | Annotated[builtins.BashTool, Choice("bash")]
    | Annotated[builtins.PythonTool, Choice("python")]
    | Annotated[builtins.FileEditorTool, Choice("file_editor")]
    | Annotated[builtins.SearchTool, Choice("search")]
    | Annotated[builtins.ThinkTool, Choice("think")]
    | Annotated[builtins.FinishTool, Choice("finish")],
    Discriminator(_builtin),
]


@quick
class Kinds:
    """The tables that may stand behind the names of one section.

    `key` chooses among `models`; `shared` is what all have. A value of the key that is none of them is looked at as
    `unknown`, a table without the key as `without`. `noun` is what people call a choice.
    """

    section: str
    key: str
    noun: str
    models: Mapping[str, type[Section]]
    shared: type[Section]
    unknown: type[Section]
    without: type[Section]

    def of(self, table: Any) -> type[Section]:
        """The model of a table of the file."""
        kind = table.get(self.key) if isinstance(table, Mapping) else None
        if kind is None:
            return self.without
        return self.models.get(kind, self.unknown) if isinstance(kind, str) else self.shared


GRADERS = Kinds("graders", "kind", "grader kind", KINDS, GraderSection, AnswerGrader, GraderSection)
TOOLS = Kinds("tools", "builtin", "built-in tool", BUILTINS, ToolSection, ToolSection, CallTool)
ALL = {each.section: each for each in (GRADERS, TOOLS)}
"""By the section."""
