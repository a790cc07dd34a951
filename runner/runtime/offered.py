"""`offered_to`: the tools of one rollout, before it starts: what a start of the first generation is answered with."""

from __future__ import annotations

from runner.build.plan import Plan
from runner.records.completion import ToolSpec
from runner.records.failure import RolloutError, WorkflowError
from runner.records.rollout import RolloutRequest
from runner.runtime.boundary import failure_of
from runner.runtime.sampling import merge_sampling
from runner.workflows.terms import Terms


def offered_to(plan: Plan, request: RolloutRequest) -> tuple[ToolSpec, ...]:
    """What the model is offered in this rollout: an agent loop is asked, for any other agent it is `plan.offered`.

    Raises `WorkflowError` when the loop's `get_tools` raises, or gives what are no tools.
    """
    loop: object = plan.make_workflow
    if not hasattr(loop, "offered"):  # no `Offers`; to ask the protocol itself takes 10 us, and every start asks
        return plan.offered
    from runner.workflows.loop.hosting import PreparedLoop, hosted_request  # 10 ms that only an agent loop pays

    if not isinstance(loop, PreparedLoop):
        return plan.offered
    row, specs = request.row, plan.toolbox.specs
    asked = hosted_request(request.rollout_id, request.prompt, row, _terms(plan, request), specs)
    try:
        return loop.tools_for(asked)
    except Exception as error:
        failure = failure_of(error)
        raise WorkflowError(f"the tools cannot be listed: {failure.message}", where=failure.where) from error


def _terms(plan: Plan, request: RolloutRequest) -> Terms:
    try:
        sampling = merge_sampling(plan.sampling_for(request), request.sampling)
        return Terms(sampling, plan.limits.override(request.limits), request.label)
    except (RolloutError, KeyError, ValueError):  # the rollout itself will end with a sentence about that
        return Terms(plan.sampling, plan.limits, request.label)
