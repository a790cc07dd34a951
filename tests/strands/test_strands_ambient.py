"""The ambient context: found without being handed down, restored on leaving, and where a sample comes from."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner import RolloutContext, RolloutSample, SampleSource, get_rollout_context
from runner.workflows.rollout_context import RolloutContext as EitherContext

WORKFLOW = """
    from runner import AgentWorkflow, AgentWorkflowOutput, RolloutSample, get_rollout_context

    class Source:
        def __init__(self, sample):
            self.sample = sample

        async def get_sample(self):
            return self.sample

    class Agent:
        messages = [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [{"text": "4"}]}]
        system_prompt = "Be brief."

    class Play(AgentWorkflow):
        async def run(self, ctx):
            await ctx.chat(ctx.prompt)
            context = get_rollout_context()
            assert context.rollout_id == ctx.rollout_id
            %s
"""


def play(project: Any, body: str) -> Any:
    project.write("agents.py", (WORKFLOW % body.replace("\n", "\n" + " " * 12)))
    return project.play(workflow='agent = "./agents.py:Play"')


def test_contexts_nest_and_leave_the_one_before() -> None:
    assert get_rollout_context() is None
    outer, inner = RolloutContext("http://a", "k", "r1"), RolloutContext("http://b", "k", "r2")
    with outer:
        with inner, outer:
            assert get_rollout_context() is outer
        assert get_rollout_context() is outer
    assert get_rollout_context() is None
    assert isinstance(outer, EitherContext)
    assert "k" not in repr(outer).replace("rollout", "").split("=")


def test_the_environment_fills_what_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSMOSIS_CHAT_COMPLETIONS_URL", "http://env/v1")
    monkeypatch.setenv("OSMOSIS_API_KEY", "secret")
    monkeypatch.setenv("OSMOSIS_ROLLOUT_ID", "of-env")
    context = RolloutContext(rollout_id="mine")
    assert (context.chat_completions_url, context.api_key, context.rollout_id) == ("http://env/v1", "secret", "mine")


def test_and_never_what_the_engine_says(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSMOSIS_API_KEY", "leaked")
    outcome = play(project, "assert context.api_key == '', context.api_key")
    assert outcome.status == "scored", outcome.failure


def test_both_ways_to_ask_for_samples() -> None:
    class Agent:
        messages = ({"role": "user", "content": "x"},)

    class Named(SampleSource):
        async def get_sample(self, name: str = "") -> RolloutSample:  # type: ignore[override]
            return RolloutSample(messages=[{"role": "user", "content": name}])

    context = RolloutContext("http://a", "k", "r")
    context.register_agent("a", Agent())
    assert context.get_samples()["a"].messages == [{"role": "user", "content": "x"}]
    assert asyncio.run(context.get_sample()).messages == [{"role": "user", "content": "x"}]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="`a` is registered already"):
        context.register_sample_source("a", Named())
    with pytest.raises(ValueError, match="has a sample source already: `a`"):
        context.set_sample_source(Named())
    context.register_sample_source("b", Named())

    async def all_of_them() -> Any:
        return await context.get_samples()

    samples = asyncio.run(all_of_them())
    assert list(samples) == ["a", "b"]
    assert samples["b"].messages[0]["content"] == "b"
    with pytest.raises(ValueError, match="2 samples, and a rollout has one"):
        asyncio.run(context.get_sample())


def test_a_source_says_what_the_sample_is(project: Any) -> None:
    body = """sample = RolloutSample(
        messages=[{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}],
        metrics={"steps": 2.0}, extra_fields={"note": "n"})
context.set_sample_source(Source(sample))"""
    outcome = play(project, body)
    assert outcome.reward == 1.0
    assert [message["content"] for message in outcome.sample.messages] == ["q", "4"]
    assert outcome.sample.metrics["steps"] == 2.0
    assert outcome.sample.info == {"note": "n", "sample_id": "main"}


def test_an_agent_with_blocks_is_in_chat_form_and_its_system_prompt_comes_first(project: Any) -> None:
    outcome = play(project, 'context.register_agent("solver", Agent())')
    assert outcome.sample.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "4"},
    )


def test_a_source_without_a_sample_leaves_what_was_recorded(project: Any) -> None:
    outcome = play(project, "context.set_sample_source(Source(None))")
    assert [message["role"] for message in outcome.sample.messages] == ["user", "assistant"]


def test_two_samples_are_one_too_many(project: Any) -> None:
    outcome = play(project, 'context.register_agent("a", Agent())\ncontext.register_agent("b", Agent())')
    assert (outcome.status, outcome.failure.kind) == ("failed", "many_samples")
    assert "registered 2 samples (`a`, `b`)" in outcome.failure.message


def test_unless_the_workflow_says_which_counts(project: Any) -> None:
    both = 'context.register_agent("a", Agent())\ncontext.register_agent("b", Agent())'
    body = f'{both}\nreturn [{{"role": "assistant", "content": "4"}}]'
    assert play(project, body).reward == 1.0


def test_a_source_that_gives_something_else(project: Any) -> None:
    outcome = play(project, 'context.set_sample_source(Source("text"))')
    assert outcome.failure.kind == "agent_error"
    assert "gave str, not a RolloutSample or None" in outcome.failure.message


def test_a_sample_as_json() -> None:
    sample = RolloutSample(messages=[{"role": "user", "content": {1, 2}}], extra_fields={"x": object})
    assert sample.json_safe_copy().messages[0]["content"] == "{1, 2}"
    sample.messages[0]["content"] = "changed"
    assert sample.trajectory_messages[0]["content"] == {1, 2}
