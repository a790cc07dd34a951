"""osmosis-run: declarative agent rollouts from one `workflow.toml`.

Importing this package loads nothing: every public name is resolved at first use, so that
`osmosis-run --help` stays as fast as the interpreter allows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from runner.build.plan import Plan, build
    from runner.config.load import load
    from runner.graders.grader import Grader, GraderContext, Score
    from runner.records.event import Event
    from runner.records.message import Message, ToolCall
    from runner.records.rollout import Outcome, RolloutRequest
    from runner.runtime.rollout import run_rollout
    from runner.workflows.workflow import (
        AgentWorkflow,
        AgentWorkflowConfig,
        AgentWorkflowContext,
        AgentWorkflowOutput,
    )

_HOME = {
    "AgentWorkflow": "runner.workflows.workflow",
    "AgentWorkflowConfig": "runner.workflows.workflow",
    "AgentWorkflowContext": "runner.workflows.workflow",
    "AgentWorkflowOutput": "runner.workflows.workflow",
    "Event": "runner.records.event",
    "Grader": "runner.graders.grader",
    "GraderContext": "runner.graders.grader",
    "Message": "runner.records.message",
    "Outcome": "runner.records.rollout",
    "Plan": "runner.build.plan",
    "RolloutRequest": "runner.records.rollout",
    "Score": "runner.graders.grader",
    "ToolCall": "runner.records.message",
    "build": "runner.build.plan",
    "load": "runner.config.load",
    "run_rollout": "runner.runtime.rollout",
}

__all__ = [
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "Event",
    "Grader",
    "GraderContext",
    "Message",
    "Outcome",
    "Plan",
    "RolloutRequest",
    "Score",
    "ToolCall",
    "__version__",
    "build",
    "load",
    "run_rollout",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'runner' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
