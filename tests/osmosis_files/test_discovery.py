"""Which classes of a module are its workflow and its grader, told by identity and by shape."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from runner.build.discovery import DiscoveryProblem, discover

HEAD = "from runner import AgentWorkflow, AgentWorkflowConfig, Grader\n"
WORKFLOW = "class Mine(AgentWorkflow):\n    async def run(self, ctx):\n        return None\n"
GRADER = "class Judge(Grader):\n    async def grade(self, ctx):\n        return 1.0\n"


def module(tmp_path: Path, text: str) -> ModuleType:
    file = tmp_path / "main.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("a_users_module", file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_aliases_are_one_class_under_its_own_name(tmp_path: Path) -> None:
    found = discover(
        module(tmp_path, HEAD + WORKFLOW + "Again = Mine\nconfig = AgentWorkflowConfig()\nsame = config\n")
    )
    assert found.workflow.name == "Mine"
    assert found.config is not None and found.config.name == "config"
    assert (found.grader, found.grader_config) == (None, None)


def test_a_grader_beside_it(tmp_path: Path) -> None:
    found = discover(module(tmp_path, HEAD + WORKFLOW + GRADER))
    assert found.grader is not None
    assert found.grader.name == "Judge"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`main.py` holds no `AgentWorkflow`"),
        (GRADER, "`main.py` holds no `AgentWorkflow`"),
        ("class Half(AgentWorkflow):\n    pass\n", "`Half` of `main.py` is abstract: it does not define `run`"),
        (WORKFLOW + "class Other(Mine):\n    pass\n", "`main.py` holds 2 `AgentWorkflow` classes: `Mine`, `Other`"),
        (WORKFLOW + GRADER + "class Two(Judge):\n    pass\n", "`main.py` holds 2 `Grader` classes: `Judge`, `Two`"),
        (
            WORKFLOW + "one = AgentWorkflowConfig()\ntwo = AgentWorkflowConfig()\n",
            "`main.py` holds 2 `AgentWorkflowConfig` instances: `one`, `two`",
        ),
    ],
)
def test_none_or_several_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DiscoveryProblem) as caught:
        discover(module(tmp_path, HEAD + text))
    assert re.sub(r" \([^ ]*main\.py:\d+\)", "", caught.value.message) == message  # instances are told with their line
    assert caught.value.cure


def test_one_of_several_by_name(tmp_path: Path) -> None:
    made = module(tmp_path, HEAD + WORKFLOW + "class Other(Mine):\n    pass\n")
    assert discover(made, workflow="Other").workflow.value is made.Other
    with pytest.raises(DiscoveryProblem, match=r"no `AgentWorkflow` called `Third`; it holds `Mine`, `Other`"):
        discover(made, workflow="Third")


def test_classes_of_the_sdk_count_by_their_shape(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    sdk = ModuleType("osmosis_ai")
    request.addfinalizer(lambda: sys.modules.pop("osmosis_ai"))
    sys.modules["osmosis_ai"] = sdk
    exec("class AgentWorkflow:\n    pass\nclass Grader:\n    pass\n", sdk.__dict__)  # noqa: S102
    text = "from osmosis_ai import AgentWorkflow, Grader\n" + WORKFLOW + GRADER
    found = discover(module(tmp_path, text))
    assert (found.workflow.name, found.grader and found.grader.name) == ("Mine", "Judge")
