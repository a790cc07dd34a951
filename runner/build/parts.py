"""All parts of a config, built in one pass: what `build` makes a plan of and what `validate` looks at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from runner.build.graders import build_graders
from runner.build.live import GraderPart, ResourcePart
from runner.build.models import ModelMaker, RolePart, build_models
from runner.build.prompts import Prompts, build_prompts
from runner.build.resources import build_resources
from runner.build.site import Site
from runner.build.tests import ScriptedTest, build_tests
from runner.build.tools import build_tools
from runner.build.workflow import WorkflowMaker, build_workflow
from runner.config.reference import Reference
from runner.graders.worker import Workers
from runner.records.quick import quick
from runner.tools.tool import Tool

if TYPE_CHECKING:
    from runner.build.mcp import McpPart
    from runner.build.sandboxes import SandboxPart


@quick
class Parts:
    """What could be built. Whatever could not is a finding in the site's report, and missing here."""

    prompts: Prompts
    tools: dict[str, Tool]
    run_resources: list[ResourcePart]
    rollout_resources: list[ResourcePart]
    graders: list[GraderPart]
    workers: Workers
    make_workflow: WorkflowMaker | None
    make_model: ModelMaker | None
    roles: dict[str, RolePart]
    tests: list[ScriptedTest]
    sandboxes: list[SandboxPart]
    servers: list[McpPart]


def assemble(site: Site) -> Parts:
    """Build every part of the site's config. Never raises for a mistake in it."""
    if site.imports:
        _set_environment(site)
    _enter(site)
    workers = Workers()
    prompts = build_prompts(site)
    tools = build_tools(site)
    run_resources, rollout_resources = build_resources(site)
    graders = build_graders(site, workers)
    model, roles = build_models(site)
    return Parts(prompts, tools, run_resources, rollout_resources, graders, workers,
                 build_workflow(site), model, roles, build_tests(site), _sandboxes(site), _servers(site))  # fmt: skip


# What few files have is loaded for those alone: a check has 300 ms.


def _enter(site: Site) -> None:
    agent = site.config.agent
    if isinstance(agent, Reference) and not agent.name:
        from runner.build.entrypoint import enter

        enter(site)


def _sandboxes(site: Site) -> list[SandboxPart]:
    if not site.config.sandboxes:
        return []
    from runner.build.sandboxes import build_sandboxes

    return build_sandboxes(site)


def _servers(site: Site) -> list[McpPart]:
    if not site.config.mcp:
        return []
    from runner.build.mcp import build_servers

    return build_servers(site)


def _set_environment(site: Site) -> None:
    """`[env]`, before any user code is imported; what the process already has wins."""
    for name, value in site.config.env.items():
        if name and "=" not in name and "\0" not in name + value:  # the others are findings of the check
            os.environ.setdefault(name, value)
