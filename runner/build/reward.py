"""`[reward]` to the rule that makes one reward of the scores."""

from __future__ import annotations

from runner.build.site import Site
from runner.graders.reward import RewardGate, RewardRule


def build_reward(site: Site) -> RewardRule:
    """The rule of the file; which names it may use was checked with the config."""
    section = site.config.reward
    return RewardRule(
        combine=section.combine,
        weights=dict(section.weights),
        measured=tuple(section.measured),
        gates=tuple(RewardGate(gate.grader, gate.below, gate.above, gate.reward) for gate in section.gates),
        range=section.range,
    )


def required_names(site: Site) -> frozenset[str]:
    """Graders without whose score there is no reward: required ones that are not only measured."""
    measured = set(site.config.reward.measured)
    return frozenset(name for name, grader in site.config.graders.items() if grader.required and name not in measured)
