"""`Plan`: everything imported, compiled and checked, nothing running. `build` makes one from a config."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.build.code import code_facts, recording_facts
from runner.build.dataset import build_dataset
from runner.build.live import GraderPart, Live, ResourcePart
from runner.build.mcp import McpPart
from runner.build.models import ModelMaker, RolePart, build_sampling
from runner.build.open_plan import open_plan
from runner.build.parts import Parts, assemble
from runner.build.prompts import Prompts
from runner.build.reward import build_reward, required_names
from runner.build.sandboxes import SandboxPart
from runner.build.site import Site
from runner.build.tests import ScriptedTest
from runner.build.tools import offered_names
from runner.build.workflow import WorkflowMaker
from runner.config.config import RolloutConfig
from runner.config.digest import digest, facts
from runner.config.limits import LimitsSection
from runner.datasets.dataset import DatasetError, Row
from runner.datasets.open import FileDataset
from runner.diag.diagnostic import ConfigError, Diagnostic, Report
from runner.graders.reward import RewardRule
from runner.graders.worker import Workers
from runner.models.model import Model
from runner.records.completion import Sampling, ToolSpec
from runner.records.failure import ConfigFailure
from runner.records.limits import Limits
from runner.records.message import Message
from runner.records.rollout import RolloutRequest
from runner.tools.tool import Tool
from runner.tools.toolbox import Toolbox
from runner.workflows.loop.shape import offered_beside
from runner.workflows.playable import brought_tools


@dataclass(frozen=True)
class Plan:
    """A config, built. Everything here is shared by all rollouts and changes nothing while they run.

    `tools` holds every tool of the file, `toolbox` those the workflow may use; `offered` is what the model is offered:
    the same, or an agent loop's own tools, where they do not depend on the request. `facts` are the values
    that decide what a change of the file costs, by part ("result", "grade", "operation"); `digests` their digests.
    """

    config: RolloutConfig
    name: str
    dataset: FileDataset | None
    prompts: Prompts
    tools: Mapping[str, Tool]
    toolbox: Toolbox
    offered: tuple[ToolSpec, ...]
    graders: tuple[GraderPart, ...]
    reward: RewardRule
    required: frozenset[str]
    limits: Limits
    sampling: Sampling
    make_workflow: WorkflowMaker
    make_model: ModelMaker | None
    roles: Mapping[str, RolePart]
    run_resources: tuple[ResourcePart, ...]
    rollout_resources: tuple[ResourcePart, ...]
    workers: Workers
    facts: Mapping[str, Mapping[str, Any]]
    digests: Mapping[str, str]
    tests: tuple[ScriptedTest, ...] = ()
    sandboxes: tuple[SandboxPart, ...] = ()
    servers: tuple[McpPart, ...] = ()
    _last: list[tuple[Row, tuple[tuple[Message, ...], str | None]]] = field(default_factory=list, repr=False)

    def request(self, row: Row, attempt: int) -> RolloutRequest:
        """The rollout of one attempt at a row, its prompt and label rendered. Raises `DatasetError`, naming the row."""
        if self._last and self._last[0][0] is row:
            prompt, label = self._last[0][1]
        else:
            where = self.dataset.place(row) if self.dataset is not None else ""
            prompt, label = self.prompts.render(row, where)
            # Attempts of one row come one after another: only the last row is kept.
            self._last[:] = [(row, (prompt, label))]
        return RolloutRequest(
            rollout_id=self.rollout_id(row, attempt),
            prompt=prompt,
            row=row.data,
            row_index=row.index,
            row_id=row.id,
            attempt=attempt,
            label=label,
        )

    def served_request(
        self,
        rollout_id: str,
        messages: Sequence[Message],
        metadata: Mapping[str, Any],
        label: str | None = None,
        *,
        sampling: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> RolloutRequest:
        """The rollout that a controller asks for: its messages are the prompt, its metadata the row.

        `row.ground_truth` is the request's label, or what its metadata call so; overrides are by key of `[sampling]`
        and `[limits]`. Raises `DatasetError` when a template of the file names what the metadata have not.
        """
        row = dict(metadata) if label is None else {**metadata, "ground_truth": label}
        prompt, reference = self.prompts.served(messages, row, "the request's metadata")
        return RolloutRequest(
            rollout_id=rollout_id,
            prompt=prompt,
            row=row,
            row_id=rollout_id,
            label=reference,
            sampling=sampling or {},
            limits=limits or {},
        )

    def rollout_id(self, row: Row, attempt: int) -> str:
        """What one attempt at a row is called everywhere."""
        return f"{self.name}/{row.id}/{attempt}"

    def sampling_for(self, request: RolloutRequest) -> Sampling:
        """How this rollout samples: with `seed = "per-attempt"`, its seed follows from the row's id and the attempt."""
        if self.config.sampling.seed != "per-attempt":
            return self.sampling
        mark = hashlib.sha256(f"{request.row_id}\0{request.attempt}".encode("utf-8", "surrogatepass")).digest()
        return replace(self.sampling, seed=int.from_bytes(mark[:4], "big") >> 1)

    @asynccontextmanager
    async def open(
        self, *, record: Path | None = None, model: Model | None = None, servers: bool = True
    ) -> AsyncIterator[Live]:
        """Connections and the run's resources, for exactly as long as the block.

        `record` writes every model call to a file that `provider = "replay"` can answer from; `model` takes the place
        of the file's policy; without `servers` no MCP server is connected, and their tools are missing. Raises
        `ConfigError` without a model, `ConfigFailure` when a resource cannot be opened (kind "resource_failed") or a
        server cannot be had ("mcp_unavailable"), `SandboxError` when a kind of sandbox cannot be had here. A resource
        that cannot be closed is a warning in the log: the work is done.
        """
        async with open_plan(self, record, model or self.require_model()(), servers=servers) as live:
            yield live

    def with_tools(self, tools: Mapping[str, Tool]) -> Plan:
        """This plan with more tools, by the names that the model sees. Raises `ConfigFailure` for a name it has."""
        twice = next((name for name in tools if name in self.tools), None)
        if twice is not None:
            raise ConfigFailure(f"two tools are called `{twice}`", kind="duplicate_name")
        toolbox = self.toolbox.with_tools(tools)
        offered = offered_beside(self.make_workflow, toolbox.specs)
        return replace(self, tools={**self.tools, **tools}, toolbox=toolbox, offered=offered)

    def with_each_tool(self, wrap: Callable[[Tool], Tool]) -> Plan:
        """This plan with something around each of its tools."""
        return replace(self, tools={name: wrap(tool) for name, tool in self.tools.items()},
                       toolbox=self.toolbox.with_each(wrap))  # fmt: skip

    def require_dataset(self) -> FileDataset:
        """The rows to play. Raises `DatasetError` for a plan without any."""
        if self.dataset is None:
            cure = "name one on the command line, or set `[dataset] path` in the file"
            raise DatasetError("there is no dataset", cure)
        return self.dataset

    def require_model(self) -> ModelMaker:
        """What makes the policy. Raises `ConfigError` for a file that names none."""
        if self.make_model is None:
            raise ConfigError(Report([_no_model()]))
        return self.make_model


def build(config: RolloutConfig) -> Plan:
    """The plan of a config. Raises `ConfigError` with every finding when anything cannot be built."""
    site = Site(config, Report())
    parts = assemble(site)
    dataset = build_dataset(site)
    if site.report.errors or parts.make_workflow is None:
        raise ConfigError(site.report)
    return _plan(site, parts, parts.make_workflow, dataset)


def _plan(site: Site, parts: Parts, make_workflow: WorkflowMaker, dataset: FileDataset | None) -> Plan:
    config = site.config
    own = brought_tools(make_workflow)
    mine = {name: parts.tools[name] for name in offered_names(site)}
    toolbox = Toolbox({**mine, **own}, config.limits.parallel_tools)
    known = all_facts(site)
    return Plan(
        config=config,
        name=config.name,
        dataset=dataset,
        prompts=parts.prompts,
        tools={**parts.tools, **own},
        toolbox=toolbox,
        offered=offered_beside(make_workflow, toolbox.specs),
        graders=tuple(parts.graders),
        reward=build_reward(site),
        required=required_names(site),
        limits=_limits(config.limits),
        sampling=build_sampling(config.sampling),
        make_workflow=make_workflow,
        make_model=parts.make_model,
        roles=parts.roles,
        run_resources=tuple(parts.run_resources),
        rollout_resources=tuple(parts.rollout_resources),
        workers=parts.workers,
        facts=known,
        digests={part: digest(known[part]) for part in ("result", "grade")},
        tests=tuple(parts.tests),
        sandboxes=tuple(parts.sandboxes),
        servers=tuple(parts.servers),
    )


def all_facts(site: Site) -> dict[str, dict[str, Any]]:
    """The config's values by what they affect, and with them the user's code."""
    known: dict[str, dict[str, Any]] = {part: dict(values) for part, values in facts(site.config).items()}
    for files in (code_facts(site.code, site.config.folder), recording_facts(site.config)):
        for part, digests in files.items():
            known[part].update(digests)
    return known


def _limits(section: LimitsSection) -> Limits:
    action = section.on_limit.action
    return Limits(
        turns=section.turns,
        tool_calls=section.tool_calls,
        total_tokens=section.total_tokens,
        time=section.time,
        cost=section.cost,
        malformed_calls=section.malformed_calls,
        tool_time=section.tool_time,
        on_limit=float(section.on_limit.reward or 0.0) if action == "reward" else action,
    )


def _no_model() -> Diagnostic:
    return Diagnostic(
        "missing-key",
        "the file has no [model], so nobody can answer",
        helps=("add [model] with an id, or name one with `--model openai/gpt-5-mini`",),
    )
