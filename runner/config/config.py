"""`RolloutConfig`: the whole file, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PrivateAttr

from runner.config.builtins import SandboxedTool
from runner.config.dataset import DatasetSection
from runner.config.environment import EnvTable, SecretsSection
from runner.config.eval import EvalSection
from runner.config.graders import Grader
from runner.config.kinds import Tool
from runner.config.limits import LimitsSection
from runner.config.matrix import MatrixSection, ProfileTable
from runner.config.mcp import McpSection
from runner.config.model import ModelSection, RoleSection
from runner.config.reference import Reference
from runner.config.resources import ResourceSection
from runner.config.reward import RewardSection
from runner.config.sampling import SamplingSection
from runner.config.sandboxes import SandboxSection
from runner.config.section import GRADE, OPERATION, RESULT, Array, Section
from runner.config.serve import ServeSection
from runner.config.tests import RolloutTest
from runner.config.workflow import AgentName, WorkflowSection

if TYPE_CHECKING:
    from runner.config.layers import Origins


class RolloutConfig(Section):
    """A workflow file: an agent, who answers, what it may call, what scores it, and where rows come from."""

    schema_version: Annotated[Literal[1], OPERATION, Field(alias="schema")] = 1
    """The version of this format."""
    extends: Annotated[Array[str], OPERATION] = ()
    """Other files, relative to this one, merged left to right under it."""
    workflow: Annotated[WorkflowSection, RESULT] = WorkflowSection.model_construct()
    """The agent, what it is told, and when it is done."""
    model: Annotated[ModelSection | None, RESULT] = None
    """The policy. A file that is only served needs none: the controller supplies it."""
    roles: Annotated[dict[str, RoleSection], GRADE] = Field(default_factory=dict)
    """Other models, by the role they play."""
    sampling: Annotated[SamplingSection, RESULT] = SamplingSection.model_construct()
    """How the policy draws its completions."""
    limits: Annotated[LimitsSection, RESULT] = LimitsSection.model_construct()
    """What one rollout may use."""
    tools: Annotated[dict[str, Tool], RESULT] = Field(default_factory=dict)
    """What the model may call, by name."""
    mcp: Annotated[dict[str, McpSection], RESULT] = Field(default_factory=dict)
    """Servers of the Model Context Protocol, by name; their tools are `NAME/tool`."""
    resources: Annotated[dict[str, ResourceSection], RESULT] = Field(default_factory=dict)
    """What the runner opens and closes for tools and graders, by name."""
    sandboxes: Annotated[dict[str, SandboxSection], RESULT] = Field(default_factory=dict)
    """Where tools and graders run what a model wrote, by name."""
    graders: Annotated[dict[str, Grader], GRADE] = Field(default_factory=dict)
    """What scores a rollout, by name."""
    reward: Annotated[RewardSection, GRADE] = RewardSection.model_construct()
    """How the scores become the one reward."""
    dataset: Annotated[DatasetSection, OPERATION] = DatasetSection.model_construct()
    """Where rows come from, and which."""
    eval: Annotated[EvalSection, OPERATION] = EvalSection.model_construct()
    """How many rollouts, how many at once, and what makes a run good enough."""
    serve: Annotated[ServeSection, OPERATION] = ServeSection.model_construct()
    """How `osmosis-run serve` offers the file to controllers."""
    tests: Annotated[Array[RolloutTest], OPERATION] = ()
    """Rollouts with a scripted model, run by `osmosis-run test`."""
    env: Annotated[EnvTable, RESULT] = Field(default_factory=dict)
    """Variables set before user code is imported; one that is already set in the process wins."""
    secrets: Annotated[SecretsSection, OPERATION] = SecretsSection.model_construct()
    """Variables that must be set, and whose values are never written anywhere."""
    matrix: Annotated[MatrixSection, OPERATION] = MatrixSection.model_construct()
    """Variants of this file."""
    profiles: Annotated[ProfileTable, OPERATION] = Field(default_factory=dict)
    """Named sets of keys that `--profile NAME` puts over the file."""

    _origins: Origins | None = PrivateAttr(default=None)
    _file: Path | None = PrivateAttr(default=None)
    _dotenv: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> Origins:
        """Where each value came from. Raises RuntimeError for a config that was not loaded from a file."""
        if self._origins is None:
            raise RuntimeError("this config was made in Python, not loaded from a file")
        return self._origins

    @property
    def is_made(self) -> bool:
        """Whether it was made in Python, so that nothing in it was written anywhere."""
        return self._origins is None

    @property
    def file(self) -> Path | None:
        """The file that was asked for, absolute, or None for a config made in Python."""
        return self._file

    @property
    def dotenv(self) -> Mapping[str, str]:
        """The first generation's variables in the `.env` file beside the file; nothing else is read from there."""
        return self._dotenv

    @property
    def folder(self) -> Path:
        """The folder of the file that was asked for, absolute; the current one for a config made in Python."""
        return Path.cwd() if self._file is None else self._file.parent

    @property
    def name(self) -> str:
        """`workflow.name`, or the name of the file's folder."""
        return self.workflow.name or self.folder.name or "workflow"

    def sandbox_of(self, section: SandboxedTool) -> str:
        """The sandbox that a tool works in: its own word, or the only one there is; "" where that is open."""
        return section.sandbox or (next(iter(self.sandboxes)) if len(self.sandboxes) == 1 else "")

    @property
    def agent(self) -> AgentName | Reference:
        """`workflow.agent`, or what its default comes to."""
        return self.workflow.agent or ("tools" if self.tools or self.mcp else "chat")
