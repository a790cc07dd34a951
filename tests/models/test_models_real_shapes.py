"""What real endpoints send, as recorded or documented by others, and what must come of it.

The fixtures in `shapes/` were written to those forms by hand. Each test names where its form is described.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from runner.models.sse import DeltaAssembler, ErrorFrame, EventParser
from runner.models.wire import error_in, gave_up, parse_answer
from runner.records.completion import Completion, Usage

SHAPES = Path(__file__).parent / "shapes"
DEFAULT = Completion(message={})


def whole(name: str) -> dict[str, Any]:
    """What a call without streaming gives, without the fields that are not set."""
    return told(parse_answer(json.loads((SHAPES / f"{name}.json").read_bytes())))


def assembled(name: str, size: int = 7) -> dict[str, Any]:
    """The body put together from a stream that arrives in pieces of `size` bytes."""
    data = (SHAPES / f"{name}.sse").read_bytes()
    events, deltas = EventParser(), DeltaAssembler()
    for start in range(0, len(data), size):
        for event in events.feed(data[start : start + size]):
            if event != b"[DONE]":
                deltas.add(json.loads(event))
    assert deltas.complete
    return deltas.result()


def streamed(name: str) -> dict[str, Any]:
    body = assembled(name)
    assert assembled(name, 10**6) == body
    return told(parse_answer(body))


def told(completion: Completion) -> dict[str, Any]:
    found = {field.name: getattr(completion, field.name) for field in fields(completion)}
    return {name: value for name, value in found.items() if value != getattr(DEFAULT, name)}


def call(call_id: str, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def test_openai_parallel_tool_calls_and_usage_details() -> None:
    """OpenAI API reference, "The chat completion object" and "The chat completion chunk object"."""
    calls = [call("call_a", "get_weather", '{"city":"Paris"}'), call("call_b", "get_weather", '{"city":"Oslo"}')]
    assert whole("openai_tools") == streamed("openai_tools") == {
        "message": said(None, tool_calls=calls), "finish_reason": "tool_calls", "usage": Usage(82, 40, 7, 64),
        "model": "gpt-4o-2024-08-06", "response_id": "chatcmpl-1",
        "extra": {"service_tier": "default", "system_fingerprint": "fp_44709d6fcb"},
    }  # fmt: skip


def test_openai_refusal_and_citations() -> None:
    """OpenAI API reference: `refusal` and `annotations` of a message. The first may be sent back, the second not."""
    message = said(None, refusal="I can't help with that.")
    found = whole("openai_refusal")
    assert found["message"] == streamed("openai_refusal")["message"] == message
    assert found["extra"]["annotations"][0]["type"] == "url_citation"


def test_openai_logprobs() -> None:
    """OpenAI API reference: `logprobs` with `content` and `refusal`."""
    found = whole("openai_logprobs")
    assert found == streamed("openai_logprobs")
    assert [entry["logprob"] for entry in found["logprobs"]["content"]] == [-0.25, -0.5]
    assert (found["finish_reason"], found["logprobs"]["refusal"]) == ("length", None)


def test_the_older_function_call_is_kept() -> None:
    """OpenAI API reference: `function_call`, deprecated, which servers of that time stream in pieces."""
    expected = said(None, function_call={"name": "add", "arguments": '{"a":1}'})
    assert whole("openai_function_call")["message"] == streamed("openai_function_call")["message"] == expected


def test_azure_with_content_filters() -> None:
    """AbanteAI/archive-old-cli-mentat#429 (first chunk), langchain-ai/langchain#18977 (last chunk, without delta)."""
    found, live = whole("azure"), streamed("azure")
    for key in ("message", "finish_reason", "usage", "model", "response_id"):
        assert found[key] == live[key]
    assert (live["message"], live["model"], live["response_id"]) == (said("Bonjour"), "gpt-4o", "chatcmpl-az")
    assert live["extra"]["prompt_filter_results"] == found["extra"]["prompt_filter_results"]
    assert live["extra"]["content_filter_results"]["hate"] == {"filtered": False, "severity": "safe"}


def test_vllm_token_ids_logprobs_and_continuous_usage() -> None:
    """vllm-project/vllm#22587 (`return_token_ids`), vllm/entrypoints/openai/chat_completion/protocol.py."""
    found = whole("vllm")
    assert found == streamed("vllm")
    assert found["message"] == said("4")
    assert found["reasoning"] == "Two and two."
    assert found["prompt_token_ids"] == [151644, 872, 198]
    assert found["token_ids"] == [11613, 19, 151645]
    assert [entry["token"] for entry in found["logprobs"]["content"]] == ["Two", "4", "<|im_end|>"]
    assert (found["usage"], found["extra"]) == (Usage(3, 3), {"stop_reason": 151645})


def test_vllm_tool_parser_with_one_index_for_all() -> None:
    """InternLM/lmdeploy#3412 compares the deltas of vLLM and SGLang: index 0 always, `id: ""` in between."""
    found = streamed("vllm_tools")
    expected = [call("chatcmpl-tool-c9", "search", '{"q": "x"}'), call("chatcmpl-tool-Hf", "search", '{"q": "y"}')]
    assert found["message"] == said("", tool_calls=expected)
    assert found["usage"] == Usage(20, 11)


def test_an_id_that_changes_within_a_call() -> None:
    """poolsideai/pool#9 (and older vLLM): each delta of one call has an id of its own; the first one counts."""
    assert streamed("unstable_ids")["message"]["tool_calls"] == [call("call_1", "read", '{"path":"a"}')]


def test_sglang_token_ids() -> None:
    """sgl-project/sglang#30917: `prompt_token_ids` and `token_ids` stand in the choice; never with `stream`."""
    found = whole("sglang")
    assert (found["prompt_token_ids"], found["token_ids"]) == ([1, 2, 3], [9, 19, 151645])
    assert (found["reasoning"], found["message"], found["usage"]) == ("hm", said("4"), Usage(3, 3, 1))
    assert found["extra"] == {"matched_stop": 151645, "metadata": {"weight_version": "default"}}


def test_sglang_meta_info_is_kept_and_not_read() -> None:
    """SGLang's `return_meta_info`: pairs of its native endpoint, which chat does not document as the choice's ids."""
    found = whole("sglang_meta_info")
    assert found["extra"]["meta_info"]["output_token_logprobs"] == [[-0.5, 19, None], [-0.1, 151645, None]]
    assert "token_ids" not in found


def test_ollama_calls_without_id_and_with_arguments_as_object() -> None:
    """ollama/ollama#7881 (calls), the native form behind /v1 (arguments as object), `reasoning`."""
    found = whole("ollama_tools")
    [made] = found["message"]["tool_calls"]
    assert re.fullmatch("call_[0-9a-f]{24}", made["id"])
    assert made["function"] == {"name": "find", "arguments": '{"q": "Köln"}'}
    assert (found["message"]["content"], found["reasoning"]) == ("", "I should look.")


def test_ollama_stream_with_empty_finish_reasons() -> None:
    """ollama/ollama#4357: `finish_reason: ""` in every chunk; parallel calls under one index, each with its id."""
    found = streamed("ollama")
    assert found["message"]["tool_calls"] == [call("call_a", "find", '{"q":"a"}'), call("call_b", "find", '{"q":"b"}')]
    assert (found["finish_reason"], found["reasoning"]) == ("tool_calls", "I should look.")


def test_an_empty_finish_reason_ends_nothing() -> None:
    deltas = DeltaAssembler()
    deltas.add({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": ""}]})
    assert not deltas.complete


def test_llamacpp() -> None:
    """openai-php/client#780 (stream with `timings`), ggml-org/llama.cpp#27971 (usage)."""
    found = whole("llamacpp")
    assert found == streamed("llamacpp")
    assert (found["message"], found["reasoning"], found["usage"]) == (said("four"), "hm", Usage(17, 2, 0, 7))
    assert found["extra"]["timings"]["predicted_n"] == 2


def test_tgi_tool_calls() -> None:
    """text-generation-inference 1.4 to 3.0 (router/src/lib.rs): a delta's call is an object and no list; ids are 0."""
    for found in (whole("tgi_tools"), streamed("tgi_tools")):
        [made] = found["message"]["tool_calls"]
        assert made["id"].startswith("call_")
        assert json.loads(made["function"]["arguments"]) == {"a": 1}
        assert made["function"]["name"] == "add"


def test_deepseek_cache_usage_and_keep_alive() -> None:
    """api-docs.deepseek.com: "Create chat completion", "Rate limit" (empty lines, `: keep-alive`)."""
    found = whole("deepseek")
    assert found == streamed("deepseek")
    assert (found["reasoning"], found["message"], found["usage"]) == ("Compare.", said("9.8"), Usage(100, 30, 20, 64))
    kept_alive = b"\n\n\n" + (SHAPES / "deepseek.json").read_bytes()
    assert told(parse_answer(json.loads(kept_alive))) == found


def test_mistral_thoughts_within_the_content() -> None:
    """docs.mistral.ai "Reasoning"; braintrustdata/braintrust-sdk-javascript#1857 (stream)."""
    assert whole("mistral") == streamed("mistral") == {
        "message": said("It is 4."), "reasoning": "Let me see.", "finish_reason": "stop", "usage": Usage(30, 12),
        "model": "magistral-medium-2509", "response_id": "chatcmpl-1",
    }  # fmt: skip


def test_mistral_references_keep_their_place() -> None:
    """docs.mistral.ai "Citations": content as a list of texts and references."""
    found = whole("mistral_references")
    assert found["message"] == streamed("mistral_references")["message"]
    assert [part["type"] for part in found["message"]["content"]] == ["text", "reference", "text"]


def test_groq_usage_of_its_own() -> None:
    """console.groq.com API reference: `x_groq` carries the usage of a stream."""
    found, live = whole("groq"), streamed("groq")
    assert found["usage"] == live["usage"] == Usage(20, 5)
    assert (live["reasoning"], live["message"]) == ("Sum.", said("4"))
    assert (live["extra"]["x_groq"]["seed"], live["extra"]["channel"]) == (7, "analysis")
    assert found["extra"]["x_groq"] == {"id": "req_1"}


def test_together_numbers_in_deltas() -> None:
    """togethercomputer/openapi#27 (`logprobs` is one number in a chunk), mlflow/mlflow#11557 (`token_id`, `text`)."""
    found, live = whole("together"), streamed("together")
    assert found["message"] == live["message"] == said("4")
    assert found["logprobs"]["token_ids"] == [19, 128009]
    assert (live["logprobs"], live["extra"]["token_id"]) == ([-0.25, -0.5], [19, 128009])
    assert "text" not in live["extra"]
    assert live["finish_reason"] == "eos"


def test_openrouter_comments_reasoning_and_cost() -> None:
    """openrouter.ai/docs/api-reference/streaming and .../reasoning-tokens; lines end with CRLF here."""
    found = whole("openrouter")
    assert found == streamed("openrouter")
    assert (found["message"], found["reasoning"], found["usage"]) == (said("Four."), "Think.", Usage(30, 9, 3))
    assert found["extra"]["native_finish_reason"] == "end_turn"
    assert found["extra"]["reasoning_details"][0]["signature"] == "c2ln"


def test_anthropic_compatible() -> None:
    """platform.claude.com/docs/en/api/openai-sdk: the plain form, without reasoning, logprobs or fingerprint."""
    found = whole("anthropic_compatible")
    assert found["message"] == said("I'll look.", tool_calls=[call("toolu_01", "find", '{"q": "a"}')])
    assert (found["usage"], found["response_id"]) == (Usage(400, 50), "msg_01")


def test_gemini_signatures_stay_with_their_call() -> None:
    """noho/dayu-agent#45: no `index`, and an `extra_content` that must be sent back."""
    signed = {"google": {"thought_signature": "EjQKMgEMOdbH"}}
    first = call("function-call-1", "find", '{"q":"a"}', extra_content=signed)
    expected = said(None, tool_calls=[first, call("function-call-2", "find", '{"q":"b"}')])
    found = whole("gemini_tools")
    assert found["message"] == streamed("gemini_tools")["message"] == expected
    assert found["usage"] == streamed("gemini_tools")["usage"] == Usage(80, 80)  # the thoughts are in the total only


def test_gemini_that_only_thought() -> None:
    """router-for-me/CLIProxyAPI#5733: no content, no `completion_tokens`, and a total that says what was spent."""
    found = whole("gemini_only_thoughts")
    assert (found["message"], found["finish_reason"], found["usage"]) == (said(None), "length", Usage(21, 60))


def test_litellm_proxy() -> None:
    """docs.litellm.ai "Reasoning content": signed `thinking_blocks` stay, as the provider wants them back."""
    found = whole("litellm_proxy")
    assert (found["message"]["content"], found["reasoning"]) == ("Four.", "Think.")
    assert found["message"]["thinking_blocks"][0]["signature"] == "c2ln"
    assert found["usage"] == Usage(30, 9, 0, 5)


def test_a_trainers_proxy() -> None:
    """The Osmosis rollout protocol, first generation: ids and log-probabilities beside the choices; one-chunk SSE."""
    found, live = whole("trainer"), streamed("trainer")
    for key in ("message", "usage", "token_ids", "logprobs", "prompt_token_ids", "response_id"):
        assert found[key] == live[key]
    assert (found["token_ids"], found["logprobs"], found["prompt_token_ids"]) == ([9], [-0.01], [1, 2, 3])
    assert found["message"] == said("4", weight_version="42")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("llamacpp_error", "exceeds the available context size"),
        ("openrouter_error", "Provider disconnected unexpectedly"),
        ("tgi_error", "must be <= 2048"),
        ("trainer_error", "rollout not found"),
    ],
)
def test_errors_within_a_stream(name: str, words: str) -> None:
    """llama.cpp before 2025-10 (`error:` lines), openrouter.ai/docs/api/errors, opea-project/GenAIInfra#487,
    the Osmosis rollout protocol (`event: error`)."""
    with pytest.raises(ErrorFrame) as frame:
        assembled(name)
    assert words in json.dumps(frame.value.error)


def test_errors_where_an_answer_belongs() -> None:
    """openrouter.ai/docs/api/errors: status 200 and an error, at the top or in the choice; Gemini's is in a list."""
    at_the_top = json.loads((SHAPES / "openrouter_error_in_200.json").read_bytes())
    assert error_in(at_the_top)["code"] == 502
    assert error_in(json.loads((SHAPES / "openrouter_error_in_choice.json").read_bytes()))["code"] == 429
    assert error_in([{"error": {"code": 400}}]) == {"code": 400}
    for name in ("openai_tools", "vllm", "openrouter"):
        assert error_in(json.loads((SHAPES / f"{name}.json").read_bytes())) is None


def test_an_answer_that_the_endpoint_broke_off() -> None:
    """api-docs.deepseek.com: `insufficient_system_resource`; vLLM and SGLang: `abort`; OpenRouter: `error`."""
    assert gave_up(json.loads((SHAPES / "deepseek_broken_off.json").read_bytes())) == "insufficient_system_resource"
    assert gave_up({"choices": [{"finish_reason": "length"}]}) == ""


def test_thoughts_written_into_the_text_stay_there() -> None:
    """Servers without a reasoning parser leave `<think>` in the content: we do not guess where it ends."""
    text = "<think>hm</think>4"
    found = parse_answer({"choices": [{"message": {"content": text}}]})
    assert (found.message, found.reasoning) == (said(text), None)


def test_every_shape_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    for shape in SHAPES.iterdir():
        assert f'"{shape.stem}' in source or shape.stem == "errors", shape.name
