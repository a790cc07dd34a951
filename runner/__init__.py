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
    from runner.records.rollout import Outcome
    from runner.records.rollout_sample import RolloutSample
    from runner.runtime.rollout import run_rollout
    from runner.sdk.create_app import create_app
    from runner.sdk.execution import (
        ControllerAuth,
        ExecutionBackend,
        ExecutionRequest,
        ExecutionResult,
        GraderStatus,
        MultiTurnMode,
        RolloutErrorCategory,
    )
    from runner.sdk.llm_client import OsmosisLLMClient
    from runner.sdk.local_backend import LocalBackend
    from runner.sdk.rollout_server import create_rollout_server
    from runner.sdk.serve_agent_loop import serve_agent_loop
    from runner.strands.agent import OsmosisStrandsAgent
    from runner.strands.model import OsmosisRolloutModel
    from runner.strands.tools import strands_tools
    from runner.workflows.ambient import SampleSource, get_rollout_context
    from runner.workflows.configs import BaseConfig, ConcurrencyConfig, GraderConfig
    from runner.workflows.loop.agent_loop import RolloutAgentLoop
    from runner.workflows.loop.completions import (
        CompletionsChoice,
        CompletionsRequest,
        CompletionsResponse,
        CompletionsResult,
        CompletionUsage,
        LLMClientProtocol,
        MessageDict,
    )
    from runner.workflows.loop.decorators import osmosis_reward, osmosis_rubric
    from runner.workflows.loop.errors import (
        AgentLoopNotFoundError,
        AgentLoopValidationError,
        CLIError,
        OsmosisRolloutError,
        OsmosisServerError,
        OsmosisTimeoutError,
        OsmosisTransportError,
        OsmosisValidationError,
        PublicIPDetectionError,
        ServeError,
        ToolArgumentError,
        ToolExecutionError,
    )
    from runner.workflows.loop.messages import (
        count_messages_by_role,
        get_message_content,
        get_message_role,
        is_assistant_message,
        is_tool_message,
        is_user_message,
        normalize_stop,
        parse_tool_calls,
    )
    from runner.workflows.loop.registry import (
        AgentLoopRegistry,
        get_agent_loop,
        list_agent_loops,
        register_agent_loop,
        unregister_agent_loop,
    )
    from runner.workflows.loop.request import (
        InitResponse,
        RolloutRequest,
        RolloutResponse,
        get_max_metadata_size_bytes,
        set_max_metadata_size_bytes,
    )
    from runner.workflows.loop.result import RolloutMetrics, RolloutResult, RolloutStatus
    from runner.workflows.loop.settings import (
        RolloutClientSettings,
        RolloutLoggingSettings,
        RolloutMetricsSettings,
        RolloutServerSettings,
        RolloutSettings,
        RolloutTracingSettings,
        configure,
        get_settings,
        reset_settings,
    )
    from runner.workflows.loop.tool_calls import (
        create_tool_error_result,
        create_tool_result,
        execute_tool_calls,
        get_tool_call_info,
        parse_tool_arguments,
        serialize_tool_result,
    )
    from runner.workflows.loop.tool_schemas import (
        OpenAIFunctionCallSchema,
        OpenAIFunctionParametersSchema,
        OpenAIFunctionParsedSchema,
        OpenAIFunctionPropertySchema,
        OpenAIFunctionSchema,
        OpenAIFunctionToolCall,
        OpenAIFunctionToolSchema,
        ToolResponse,
    )
    from runner.workflows.loop.validation import ValidationError, ValidationResult, validate_agent_loop
    from runner.workflows.rollout_context import RolloutContext
    from runner.workflows.workflow import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext, AgentWorkflowOutput

_HOME = {
    "AgentLoopNotFoundError": "runner.workflows.loop.errors",
    "AgentLoopRegistry": "runner.workflows.loop.registry",
    "AgentLoopValidationError": "runner.workflows.loop.errors",
    "AgentWorkflow": "runner.workflows.workflow",
    "AgentWorkflowConfig": "runner.workflows.configs",
    "AgentWorkflowContext": "runner.workflows.workflow",
    "AgentWorkflowOutput": "runner.workflows.workflow",
    "BaseConfig": "runner.workflows.configs",
    "CLIError": "runner.workflows.loop.errors",
    "CompletionUsage": "runner.workflows.loop.completions",
    "CompletionsChoice": "runner.workflows.loop.completions",
    "CompletionsRequest": "runner.workflows.loop.completions",
    "CompletionsResponse": "runner.workflows.loop.completions",
    "CompletionsResult": "runner.workflows.loop.completions",
    "ConcurrencyConfig": "runner.workflows.configs",
    "ControllerAuth": "runner.sdk.execution",
    "Event": "runner.records.event",
    "ExecutionBackend": "runner.sdk.execution",
    "ExecutionRequest": "runner.sdk.execution",
    "ExecutionResult": "runner.sdk.execution",
    "Grader": "runner.graders.grader",
    "GraderConfig": "runner.workflows.configs",
    "GraderContext": "runner.graders.grader",
    "GraderStatus": "runner.sdk.execution",
    "InitResponse": "runner.workflows.loop.request",
    "LLMClientProtocol": "runner.workflows.loop.completions",
    "LocalBackend": "runner.sdk.local_backend",
    "Message": "runner.records.message",
    "MessageDict": "runner.workflows.loop.completions",
    "MultiTurnMode": "runner.sdk.execution",
    "OpenAIFunctionCallSchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionParametersSchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionParsedSchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionPropertySchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionSchema": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionToolCall": "runner.workflows.loop.tool_schemas",
    "OpenAIFunctionToolSchema": "runner.workflows.loop.tool_schemas",
    "OsmosisLLMClient": "runner.sdk.llm_client",
    "OsmosisRolloutError": "runner.workflows.loop.errors",
    "OsmosisRolloutModel": "runner.strands.model",
    "OsmosisServerError": "runner.workflows.loop.errors",
    "OsmosisStrandsAgent": "runner.strands.agent",
    "OsmosisTimeoutError": "runner.workflows.loop.errors",
    "OsmosisTransportError": "runner.workflows.loop.errors",
    "OsmosisValidationError": "runner.workflows.loop.errors",
    "Outcome": "runner.records.rollout",
    "Plan": "runner.build.plan",
    "PublicIPDetectionError": "runner.workflows.loop.errors",
    "RolloutAgentLoop": "runner.workflows.loop.agent_loop",
    "RolloutClientSettings": "runner.workflows.loop.settings",
    "RolloutContext": "runner.workflows.rollout_context",
    "RolloutErrorCategory": "runner.sdk.execution",
    "RolloutLoggingSettings": "runner.workflows.loop.settings",
    "RolloutMetrics": "runner.workflows.loop.result",
    "RolloutMetricsSettings": "runner.workflows.loop.settings",
    "RolloutRequest": "runner.workflows.loop.request",
    "RolloutResponse": "runner.workflows.loop.request",
    "RolloutResult": "runner.workflows.loop.result",
    "RolloutSample": "runner.records.rollout_sample",
    "RolloutServerSettings": "runner.workflows.loop.settings",
    "RolloutSettings": "runner.workflows.loop.settings",
    "RolloutStatus": "runner.workflows.loop.result",
    "RolloutTracingSettings": "runner.workflows.loop.settings",
    "SampleSource": "runner.workflows.ambient",
    "Score": "runner.graders.grader",
    "ServeError": "runner.workflows.loop.errors",
    "ToolArgumentError": "runner.workflows.loop.errors",
    "ToolCall": "runner.records.message",
    "ToolExecutionError": "runner.workflows.loop.errors",
    "ToolResponse": "runner.workflows.loop.tool_schemas",
    "ValidationError": "runner.workflows.loop.validation",
    "ValidationResult": "runner.workflows.loop.validation",
    "build": "runner.build.plan",
    "configure": "runner.workflows.loop.settings",
    "count_messages_by_role": "runner.workflows.loop.messages",
    "create_app": "runner.sdk.create_app",
    "create_rollout_server": "runner.sdk.rollout_server",
    "create_tool_error_result": "runner.workflows.loop.tool_calls",
    "create_tool_result": "runner.workflows.loop.tool_calls",
    "execute_tool_calls": "runner.workflows.loop.tool_calls",
    "get_agent_loop": "runner.workflows.loop.registry",
    "get_max_metadata_size_bytes": "runner.workflows.loop.request",
    "get_message_content": "runner.workflows.loop.messages",
    "get_message_role": "runner.workflows.loop.messages",
    "get_rollout_context": "runner.workflows.ambient",
    "get_settings": "runner.workflows.loop.settings",
    "get_tool_call_info": "runner.workflows.loop.tool_calls",
    "is_assistant_message": "runner.workflows.loop.messages",
    "is_tool_message": "runner.workflows.loop.messages",
    "is_user_message": "runner.workflows.loop.messages",
    "list_agent_loops": "runner.workflows.loop.registry",
    "load": "runner.config.load",
    "normalize_stop": "runner.workflows.loop.messages",
    "osmosis_reward": "runner.workflows.loop.decorators",
    "osmosis_rubric": "runner.workflows.loop.decorators",
    "parse_tool_arguments": "runner.workflows.loop.tool_calls",
    "parse_tool_calls": "runner.workflows.loop.messages",
    "register_agent_loop": "runner.workflows.loop.registry",
    "reset_settings": "runner.workflows.loop.settings",
    "run_rollout": "runner.runtime.rollout",
    "serialize_tool_result": "runner.workflows.loop.tool_calls",
    "serve_agent_loop": "runner.sdk.serve_agent_loop",
    "set_max_metadata_size_bytes": "runner.workflows.loop.request",
    "strands_tools": "runner.strands.tools",
    "unregister_agent_loop": "runner.workflows.loop.registry",
    "validate_agent_loop": "runner.workflows.loop.validation",
}

__all__ = [
    "AgentLoopNotFoundError",
    "AgentLoopRegistry",
    "AgentLoopValidationError",
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "BaseConfig",
    "CLIError",
    "CompletionUsage",
    "CompletionsChoice",
    "CompletionsRequest",
    "CompletionsResponse",
    "CompletionsResult",
    "ConcurrencyConfig",
    "ControllerAuth",
    "Event",
    "ExecutionBackend",
    "ExecutionRequest",
    "ExecutionResult",
    "Grader",
    "GraderConfig",
    "GraderContext",
    "GraderStatus",
    "InitResponse",
    "LLMClientProtocol",
    "LocalBackend",
    "Message",
    "MessageDict",
    "MultiTurnMode",
    "OpenAIFunctionCallSchema",
    "OpenAIFunctionParametersSchema",
    "OpenAIFunctionParsedSchema",
    "OpenAIFunctionPropertySchema",
    "OpenAIFunctionSchema",
    "OpenAIFunctionToolCall",
    "OpenAIFunctionToolSchema",
    "OsmosisLLMClient",
    "OsmosisRolloutError",
    "OsmosisRolloutModel",
    "OsmosisServerError",
    "OsmosisStrandsAgent",
    "OsmosisTimeoutError",
    "OsmosisTransportError",
    "OsmosisValidationError",
    "Outcome",
    "Plan",
    "PublicIPDetectionError",
    "RolloutAgentLoop",
    "RolloutClientSettings",
    "RolloutContext",
    "RolloutErrorCategory",
    "RolloutLoggingSettings",
    "RolloutMetrics",
    "RolloutMetricsSettings",
    "RolloutRequest",
    "RolloutResponse",
    "RolloutResult",
    "RolloutSample",
    "RolloutServerSettings",
    "RolloutSettings",
    "RolloutStatus",
    "RolloutTracingSettings",
    "SampleSource",
    "Score",
    "ServeError",
    "ToolArgumentError",
    "ToolCall",
    "ToolExecutionError",
    "ToolResponse",
    "ValidationError",
    "ValidationResult",
    "__version__",
    "build",
    "configure",
    "count_messages_by_role",
    "create_app",
    "create_rollout_server",
    "create_tool_error_result",
    "create_tool_result",
    "execute_tool_calls",
    "get_agent_loop",
    "get_max_metadata_size_bytes",
    "get_message_content",
    "get_message_role",
    "get_rollout_context",
    "get_settings",
    "get_tool_call_info",
    "is_assistant_message",
    "is_tool_message",
    "is_user_message",
    "list_agent_loops",
    "load",
    "normalize_stop",
    "osmosis_reward",
    "osmosis_rubric",
    "parse_tool_arguments",
    "parse_tool_calls",
    "register_agent_loop",
    "reset_settings",
    "run_rollout",
    "serialize_tool_result",
    "serve_agent_loop",
    "set_max_metadata_size_bytes",
    "strands_tools",
    "unregister_agent_loop",
    "validate_agent_loop",
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
