"""The third seed's use from Python: an agent, tools and an LLM function, played by this engine.

Importing the package loads nothing: every name is resolved at first use. It stands above everything but the command
line, since it builds plans and plays them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.agentic.agent import BaseAgent
    from runner.agentic.agents import CodingAgent, GeneralAgent, ReactAgent, ToolAgent
    from runner.agentic.client import TrajectoryClient
    from runner.agentic.clients import ClaudeAPIClient, LLMClient, create_llm_client
    from runner.agentic.registry import (
        AgentRegistry,
        clear_registry,
        get_agent_class,
        list_agents,
        register_agent,
    )
    from runner.agentic.reply import Reply
    from runner.agentic.rollout import AgenticRollout, create_agentic_rollout
    from runner.agentic.saving import load_trajectory, save_trajectory
    from runner.agentic.settings import AgenticRolloutConfig
    from runner.agentic.tool import (
        BaseAgenticTool,
        SimpleAgenticTool,
        ToolCallInfo,
        ToolResult,
        create_openai_tool_schema,
    )
    from runner.agentic.tool_registry import (
        ToolRegistry,
        get_tool_registry,
        register_tool,
        register_tool_instance,
    )
    from runner.agentic.trajectory import StepType, Trajectory, TrajectoryStep
    from runner.agentic.view import trajectories_in, trajectory_of
    from runner.workflows.loop.tool_schemas import (
        OpenAIFunctionParametersSchema,
        OpenAIFunctionPropertySchema,
        OpenAIFunctionSchema,
        OpenAIFunctionToolSchema,
    )

_HOME: dict[str, str] = {
    "AgentRegistry": "registry",
    "AgenticRollout": "rollout",
    "AgenticRolloutConfig": "settings",
    "BaseAgent": "agent",
    "BaseAgenticTool": "tool",
    "ClaudeAPIClient": "clients",
    "CodingAgent": "agents",
    "GeneralAgent": "agents",
    "LLMClient": "clients",
    "OpenAIFunctionParametersSchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionPropertySchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionSchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionToolSchema": "runner.workflows.loop.tool_schemas",
    "ReactAgent": "agents",
    "Reply": "reply",
    "SimpleAgenticTool": "tool",
    "StepType": "trajectory",
    "ToolAgent": "agents",
    "ToolCallInfo": "tool",
    "ToolRegistry": "tool_registry",
    "ToolResult": "tool",
    "Trajectory": "trajectory",
    "TrajectoryClient": "client",
    "TrajectoryStep": "trajectory",
    "clear_registry": "registry",
    "create_agentic_rollout": "rollout",
    "create_llm_client": "clients",
    "create_openai_tool_schema": "tool",
    "get_agent_class": "registry",
    "get_tool_registry": "tool_registry",
    "list_agents": "registry",
    "load_trajectory": "saving",
    "register_agent": "registry",
    "register_tool": "tool_registry",
    "register_tool_instance": "tool_registry",
    "save_trajectory": "saving",
    "trajectories_in": "view",
    "trajectory_of": "view",
}

__all__ = [
    "AgentRegistry",
    "AgenticRollout",
    "AgenticRolloutConfig",
    "BaseAgent",
    "BaseAgenticTool",
    "ClaudeAPIClient",
    "CodingAgent",
    "GeneralAgent",
    "LLMClient",
    "OpenAIFunctionParametersSchema",
    "OpenAIFunctionPropertySchema",
    "OpenAIFunctionSchema",
    "OpenAIFunctionToolSchema",
    "ReactAgent",
    "Reply",
    "SimpleAgenticTool",
    "StepType",
    "ToolAgent",
    "ToolCallInfo",
    "ToolRegistry",
    "ToolResult",
    "Trajectory",
    "TrajectoryClient",
    "TrajectoryStep",
    "clear_registry",
    "create_agentic_rollout",
    "create_llm_client",
    "create_openai_tool_schema",
    "get_agent_class",
    "get_tool_registry",
    "list_agents",
    "load_trajectory",
    "register_agent",
    "register_tool",
    "register_tool_instance",
    "save_trajectory",
    "trajectories_in",
    "trajectory_of",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'runner.agentic' has no attribute {name!r}")
    value = getattr(import_module(home if "." in home else f"runner.agentic.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
