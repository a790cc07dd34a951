"""`rubric`: a model judges the answer by criteria.

Three rules. What the policy wrote is hostile: it reaches the judge fenced, and the judge is told so. A verdict that is
malformed or incomplete is asked for once more and then is an error, never a score. And the judge's reason is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from runner.graders.criterion import Criterion, Opinion, agree, checked
from runner.graders.grader import Grader, GraderContext, Judge, Score
from runner.graders.labels import require_label
from runner.graders.rubric_prompt import INSTRUCTIONS, PROMPT_NAMES, default_prompt, shown
from runner.graders.verdict import MalformedVerdict, parse_verdict
from runner.records.completion import Completion, Sampling
from runner.records.failure import GraderError, JudgeUnavailable, ModelError
from runner.records.message import Message, text_of

__all__ = ["PROMPT_NAMES", "Criterion", "RubricGrader"]


class RubricGrader(Grader):
    """The weighted mean of a judge's verdicts on `criteria`, each scaled to 0...1.

    `role` names the judge in `ctx.roles`. With several `votes` the judge is asked as often, each time with another
    seed; a binary criterion goes by majority (a tie is half), the others by the mean. `view` shows the judge the final
    answer or the whole conversation. `prompt` is called with `PROMPT_NAMES` as keywords and replaces our words to the
    judge, never its instructions on format and hostile text. Raises `GraderMisfit`; `grade` raises `JudgeUnavailable`,
    and `GraderError` of kind "judge_malformed".
    """

    range = (0.0, 1.0)
    needs_label = False

    def __init__(
        self,
        criteria: Sequence[Criterion],
        *,
        role: str = "judge",
        votes: int = 1,
        view: Literal["final", "full"] = "final",
        prompt: Callable[..., str] | None = None,
        needs_label: bool = False,
    ) -> None:
        super().__init__()
        self._criteria = checked(criteria, votes)
        self._role = role
        self._votes = votes
        self._view = view
        self._prompt = prompt
        self.needs_label = needs_label

    async def grade(self, ctx: GraderContext) -> Score:
        if self.needs_label:
            require_label(ctx)
        judge = ctx.roles.get(self._role)
        if judge is None:
            known = ", ".join(ctx.roles) or "none"
            raise GraderError(f"the rubric's role {self._role!r} has no model here; roles that have one: {known}")
        messages = self._messages(ctx)
        ballots = await _all(self._vote(judge, messages, self._seed(vote)) for vote in range(self._votes))
        return self._score(ballots)

    def _seed(self, vote: int) -> Sampling | None:
        # One vote is the role's own business; several need to differ, or they are one vote counted often.
        return Sampling(seed=vote) if self._votes > 1 else None

    def _messages(self, ctx: GraderContext) -> list[Message]:
        variables = shown(ctx, self._criteria, self._view)
        body = self._prompt(**variables) if self._prompt else default_prompt(variables)
        return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": body}]

    async def _vote(self, judge: Judge, messages: list[Message], sampling: Sampling | None) -> dict[str, Opinion]:
        reply = await _ask(judge, messages, sampling)
        try:
            return parse_verdict(text_of(reply.message), self._criteria)
        except MalformedVerdict as fault:
            again = [*messages, {"role": "assistant", "content": text_of(reply.message)}, _complaint(fault)]
        reply = await _ask(judge, again, sampling)
        try:
            return parse_verdict(text_of(reply.message), self._criteria)
        except MalformedVerdict as fault:
            cut = "; it was cut off, so a larger max_tokens may help" if reply.finish_reason == "length" else ""
            raise GraderError(
                f"the judge gave no usable verdict, twice: {fault}{cut}", kind="judge_malformed", where=self._role
            ) from fault

    def _score(self, ballots: Sequence[Mapping[str, Opinion]]) -> Score:
        results = [(each, *agree(each, [ballot[each.id] for ballot in ballots])) for each in self._criteria]
        total = sum(each.weight for each in self._criteria)
        value = sum(each.weight * value for each, value, _ in results) / total
        reasons = [f"{each.id} {value:.2f}: {ballots[0][each.id].reason}" for each, value, _ in results]
        return Score(min(max(value, 0.0), 1.0), "; ".join(reasons), self._details(ballots, results))

    def _details(
        self, ballots: Sequence[Mapping[str, Opinion]], results: Sequence[tuple[Criterion, float, float]]
    ) -> dict[str, Any]:
        criteria: dict[str, Any] = {}
        for each, value, agreement in results:
            criteria[each.id] = {"value": round(value, 6), "votes": [ballot[each.id].said for ballot in ballots]}
            criteria[each.id]["reasons"] = [ballot[each.id].reason for ballot in ballots]
            if self._votes > 1:
                criteria[each.id]["agreement"] = round(agreement, 6)
        return {"criteria": criteria}


async def _ask(judge: Judge, messages: Sequence[Message], sampling: Sampling | None) -> Completion:
    try:
        return await judge(messages, sampling)
    except ModelError as error:
        raise JudgeUnavailable(f"the judge could not answer: {error}", where=error.where) from error


def _complaint(fault: MalformedVerdict) -> Message:
    return {
        "role": "user",
        "content": f"Your verdict cannot be used: {fault}. Answer again with the JSON object alone, as instructed.",
    }


async def _all(votes: Any) -> list[dict[str, Opinion]]:
    """Every vote at the same time; the first failure ends the others."""
    import asyncio

    tasks = [asyncio.ensure_future(vote) for vote in votes]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
