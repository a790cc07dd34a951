"""A grader that cannot speak means no reward, never 0; how the agent itself ended is kept."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

GRADERS = """
    import asyncio
    import time

    from runner import Grader, Score

    def raises(messages, ground_truth, metadata):
        return 1 / 0

    def exits(messages, ground_truth, metadata):
        raise SystemExit(3)

    def cancels(messages, ground_truth, metadata):
        raise asyncio.CancelledError

    async def cancels_itself(ctx):
        asyncio.current_task().cancel()
        await asyncio.sleep(1)

    async def acancels(ctx):
        raise asyncio.CancelledError

    def nan(messages, ground_truth, metadata):
        return float("nan")

    def infinite(messages, ground_truth, metadata):
        return float("inf")

    def text(messages, ground_truth, metadata):
        return "1.0"

    def nothing(messages, ground_truth, metadata):
        return None

    class Bad(Grader):
        async def grade(self, ctx):
            return Score(float("nan"), "not a number")

    def hangs(messages, ground_truth, metadata):
        time.sleep(0.6)
        return 1.0

    async def ahangs(ctx):
        await asyncio.sleep(60)

    async def swallows(ctx):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return 1.0

    async def blocks(ctx):
        time.sleep(0.25)
        return 1.0

    async def removes(ctx):
        ctx.sample.remove_sample = True

    async def removes_with_a_reward(ctx):
        ctx.sample.remove_sample = True
        ctx.set_reward(0.5)

    async def removes_and_breaks(ctx):
        ctx.sample.remove_sample = True
        raise ValueError("broken")

    async def asks(ctx):
        await ctx.roles["judge"]([{"role": "user", "content": "well?"}])
        return 1.0

    async def swallows_the_judge(ctx):
        try:
            return await asks(ctx)
        except Exception:
            return 0.0

    async def asks_again(ctx):
        for _ in range(2):
            try:
                return await asks(ctx)
            except Exception:
                pass
"""


@pytest.fixture
def graders(project: Any) -> Any:
    project.write("graders.py", GRADERS)
    return project


def python(name: str, more: str = "") -> str:
    return f'[graders.mine]\nkind = "python"\ncall = "./graders.py:{name}"\n{more}\n'


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("raises", "grader_error", "ZeroDivisionError"),
        ("exits", "grader_error", "SystemExit"),
        ("cancels", "grader_error", "CancelledError"),
        ("acancels", "grader_error", "CancelledError"),
        ("cancels_itself", "grader_error", "cancelled its own task"),
        ("nan", "grader_bad_score", "nan"),
        ("infinite", "grader_bad_score", "inf"),
        ("text", "grader_bad_score", "str"),
        ("nothing", "grader_silent", "None"),
        ("Bad", "grader_bad_score", "nan"),
    ],
)
def test_a_grader_that_cannot_speak(graders: Any, name: str, kind: str, said: str) -> None:
    outcome = graders.play(python(name))
    assert (outcome.status, outcome.stop_reason, outcome.ended, outcome.reward) == (
        "ungraded",
        kind,
        "final_answer",
        None,
    )
    assert outcome.failure.boundary == "grader"
    assert said in outcome.failure.message
    assert outcome.scores["mine"].value is None
    assert outcome.scores["mine"].failure == outcome.failure


@pytest.mark.parametrize(("name", "value"), [("removes", None), ("removes_with_a_reward", 0.5)])
def test_a_grader_may_take_a_sample_out(graders: Any, name: str, value: float | None) -> None:
    outcome = graders.play(python(name))
    assert (outcome.status, outcome.stop_reason, outcome.reward, outcome.failure) == ("ungraded", "removed", None, None)
    assert (outcome.scores["mine"].value, outcome.scores["mine"].removed) == (value, True)
    assert outcome.scores["mine"].to_json()["removed"] is True


def test_a_grader_that_breaks_has_failed_whatever_it_wanted_to_remove(graders: Any) -> None:
    outcome = graders.play(python("removes_and_breaks"))
    assert (outcome.stop_reason, outcome.failure.kind) == ("grader_error", "grader_error")


def test_the_place_in_the_users_file_is_named(graders: Any) -> None:
    failure = graders.play(python("raises")).failure
    assert "graders.py:8 in raises" in failure.where
    assert "ZeroDivisionError" in failure.detail


@pytest.mark.parametrize("name", ["hangs", "ahangs", "swallows", "blocks"])
def test_a_grader_that_is_late_has_not_spoken(graders: Any, name: str) -> None:
    started = time.monotonic()
    outcome = graders.play(python(name, 'timeout = "100ms"'))
    assert time.monotonic() - started < 3
    assert (outcome.status, outcome.stop_reason, outcome.ended) == ("ungraded", "grader_timeout", "final_answer")
    assert "0.1 s" in outcome.failure.message


def test_how_the_agent_ended_is_kept_when_the_grader_fails(graders: Any) -> None:
    outcome = graders.play(python("raises"), graders.says("4", finish="length"))
    assert (outcome.stop_reason, outcome.ended) == ("grader_error", "max_tokens")


def test_no_label(project: Any) -> None:
    outcome = project.play(row={"user_prompt": "2+2?"})
    assert (outcome.status, outcome.stop_reason, outcome.failure.kind) == ("ungraded", "no_label", "no_label")


def test_an_optional_grader_that_fails_is_left_out(graders: Any) -> None:
    outcome = graders.play(python("raises", "required = false") + '[graders.answer]\nkind = "exact"\n')
    assert (outcome.status, outcome.reward) == ("scored", 1.0)
    assert outcome.scores["mine"].failure.kind == "grader_error"


def test_only_optional_graders_and_all_fail(graders: Any) -> None:
    outcome = graders.play(python("raises", "required = false"))
    assert (outcome.status, outcome.stop_reason) == ("ungraded", "grader_error")


def test_a_measured_grader_that_fails_is_only_reported(graders: Any) -> None:
    toml = python("raises") + '[graders.answer]\nkind = "exact"\n[reward]\nmeasured = ["mine"]\n'
    outcome = graders.play(toml)
    assert (outcome.status, outcome.reward) == ("scored", 1.0)
    assert outcome.scores["mine"].value is None


def test_a_required_grader_that_fails_decides_beside_others_that_speak(graders: Any) -> None:
    outcome = graders.play('[graders.answer]\nkind = "exact"\n' + python("raises"))
    assert (outcome.status, outcome.stop_reason) == ("ungraded", "grader_error")
    assert outcome.scores["answer"].value == 1.0


JUDGE = """
[roles.judge]
id = "judge"
provider = "scripted"
[[roles.judge.rules]]
{rule}
"""

RUBRIC = """
[graders.tone]
kind = "rubric"
role = "judge"
criteria = [{ id = "polite", text = "Polite.", type = "binary" }]
"""


def test_a_judge_that_is_not_there(project: Any) -> None:
    outcome = project.play(RUBRIC + JUDGE.format(rule='error = "no route"'))
    assert (outcome.status, outcome.stop_reason) == ("ungraded", "judge_unavailable")
    assert outcome.failure.boundary == "grader"
    assert "no route" in outcome.failure.message


def test_a_judge_that_gives_no_verdict(project: Any) -> None:
    outcome = project.play(RUBRIC + JUDGE.format(rule='reply = "I like it."'))
    assert (outcome.status, outcome.stop_reason) == ("ungraded", "judge_malformed")


@pytest.mark.parametrize("name", ["asks", "swallows_the_judge"])
def test_a_grader_that_swallows_its_judges_silence_has_not_judged(graders: Any, name: str) -> None:
    outcome = graders.play(python(name) + JUDGE.format(rule='error = "no route"'))
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("ungraded", "judge_unavailable", None)


def test_a_judge_that_answers_the_second_time_has_judged(graders: Any) -> None:
    rules = 'reply = "yes"\nwhen = "1 == 1"\n'
    outcome = graders.play(python("asks_again") + JUDGE.format(rule=rules))
    assert (outcome.status, outcome.reward) == ("scored", 1.0)


def test_what_the_judge_is_asked_with_goes_over_the_roles_own_sampling(graders: Any) -> None:
    from runner.build.live import Bill, Role
    from runner.records.completion import Caller, Sampling

    judge = graders.Says([graders.says("yes", cost=0.5)])

    async def main() -> None:
        async with graders.open() as live:
            live.roles = {"judge": Role(judge, Sampling(temperature=0.0, max_tokens=600, extra={"a": 1}))}
            bill = Bill()
            ask = live.judges(Caller("r"), bill)["judge"]
            await ask([{"role": "user", "content": "?"}], Sampling(seed=3, extra={"b": 2}))
            await ask([{"role": "user", "content": "?"}])
            assert bill.cost == 1.0

    asyncio.run(main())
    assert judge.asked[0][2] == Sampling(temperature=0.0, max_tokens=600, seed=3, extra={"a": 1, "b": 2})
    assert judge.asked[1][2] == Sampling(temperature=0.0, max_tokens=600, extra={"a": 1})


def test_what_the_judges_cost_is_on_the_bill(graders: Any) -> None:
    price = "price = { input = 1000000.0, output = 0.0 }\n"
    toml = python("asks") + JUDGE.format(rule='reply = "yes"').replace('id = "judge"\n', 'id = "judge"\n' + price)
    dear = graders.play(toml, graders.says("4", cost=1.0))
    assert dear.cost > 1.0


def test_graded_again(graders: Any) -> None:
    """A recorded outcome keeps how its agent ended, whatever became of its grade."""
    from runner.runtime.grading import grade_outcome

    first = graders.play(python("raises"), graders.says("4", finish="length"))
    assert first.stop_reason == "grader_error"

    async def again(toml: str) -> Any:
        async with graders.open(toml) as live:
            return await grade_outcome(live, first)

    better = asyncio.run(again('[graders.answer]\nkind = "exact"\n'))
    assert (better.status, better.stop_reason, better.ended, better.reward) == (
        "scored",
        "max_tokens",
        "max_tokens",
        1.0,
    )
    fixed = asyncio.run(again(python("raises") + "[limits]\non_limit = { reward = 0.25 }\n"))
    assert (fixed.status, fixed.reward) == ("scored", 0.25)


def test_graded_again_without_its_resource(graders: Any) -> None:
    from runner.runtime.grading import grade_outcome

    first = graders.play()
    graders.write("res.py", "def opened():\n    raise OSError('no disk')\n")

    async def again() -> Any:
        toml = '[graders.answer]\nkind = "exact"\n[resources.db]\nopen = "./res.py:opened"\nscope = "rollout"\n'
        async with graders.open(toml) as live:
            return await grade_outcome(live, first)

    outcome = asyncio.run(again())
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("ungraded", "resource_failed", None)


def test_failed_outcomes_are_not_graded(graders: Any) -> None:
    from runner.records.failure import ModelUnavailable
    from runner.runtime.grading import grade_outcome

    first = graders.play('[graders.answer]\nkind = "exact"\n', ModelUnavailable("down"))

    async def again() -> Any:
        async with graders.open() as live:
            return await grade_outcome(live, first)

    assert asyncio.run(again()) is first


def test_a_gate_without_its_score_gives_no_reward(graders: Any) -> None:
    toml = python("raises") + '[graders.answer]\nkind = "exact"\n'
    toml += '[reward]\ngates = [{ grader = "mine", below = 0.5, reward = 0.0 }]\n'
    assert graders.play(toml).status == "ungraded"
