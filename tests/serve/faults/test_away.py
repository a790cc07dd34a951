"""A controller that is gone for a minute, and comes back to what it is owed."""

from __future__ import annotations

from typing import Any

import pytest

WAITS = {
    "callbacks__base_wait": 0.5,
    "callbacks__max_wait": 30.0,
    "chat__base_wait": 0.5,
    "chat__retries__max_wait": 30.0,
}
"""The defaults of what is waited between two tries, in seconds. Who is away refuses: nobody waits for an answer."""


def gone(simulate: Any, seconds: float, rate: float, scale: float) -> None:
    """The controller is away for `seconds`; the server's waits are `WAITS` times `scale`."""
    rollouts = round(rate * 5)
    waits = {f"serve__{name}": f"{round(1000 * value * scale)}ms" for name, value in WAITS.items()}
    facts = simulate("--rollouts", str(rollouts), "--rate", str(rate), "--away", f"{seconds}@2", **waits)
    assert facts["violations"] == [] and facts["exit_code"] == 0
    assert facts["rollouts"] == {"posted": rollouts, "accepted": rollouts, "verdicts": rollouts, "cancelled": 0,
                                 "missing": 0, "unacknowledged": 0}  # fmt: skip
    # Who found nobody to ask has failed and says so; everybody else is scored, whenever it could be told.
    assert facts["outcomes"]["scored"] > 0 and facts["outcomes"]["failure"] > 0
    assert all("connect" in each["message"].lower() for each in facts["failures"]), facts["failures"]
    # It was waited for, and asked again soon after it was back.
    longest = facts["latency"]["verdict"]["max"]
    assert longest >= 0.5 * seconds
    assert longest <= seconds + scale * (WAITS["callbacks__max_wait"] + 10) + 3


def test_away_for_a_minute_on_a_clock_twenty_times_as_fast(simulate: Any) -> None:
    gone(simulate, 3.0, rate=100.0, scale=0.05)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_away_for_a_minute(simulate: Any) -> None:
    gone(simulate, 60.0, rate=40.0, scale=1.0)
