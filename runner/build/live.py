"""`Live`: a plan that is running. Its connections and the run's resources live exactly as long as `plan.open()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from runner.graders.grader import Grader, Judge
from runner.models.model import Model
from runner.records.completion import Caller, Completion, Sampling
from runner.records.failure import JudgeUnavailable, ModelError
from runner.records.message import Message
from runner.records.quick import quick
from runner.tools.tool import Ask

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.sandboxes.pool import SandboxPool


@quick
class GraderPart:
    """A grader of the plan. `required`: without its score there is no reward. `timeout` is in seconds or None."""

    name: str
    grader: Grader
    required: bool = True
    timeout: float | None = None


@quick
class ResourcePart:
    """A resource of the plan: a callable that gives a context manager, sync or async, and its keyword arguments."""

    name: str
    open: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)


@quick
class Role:
    """A model and how it is sampled."""

    model: Model
    sampling: Sampling


@dataclass(slots=True)
class Bill:
    """What the judges cost that one grader asked, in USD; None until one of them has a price.

    `unanswered` is the last call that no judge could answer, unless an answer came after it: a grader that swallows
    the error has not judged.
    """

    cost: float | None = None
    answered: int = 0
    unanswered: JudgeUnavailable | None = None

    def add(self, completion: Completion) -> None:
        self.answered += 1
        self.unanswered = None
        if completion.cost is not None:
            self.cost = (self.cost or 0.0) + completion.cost


@dataclass(slots=True)
class Live:
    """The running side of a plan: the policy, the other roles, the resources of scope "run", and pools of sandboxes.

    `notices` is what this machine cannot give of what the file asks, as sentences to be said once.
    """

    plan: Plan
    model: Model
    roles: Mapping[str, Role] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    sandboxes: Mapping[str, SandboxPool] = field(default_factory=dict)
    notices: Sequence[str] = ()
    ask: Ask | None = None
    """Who is asked about calls that need somebody's consent, if anybody is there."""

    def answered_by(self, model: Model) -> Live:
        """The same, with another policy: a served rollout brings its own."""
        return Live(self.plan, model, self.roles, self.resources, self.sandboxes, self.notices, self.ask)

    def judges(self, caller: Caller, bill: Bill) -> Mapping[str, Judge]:
        """The roles as a grader asks them, on behalf of one rollout; what they cost goes on its bill.

        A call that a role could not answer is noted on the bill until one begun later is answered.
        """
        return {name: _judge(name, role, caller, bill) for name, role in self.roles.items()}


def _judge(name: str, role: Role, caller: Caller, bill: Bill) -> Judge:
    asking = Caller(caller.rollout_id, caller.row, caller.attempt, name)

    async def ask(messages: Sequence[Message], sampling: Sampling | None = None) -> Completion:
        how = role.sampling if sampling is None else _over(role.sampling, sampling)
        before = bill.answered
        try:
            completion = await role.model.complete(messages, (), how, asking)
        except ModelError as error:
            unavailable = JudgeUnavailable(f"role {name!r}: {error}", where=error.where)
            if bill.answered == before:
                bill.unanswered = unavailable
            raise unavailable from error
        bill.add(completion)
        return completion

    return ask


def _over(own: Sampling, asked: Sampling) -> Sampling:
    """`own` with every field that `asked` sets."""
    given = {each.name: getattr(asked, each.name) for each in fields(Sampling)}
    values = {key: value for key, value in given.items() if value is not None and key not in ("stop", "extra")}
    if asked.stop:
        values["stop"] = asked.stop
    return replace(own, **values, extra={**own.extra, **asked.extra})
