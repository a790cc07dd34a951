"""Every snippet of docs/strands.md plays a rollout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")

PAGE = (Path(__file__).parents[2] / "docs" / "strands.md").read_text(encoding="utf-8")
(FILE,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
TOOLS, FACTORY, WORKFLOW = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
MODEL = '[model]\nid = "x"\nprovider = "scripted"\n[[model.rules]]\nreply = "4"\n[graders.answer]\nkind = "exact"\n'


def test_from_the_file(project: Any) -> None:
    project.write("agents.py", TOOLS)
    model = project.Says([project.says("", ("add", '{"a": 2, "b": 2}')), project.says("4")])
    outcome = project.play(f"{FILE}\n{MODEL}", head="", model=model)
    assert (outcome.reward, outcome.sample.tool_spans[0]["status"]) == (1.0, "ok")


@pytest.mark.parametrize(("code", "name"), [(FACTORY, "make"), (WORKFLOW, "Solve")])
def test_by_reference(project: Any, code: str, name: str) -> None:
    project.write("factory.py", code)
    assert project.play(workflow=f'agent = "./factory.py:{name}"').reward == 1.0
