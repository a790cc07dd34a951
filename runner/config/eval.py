"""`[eval]`: how many rollouts, how many at once, and what makes a run good enough."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.config.quantity import Seconds, Usd
from runner.config.reference import Location
from runner.config.section import Array, Section


class Budget(Section):
    """What the whole run may use. When it is spent the run stops, resumable."""

    cost: Usd | None = None
    """US dollars over all model calls, judges included."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens over all model calls, judges included."""
    time: Seconds | None = None
    """Wall clock of this command."""


class EvalGate(Section):
    """A bar for the run: below it the exit code is 2. At least one of `min` and `max`."""

    metric: str
    """`reward`, `pass_rate`, `pass@K`, `pass^K`, `grader:NAME`, `cost` (USD), or the share of rollouts that ended
    `scored`, `ungraded`, `failed` or `cancelled`."""
    bound: Literal["lower", "value", "upper"] = "lower"
    """Which end of the 95 % interval is compared. Default: `lower`, so that luck does not pass."""
    min: float | None = None
    """At least this."""
    max: float | None = None
    """At most this."""


class EvalSection(Section):
    """How many rollouts, how many at once, and what makes a run good enough."""

    attempts: Annotated[int, Field(ge=1)] = 1
    """Rollouts of each row. More attempts later only add to a run."""
    concurrency: Annotated[int, Field(ge=1)] = 256
    """Rollouts in flight. Default 256: the model's own limit is what usually binds."""
    pass_threshold: float = 1.0
    """The reward from which a rollout counts as passed."""
    group_by: Array[str] = ()
    """Columns whose values get their own line in the summary."""
    budget: Budget = Budget.model_construct()
    """What the whole run may use. Default: no limit."""
    breaker: Annotated[int, Field(ge=0)] = 8
    """So many rollouts that began one after the other, of more than one row, and failed in the same way stop the run;
    0 never does. Default 8: a dead endpoint is not asked a thousand times."""
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.05
    """The share of failed rollouts over which the exit code is 3."""
    gates: Array[EvalGate] = ()
    """Bars for the run; one that does not hold makes the exit code 2."""
    baseline: Location | None = None
    """A finished run to compare with in the summary."""
    output: Location = Location("runs")
    """The folder that run folders are made in, relative to the file that says so."""
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    """How often a rollout is played again when model, tool or sandbox failed. Default 0: playing again until it works
    shifts the distribution, so it is for you to ask for."""
