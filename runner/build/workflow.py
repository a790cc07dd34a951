"""`[workflow] agent` to a factory that gives each rollout its own workflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from runner.build.agents import build_coding_agent, build_tools_agent
from runner.build.importing import ReferenceProblem
from runner.build.site import Site
from runner.build.strands import build_strands
from runner.config.reference import Reference
from runner.diag.diagnostic import Diagnostic
from runner.diag.suggest import nearest
from runner.strands.adapted import adapt_agent, agent_maker
from runner.workflows.chat import ChatWorkflow
from runner.workflows.custom import ConfigFault, ConfigMisfit, WorkflowMisfit, prepare
from runner.workflows.loop.shape import is_loop
from runner.workflows.playable import WorkflowsWithTools, playing_of
from runner.workflows.registry import registered_agent, registered_agents
from runner.workflows.workflow import AgentWorkflow

if TYPE_CHECKING:
    from runner.build.discovery import Discovered
    from runner.workflows.loop.hosting import PreparedLoop

WorkflowMaker: TypeAlias = Callable[[], AgentWorkflow[Any]]


def build_workflow(site: Site) -> WorkflowMaker | None:
    """The factory, or None with a finding."""
    agent = site.config.agent
    if isinstance(agent, Reference):
        return _custom(site, agent)
    if agent == "strands":
        return build_strands(site)
    if agent == "coding":
        return _coding(site)
    if site.config.workflow.config:
        site.add(
            "misplaced-key",
            f'the agent "{agent}" takes no `config`',
            ("workflow", "config"),
            at_key=True,
            label="it is handed to a class of your own: `agent` names it",
        )
    return ChatWorkflow if agent == "chat" else build_tools_agent(site)


def _coding(site: Site) -> WorkflowMaker | None:
    try:
        return build_coding_agent(site)
    except ConfigMisfit as misfit:
        for error in misfit.errors:
            _report(site, error)
    return None


def _report(site: Site, error: ConfigFault) -> None:
    path = ("workflow", "config", *error.path)
    label = f"did you mean `{error.near}`?" if error.near else ""
    if error.kind == "missing":
        written = site.config.workflow.config
        label = f"add `{error.path[-1]} = …`" if written else f"add `config = {{ {error.path[-1]} = … }}`"
        site.add("missing-key", error.message, path[:-1] if written else ("workflow",), at_key=True, label=label)
    elif error.kind == "unknown":
        site.add("unknown-key", error.message, path, at_key=True, label=label or "remove it")
    else:
        site.add("wrong-type", error.message, path, label="mend it, or what the config's class declares")


def _custom(site: Site, agent: Reference) -> WorkflowMaker | None:
    path = ("workflow", "agent")
    if not agent.name:
        return None if site.found is None else _discovered(site, agent, site.found)
    found = site.find(agent, path, lambda name: _registered(agent, name))
    return None if found is None else _made(site, agent, found.value)


def _registered(agent: Reference, name: str) -> Any:
    """What was registered as `name`; None where nothing is. Raises `ReferenceProblem` that lists what is."""
    found, names = registered_agent(name), registered_agents()
    if found is not None or not names:
        return found
    near = nearest(name, names)
    raise ReferenceProblem(
        "no-such-name",
        f"`{agent.target}` has no `{name}`, and no agent is registered as that",
        start=len(agent.target) + 1,
        length=len(name),
        label=f"did you mean `{near}`?" if near else "",
        note=f"registered agents: {', '.join(names)}",
    )


def _discovered(site: Site, agent: Reference, found: Discovered) -> WorkflowMaker | None:
    named = replace(agent, text=f"{agent.text}:{found.workflow.name}")
    return _made(site, named, found.workflow.value, None if found.config is None else found.config.value)


def _made(site: Site, agent: Reference, value: Any, config: Any = None) -> WorkflowMaker | None:
    """What makes the workflows of `value`, which `agent` names. `config` is one that its entrypoint made."""
    path = ("workflow", "agent")
    try:
        if is_loop(value):
            from runner.workflows.loop.hosting import prepare_loop  # 20 ms that only an agent loop pays

            return _doubted(site, agent, prepare_loop(value, site.config.workflow.config))
        own = playing_of(value)
        if own is not None:
            return _with_own_tools(site, agent, own(value, site.config.workflow.config))
        return prepare(agent_maker(value), site.config.workflow.config, adapt_agent, made=config)
    except ConfigMisfit as misfit:
        for error in misfit.errors:
            _report(site, error)
    except WorkflowMisfit as misfit:
        fact, _, cure = misfit.message.partition("; ")
        site.add("unfit-code", f"`{agent.text}` cannot drive a rollout: {fact}", path, label=cure)
    return None


def _with_own_tools(site: Site, agent: Reference, made: WorkflowsWithTools) -> WorkflowMaker | None:
    twice = next((name for name in made.tools if name in site.config.tools), None)
    if twice is None:
        return made
    message = f"`{agent.text}` brings a tool called `{twice}`, and so does the file"
    site.add("unfit-code", message, ("tools", twice), at_key=True, label="call one of them something else")
    return None


def _doubted(site: Site, agent: Reference, loop: PreparedLoop) -> PreparedLoop:
    """The loop; what is odd about it is a warning."""
    place = site.place(("workflow", "agent"))
    for doubt in loop.doubts:
        message = f"`{agent.text}`: {doubt.message}"
        site.report.add(Diagnostic("unfit-code", message, place, severity="warning"))
    return loop
