"""Every public name of the SDK's surface, by generation: here, and under the SDK's own module names."""

from __future__ import annotations

import importlib

import pytest

import runner
from runner.build.alias import osmosis_alias

ROLLOUT = "osmosis_ai.rollout"
FIRST = {
    "osmosis_ai": """osmosis_reward osmosis_rubric evaluate_rubric MissingAPIKeyError ProviderRequestError
        ModelNotFoundError __version__ RolloutAgentLoop RolloutContext RolloutResult RolloutRequest RolloutResponse
        RolloutMetrics InitResponse OpenAIFunctionToolSchema CompletionsResult OsmosisLLMClient create_app
        register_agent_loop unregister_agent_loop get_agent_loop list_agent_loops OsmosisRolloutError
        OsmosisTransportError OsmosisTimeoutError OsmosisServerError OsmosisValidationError""",
    ROLLOUT: """RolloutAgentLoop RolloutContext RolloutResult RolloutRequest InitResponse RolloutResponse RolloutMetrics
        RolloutStatus CompletionsRequest CompletionsResponse CompletionsChoice CompletionUsage CompletionsResult
        OsmosisLLMClient LLMClientProtocol RolloutSettings create_app serve_agent_loop validate_agent_loop
        AgentLoopRegistry register_agent_loop unregister_agent_loop get_agent_loop list_agent_loops MessageDict
        ToolResponse""",
    f"{ROLLOUT}.core.schemas": """OpenAIFunctionToolSchema OpenAIFunctionSchema OpenAIFunctionParametersSchema
        OpenAIFunctionPropertySchema OpenAIFunctionParsedSchema OpenAIFunctionCallSchema OpenAIFunctionToolCall
        set_max_metadata_size_bytes get_max_metadata_size_bytes""",
    f"{ROLLOUT}.core.exceptions": """OsmosisRolloutError OsmosisTransportError OsmosisTimeoutError OsmosisServerError
        OsmosisValidationError AgentLoopNotFoundError ToolExecutionError ToolArgumentError""",
    f"{ROLLOUT}.tools": """create_tool_result create_tool_error_result serialize_tool_result parse_tool_arguments
        get_tool_call_info execute_tool_calls ToolArgumentError""",
    f"{ROLLOUT}.messages": """parse_tool_calls normalize_stop get_message_content get_message_role
        is_assistant_message is_tool_message is_user_message count_messages_by_role""",
    f"{ROLLOUT}.config": """RolloutSettings RolloutClientSettings RolloutServerSettings get_settings configure
        reset_settings""",
    f"{ROLLOUT}.validator": "validate_agent_loop ValidationResult ValidationError AgentLoopValidationError",
    f"{ROLLOUT}.server": "ServeError create_app serve_agent_loop",
    f"{ROLLOUT}.network": "PublicIPDetectionError",
    f"{ROLLOUT}.observability": """get_logger set_rollout_id set_context clear_context configure_logging
        configure_tracing configure_metrics get_metrics get_metrics_content span trace_async trace_sync
        inject_trace_context extract_trace_context SpanNames NoopMetric NoopSpan NoopTracer""",
    f"{ROLLOUT}.eval": """DatasetParseError DatasetValidationError EvalFnError ToolValidationError ProviderError
        SystemicProviderError ExternalLLMClient DatasetReader MCPLoadError CLIError""",
}
SECOND = {
    ROLLOUT: """AgentWorkflow AgentWorkflowConfig AgentWorkflowContext Grader GraderConfig GraderContext RolloutContext
        get_rollout_context RolloutSample LocalBackend ExecutionBackend ExecutionRequest ExecutionResult
        ConcurrencyConfig MultiTurnMode RolloutStatus RolloutErrorCategory GraderStatus ControllerAuth
        create_rollout_server OsmosisRolloutModel OsmosisStrandsAgent BaseConfig SampleSource RolloutInitRequest
        RolloutInitResponse RolloutCompleteRequest GraderCompleteRequest""",
    f"{ROLLOUT}.integrations.agents.strands": "OsmosisRolloutModel OsmosisStrandsAgent",
}
THIRD = {
    ROLLOUT: "AgentWorkflowOutput BaseConfig GraderInitRequest GraderInitResponse MessageDict SampleSource",
    f"{ROLLOUT}.server": "ControllerAuth create_rollout_server",
    "osmosis_ai.rubric_eval": "evaluate_rubric RubricResult",
}
ABSENT = {
    "HarborAgentWorkflowContext": "of the container backend: only its effects on the wire matter here",
    "MCPAgentLoop": "the command `eval --mcp DIR` plays one; as a class it would be our `tools` agent",
    "OsmosisAgent": "the adapter of the OpenAI Agents SDK, which no seed names",
    "OsmosisLitellmModel": "the same",
    "OsmosisMemorySession": "the same",
    "RolloutDriver": "the controller's side: `osmosis-run simulate` plays it",
    "HttpRolloutDriver": "the same",
    "RolloutRunRequest": "the same",
    "RolloutOutcome": "the same",
    "CallbackStore": "the same",
    "CallbackListener": "the same",
    "LiteLLMBridge": "the same",
    "RolloutProtocolError": "the same",
}
"""Names of the surface that are not here, and why."""

NAMES = [
    (module, name) for generation in (FIRST, SECOND, THIRD) for module, names in generation.items()
    for name in names.split()
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_means_the_same_here_and_there(module: str, name: str) -> None:
    assert name in runner.__all__
    with osmosis_alias():
        assert getattr(importlib.import_module(module), name) is getattr(runner, name)


def test_what_is_absent_is_said_to_be_by_name() -> None:
    assert not set(ABSENT) & set(runner.__all__), "then its line here is wrong"
    with osmosis_alias():
        alias = importlib.import_module(ROLLOUT)
    for name in ABSENT:
        with pytest.raises(AttributeError, match=f"osmosis-run has no '{name}'"):
            getattr(alias, name)


def test_the_statuses_of_all_generations_are_words_of_one() -> None:
    assert runner.RolloutStatus.COMPLETED == "COMPLETED"
    assert runner.RolloutStatus.SUCCESS == "success"
    assert runner.RolloutErrorCategory("agent_error").value == "agent_error"


def test_a_controllers_key_is_in_no_repr() -> None:
    auth = runner.ControllerAuth(api_key="sk-secret")
    assert "sk-secret" not in repr(auth)
    assert auth.as_bearer_headers() == {"Authorization": "Bearer sk-secret"}
    assert runner.ControllerAuth(api_key="").as_bearer_headers() == {}
