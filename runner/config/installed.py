"""Agents of installed packages: the entry points of the group `osmosis_run.agents`. Nothing of them is imported."""

from __future__ import annotations

GROUP = "osmosis_run.agents"


def installed_agents() -> dict[str, str]:
    """The agents that installed packages offer, by name: the references behind them."""
    from importlib.metadata import entry_points  # it reads every package's own: only who meets an unknown name pays

    return {entry.name: entry.value.partition("[")[0].strip() for entry in entry_points(group=GROUP)}
