"""The first generation's nouns: agent loop, context, schemas, settings, registry, validator, decorators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

import runner
from runner import (
    AgentLoopNotFoundError,
    AgentLoopRegistry,
    AgentLoopValidationError,
    CompletionsResult,
    OpenAIFunctionCallSchema,
    OpenAIFunctionParametersSchema,
    OpenAIFunctionParsedSchema,
    OpenAIFunctionPropertySchema,
    OpenAIFunctionSchema,
    OpenAIFunctionToolSchema,
    OsmosisRolloutError,
    OsmosisServerError,
    RolloutAgentLoop,
    RolloutClientSettings,
    RolloutContext,
    RolloutMetrics,
    RolloutRequest,
    RolloutServerSettings,
    RolloutSettings,
    ToolResponse,
    configure,
    get_settings,
    osmosis_reward,
    osmosis_rubric,
    reset_settings,
    validate_agent_loop,
)
from runner.workflows.loop.settings import settings_from


def request(**more: Any) -> RolloutRequest:
    fields = {"rollout_id": "r", "server_url": "http://x", "messages": [], "completion_params": {}, **more}
    return RolloutRequest(**fields)


class Silent:
    """An LLM client that counts."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def chat_completions(self, messages: Any, **kwargs: Any) -> CompletionsResult:
        self.asked.append((messages, kwargs))
        return CompletionsResult({"role": "assistant", "content": "4", "tool_calls": None})

    def get_metrics(self) -> RolloutMetrics:
        return RolloutMetrics(num_llm_calls=len(self.asked), prompt_tokens=7)


class Loop(RolloutAgentLoop):
    name = "loop"

    def get_tools(self, request: RolloutRequest) -> list[Any]:
        return [OpenAIFunctionToolSchema(type="function", function=OpenAIFunctionSchema(name="f", description="d"))]

    async def run(self, ctx: Any) -> Any:
        return ctx.complete([])


# -- the agent loop


def test_a_loop_needs_a_name_when_it_is_defined() -> None:
    for name in ({}, {"name": ""}):
        with pytest.raises(TypeError, match="Nameless"):
            type("Nameless", (Loop,), {"name": ""} | name)


def test_an_inherited_name_counts_and_an_abstract_class_needs_none() -> None:
    class Child(Loop):
        pass

    class Half(RolloutAgentLoop):
        async def run(self, ctx: Any) -> Any:
            return None

    assert Child().name == "loop"
    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="Whole must define a 'name'"):
        type("Whole", (Half,), {"get_tools": lambda self, request: []})


def test_the_default_tools_are_those_of_a_request_without_content() -> None:
    assert [tool.function.name for tool in Loop().get_default_tools()] == ["f"]


# -- its context


def test_a_context_is_one_of_either_generation() -> None:
    hosted, ambient = RolloutContext(request(), [], Silent()), RolloutContext("http://x", "key", "r")
    named = RolloutContext(request=request(), tools=[], llm=Silent())
    assert isinstance(hosted, RolloutContext)
    assert isinstance(ambient, RolloutContext)
    assert hosted.request.rollout_id == named.request.rollout_id == "r"
    assert ambient.api_key == "key"
    assert not isinstance("x", RolloutContext)


def test_a_result_carries_what_the_context_counted() -> None:
    llm = Silent()
    ctx = RolloutContext(request(), [], llm)
    answer = asyncio.run(ctx.chat([{"role": "user"}], temperature=0.5))
    assert llm.asked == [([{"role": "user"}], {"temperature": 0.5})]
    assert (answer.content, answer.has_tool_calls, answer.tool_calls) == ("4", False, None)
    ctx.record_tool_call()
    ctx.record_tool_call(latency_ms=2.5)
    done = ctx.complete([answer.message], "max_turns", reward=0.5)
    assert (done.status, done.finish_reason, done.reward, done.error_message) == ("COMPLETED", "max_turns", 0.5, None)
    assert done.metrics is not None
    assert (done.metrics.num_tool_calls, done.metrics.tool_latency_ms) == (2, 2.5)
    assert (done.metrics.num_llm_calls, done.metrics.prompt_tokens, done.metrics.total_latency_ms > 0) == (1, 7, True)
    failed = ctx.error("no", [answer.message])
    assert (failed.status, failed.finish_reason, failed.error_message) == ("ERROR", "error", "no")
    assert failed.metrics is not None
    assert failed.metrics.num_tool_calls == 2
    assert ctx.error("no").final_messages == []


def test_complete_takes_its_messages_once() -> None:
    ctx = RolloutContext(request(), [], Silent())
    assert ctx.complete(messages=[{"role": "user"}]).final_messages == [{"role": "user"}]
    assert ctx.complete([]).final_messages == []
    for bad in ({}, {"final_messages": [], "messages": []}):
        with pytest.raises(TypeError, match="once"):
            ctx.complete(**bad)


def test_events_go_nowhere_without_a_log() -> None:
    ctx = RolloutContext(request(), [], Silent())
    ctx.log_event("x", event_type="y", name="z")
    assert not ctx.debug_enabled
    heard: list[Any] = []
    ctx.log = lambda name, data: heard.append((name, data))
    ctx.log_event("x", event_type="y", name="z")
    assert heard == [("x", {"event_type": "y", "name": "z"})]
    assert ctx.debug_enabled


def test_tools_of_a_file_need_a_file() -> None:
    with pytest.raises(RuntimeError, match="workflow file"):
        asyncio.run(RolloutContext(request(), [], Silent()).call_tools([]))


# -- the request


@pytest.mark.parametrize(
    "bad",
    [
        {"rollout_id": ""}, {"rollout_id": "   "}, {"rollout_id": "x" * 257}, {"server_url": "ftp://x"},
        {"server_url": "http://"}, {"completion_params": None}, {"metadata": None}, {"metadata": {"x": "y" * 2**20}},
        {"metadata": {"x": object()}},
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        request(**bad)


def test_what_a_request_is_by_default() -> None:
    made = request(server_url="https://x/")
    assert (made.max_turns, made.max_tokens_total, made.metadata, made.api_key) == (10, 8192, {}, None)
    assert request(max_turns="3").max_turns == 3
    assert "file_tools" not in made.model_dump()
    assert "secret" not in repr(request(api_key="secret"))


def test_the_size_of_metadata_can_be_set() -> None:
    before = runner.get_max_metadata_size_bytes()
    try:
        runner.set_max_metadata_size_bytes(10)
        with pytest.raises(ValueError, match="at most 10"):
            request(metadata={"x": "0123456789"})
        with pytest.raises(ValueError, match="positive"):
            runner.set_max_metadata_size_bytes(0)
    finally:
        runner.set_max_metadata_size_bytes(before)


# -- schemas


def test_a_tool_schema_is_openais() -> None:
    function = OpenAIFunctionSchema(
        name="search",
        description="d",
        parameters=OpenAIFunctionParametersSchema(
            properties={"q": OpenAIFunctionPropertySchema(type="string"), "n": {"type": "array", "items": {}}},  # type: ignore[dict-item]
            required=["q"],
        ),
    )
    assert OpenAIFunctionToolSchema(type="function", function=function).model_dump(exclude_none=True) == {
        "type": "function",
        "function": {
            "name": "search",
            "description": "d",
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string"}, "n": {"type": "array", "items": {}}},
                "required": ["q"],
            },
            "strict": False,
        },
    }
    bare = OpenAIFunctionSchema(name="f", description="d").parameters
    assert (bare.type, bare.properties, bare.required) == ("object", {}, [])


@pytest.mark.parametrize(
    ("text", "arguments", "bad"), [('{"a": 1}', {"a": 1}, False), ("{", {}, True), ("[1]", {}, True), ("", {}, True)]
)
def test_a_parsed_call_says_whether_its_arguments_could_be_read(text: str, arguments: Any, bad: bool) -> None:
    parsed = OpenAIFunctionParsedSchema(name="f", arguments=text)
    made, has_error = OpenAIFunctionCallSchema.from_openai_function_parsed_schema(parsed)
    assert (made.name, made.arguments, has_error) == ("f", arguments, bad)


def test_a_tool_response_knows_what_it_holds() -> None:
    assert ToolResponse().is_empty()
    assert ToolResponse(text="x").is_text_only()
    assert not ToolResponse(text="x", image=[1]).is_text_only()
    with pytest.raises(ValueError, match="list"):
        ToolResponse(image="x")  # type: ignore[arg-type]


def test_a_completion_is_frozen() -> None:
    with pytest.raises(AttributeError):
        CompletionsResult({}).finish_reason = "x"  # type: ignore[misc]


# -- exceptions and registry


def test_exceptions_know_what_they_are_about() -> None:
    assert OsmosisServerError("x", 503).status_code == 503
    missing = AgentLoopNotFoundError("a", ["b"])
    assert (missing.name, missing.available) == ("a", ["b"])
    assert "b" in str(missing)
    for error in ("TransportError", "TimeoutError", "ServerError", "ValidationError"):
        assert issubclass(getattr(runner, f"Osmosis{error}"), OsmosisRolloutError)


def test_the_registry() -> None:
    registry, loop = AgentLoopRegistry(), Loop()
    registry.register(loop)
    with pytest.raises(ValueError, match="already"):
        registry.register(loop)
    assert registry.get("loop") is loop
    assert registry.get("other") is None
    assert registry.list_names() == ["loop"]
    assert [registry.unregister("loop"), registry.unregister("loop")] == [True, False]
    registry.register(loop)
    registry.clear()
    assert registry.list_names() == []


def test_the_process_has_a_registry() -> None:
    loop = Loop()
    runner.register_agent_loop(loop)
    try:
        assert runner.get_agent_loop("loop") is loop
        assert runner.list_agent_loops() == ["loop"]
        with pytest.raises(AgentLoopNotFoundError, match="Available: loop"):
            runner.get_agent_loop("other")
    finally:
        assert runner.unregister_agent_loop("loop")


# -- settings


@pytest.fixture
def unset() -> Iterator[None]:
    reset_settings()
    yield
    reset_settings()


RANGES = [
    ("client", "timeout_seconds", 300, 1, 3600),
    ("client", "max_retries", 3, 0, 10),
    ("client", "complete_rollout_retries", 2, 0, 10),
    ("client", "retry_base_delay", 1.0, 0.1, 60),
    ("client", "retry_max_delay", 30, 1, 300),
    ("client", "max_connections", 100, 1, 1000),
    ("client", "max_keepalive_connections", 20, 1, 100),
    ("server", "max_concurrent_rollouts", 100, 1, 10000),
    ("server", "record_ttl_seconds", 3600, 60, 86400),
    ("server", "cleanup_interval_seconds", 60, 10, 3600),
    ("server", "request_timeout_seconds", 600, 10, 3600),
    ("server", "registration_readiness_timeout_seconds", 10, 1, 60),
    ("server", "registration_readiness_poll_interval_seconds", 0.2, 0.05, 5),
    ("server", "registration_shutdown_timeout_seconds", 30, 1, 300),
]


@pytest.mark.parametrize(("group", "name", "default", "low", "high"), RANGES)
def test_each_setting_has_its_default_and_its_range(
    group: str, name: str, default: float, low: float, high: float
) -> None:
    kind: Any = {"client": RolloutClientSettings, "server": RolloutServerSettings}[group]
    variable = f"OSMOSIS_ROLLOUT_{group.upper()}_{name.upper()}"
    assert getattr(kind(), name) == default
    for fit in (low, high):
        assert getattr(kind(**{name: fit}), name) == fit
        assert getattr(getattr(settings_from({variable: str(fit)}), group), name) == fit
    for unfit in (low - 0.01 if low < 1 else low - 1, high + 1):
        with pytest.raises(ValueError, match=name):
            kind(**{name: unfit})
        with pytest.raises(ValueError, match=variable):
            settings_from({variable: str(unfit)})


def test_the_environment_comes_over_the_dotenv_file(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES=5\nOSMOSIS_ROLLOUT_LOG_LEVEL=debug\nOTHER=1\n")
    environ = {"OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES": "7", "OSMOSIS_ROLLOUT_CLIENT_UNKNOWN": "1", "HOME": "x"}
    read = settings_from(environ | {"OSMOSIS_ROLLOUT_TRACE_PROPAGATORS": "b3, baggage"}, dotenv)
    assert (read.client.max_retries, read.logging.level) == (7, "DEBUG")
    assert read.tracing.propagators == ["b3", "baggage"]
    assert settings_from({"OSMOSIS_ROLLOUT_METRICS_ENABLED": "true"}).metrics.enabled
    assert settings_from({"OSMOSIS_ROLLOUT_MAX_METADATA_SIZE_BYTES": "2048"}).max_metadata_size_bytes == 2048
    with pytest.raises(ValueError, match="OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES=many"):
        settings_from({"OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES": "many"})


@pytest.mark.usefixtures("unset")
def test_settings_are_one_for_the_process() -> None:
    assert get_settings() is get_settings()
    own = RolloutSettings(client=RolloutClientSettings(max_retries=1))
    configure(own)
    assert get_settings() is own
    reset_settings()
    assert get_settings() is not own


# -- the validator


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "d", **function}}


def broken(**members: Any) -> Any:
    async def run(self: Any, ctx: Any) -> None: ...

    return type("Broken", (), {"name": "b", "get_tools": lambda self, request: [], "run": run, **members})()


def tools(*given: Any) -> dict[str, Any]:
    return {"get_tools": lambda self, request: list(given)}


def raises(self: Any, request: Any) -> Any:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("loop", "code"),
    [
        (broken(name=None), "MISSING_NAME"),
        (broken(name=3), "INVALID_NAME_TYPE"),
        (broken(name=" "), "EMPTY_NAME"),
        (broken(get_tools=raises), "GET_TOOLS_EXCEPTION"),
        (broken(get_tools=lambda self, request: None), "GET_TOOLS_RETURNS_NONE"),
        (broken(get_tools=lambda self, request: "x"), "GET_TOOLS_INVALID_TYPE"),
        (broken(**tools(3)), "INVALID_TOOL_TYPE"),
        (broken(**tools({"function": {"name": "f", "description": "d"}})), "MISSING_TOOL_TYPE"),
        (broken(**tools({"type": "function"})), "MISSING_FUNCTION"),
        (broken(**tools({"type": "function", "function": 3})), "INVALID_FUNCTION_TYPE"),
        (broken(**tools({"type": "function", "function": {"description": "d"}})), "MISSING_FUNCTION_NAME"),
        (broken(**tools(tool(name=3))), "INVALID_FUNCTION_NAME"),
        (broken(**tools(tool(parameters=3))), "INVALID_PARAMETERS_TYPE"),
        (broken(run=None), "MISSING_RUN_METHOD"),
        (broken(run=3), "RUN_NOT_CALLABLE"),
        (broken(run=lambda self, ctx: None), "RUN_NOT_ASYNC"),
    ],
)
def test_the_validator_names_each_error(loop: Any, code: str) -> None:
    found = validate_agent_loop(loop)
    assert [error.code for error in found.errors] == [code]
    assert not found.valid
    with pytest.raises(AgentLoopValidationError, match=code) as caught:
        found.raise_if_invalid()
    assert caught.value.errors == found.errors


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        ({**tool(), "type": "web"}, "UNKNOWN_TOOL_TYPE"),
        (tool(description=""), "MISSING_FUNCTION_DESCRIPTION"),
        (tool(parameters={"type": "array"}), "PARAMETERS_TYPE_NOT_OBJECT"),
    ],
)
def test_what_is_odd_is_a_warning(odd: dict[str, Any], code: str) -> None:
    found = validate_agent_loop(broken(**tools(odd)))
    assert found.valid
    assert [warning.code for warning in found.warnings] == [code]


def test_a_sound_loop_is_valid_and_several_errors_are_all_told() -> None:
    found = validate_agent_loop(Loop())
    assert (found.valid, found.agent_name, found.tool_count, found.warnings) == (True, "loop", 1, [])
    found.raise_if_invalid()
    assert len(validate_agent_loop(broken(name="", run=None, get_tools=raises)).errors) == 3
    seen: list[Any] = []
    validate_agent_loop(broken(get_tools=lambda self, request: seen.append(request) or []))
    assert (seen[0].rollout_id, seen[0].metadata) == ("validation-test-rollout", {"_validation": True})


# -- the decorators


def test_a_reward_function_is_let_through_with_its_name() -> None:
    @osmosis_reward
    def reward(solution_str: str, ground_truth: str, extra_info: dict = None, **kwargs: Any) -> float:  # type: ignore[type-arg,assignment] # noqa: RUF013
        """Doc."""
        return float(kwargs.get("data_source") == "x")

    @osmosis_reward
    def modern(solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None) -> float:
        return 1.0

    @osmosis_reward
    def old(solution_str: str, ground_truth: str, extra_info: Optional[dict] = None) -> float:  # type: ignore[type-arg] # noqa: UP045
        return 1.0

    assert (reward.__name__, reward.__doc__) == ("reward", "Doc.")
    assert reward("a", "b", data_source="x") == 1.0
    assert modern("a", "b", {}, data_source="x") == old("a", "b", data_source="x") == 1.0  # type: ignore[call-arg]


def no_default(solution_str: str, ground_truth: str, extra_info: dict[str, Any]) -> float: ...
def wrong_order(solution_str: str, extra_info: str, ground_truth: dict[str, Any] = {}) -> float: ...  # noqa: B006
def wrong_hint(solution_str: str, ground_truth: int, extra_info: dict[str, Any] = {}) -> float: ...  # noqa: B006
def wrong_info(solution_str: str, ground_truth: str, extra_info: list[Any] = []) -> float: ...  # noqa: B006
def no_hint(solution_str, ground_truth: str, extra_info: dict[str, Any] = {}) -> float: ...  # type: ignore[no-untyped-def] # noqa: B006
def too_few(solution_str: str, ground_truth: str) -> float: ...


@pytest.mark.parametrize("function", [no_default, wrong_order, wrong_hint, wrong_info, no_hint, too_few])
def test_a_reward_function_that_does_not_fit_is_refused_when_it_is_defined(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        osmosis_reward(function)


@pytest.mark.parametrize("value", [1, True, None, "1.0"])
def test_only_a_float_is_a_reward(value: Any) -> None:
    @osmosis_reward
    def reward(solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None) -> Any:
        return value

    @osmosis_reward
    async def later(solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None) -> Any:
        return value

    with pytest.raises(TypeError, match="must return a float"):
        reward("a", "b")
    with pytest.raises(TypeError, match="must return a float"):
        asyncio.run(later("a", "b"))


def test_other_functions_are_let_be() -> None:
    @osmosis_reward
    def free(messages: list[Any]) -> Any:
        return 3

    assert free([], data_source="x") == 3  # type: ignore[call-arg]


def test_a_rubric_checks_its_calls() -> None:
    @osmosis_rubric
    def rubric(solution_str: str, ground_truth: str | None, extra_info: Any, **kwargs: Any) -> float:
        return 0.5

    assert rubric("a", None, {}) == 0.5
    for bad in ((3, None, {}), ("a", 3, {}), ("a", None)):
        with pytest.raises(TypeError, match="rubric"):
            rubric(*bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="default"):

        @osmosis_rubric
        def bad_default(solution_str: str, ground_truth: str | None = None, extra_info: Any = None) -> float: ...

    with pytest.raises(TypeError, match="annotated"):

        @osmosis_rubric
        def bad_hint(solution_str: str, ground_truth: int, extra_info: Any) -> float: ...
