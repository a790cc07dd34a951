"""Kill -9 in the middle of a thousand rollouts, under a controller that is itself unwell."""

from __future__ import annotations

from typing import Any

import pytest

FLAKY = {"callback-500": 0.3, "callback-stall": 0.1, "ack-drop": 0.05, "start-duplicate": 0.1, "start-again": 0.1}
QUICK = {"serve__callbacks__timeout": "1s", "serve__callbacks__base_wait": "150ms",
         "serve__callbacks__max_wait": "300ms", "serve__callbacks__concurrency": 256}  # fmt: skip
"""A server whose clock runs faster: what comes again does so within the test. A second is long enough for an
acknowledgement to be read in on a busy machine; one that is not would rightly be asked for again. Waits are drawn from
nought on, so a shorter first one would now and then look like no wait at all, five times in a row."""


@pytest.mark.parametrize(("workers", "on_restart", "rollouts"), [(1, "run", 1000), (2, "run", 1000), (1, "fail", 600)])
def test_every_rollout_gets_one_verdict(simulate: Any, workers: int, on_restart: str, rollouts: int) -> None:
    faults = [word for name, chance in FLAKY.items() for word in ("--fault", f"{name}={chance}")]
    words = ("--rollouts", str(rollouts), "--concurrency", "256", "--kill-after", "1", "--stall", "1.5", *faults)
    facts = simulate(*words, serve__workers=workers, serve__on_restart=on_restart, **QUICK)
    assert facts["violations"] == [] and facts["exit_code"] == 0
    assert facts["rollouts"] == {"posted": rollouts, "accepted": rollouts, "verdicts": rollouts, "cancelled": 0,
                                 "missing": 0, "unacknowledged": 0}  # fmt: skip
    # It was killed while many played and others waited to be told; and each fault had its share.
    assert facts["load"]["kill -9"] == 1 and facts["load"]["under way at kill -9"] >= 20
    posts, struck = facts["requests"]["callback"], facts["faults"]
    assert struck["callback-500"] > 0.24 * posts and struck["callback-stall"] > 0.07 * posts
    assert facts["load"]["start-duplicate"] > 0.07 * rollouts and facts["load"]["start-again"] > 0.07 * rollouts
    cut_off = facts["outcomes"].get("failure", 0)
    assert facts["outcomes"]["scored"] + cut_off == rollouts
    # What was accepted, and killed before the answer left, is cut off like what was under way.
    under_way = facts["load"]["under way at kill -9"] + facts["load"].get("starts without an answer", 0)
    assert cut_off == 0 if on_restart == "run" else 0 < cut_off <= under_way
    assert all("restart" in each["message"] for each in facts["failures"])
