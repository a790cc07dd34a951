"""`AgenticRolloutConfig`: the eleven keys of the third seed, and what each does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any


@dataclass
class AgenticRolloutConfig:
    """How an `AgenticRollout` plays. Raises ValueError for what cannot be."""

    agent_type: str = "react"
    """`react`, `tool`, `coding`, `general`, or the name under which an agent is registered."""
    max_steps: int = 10
    """The most steps of a trajectory; what the agent sees and what tools give are steps too."""
    max_tokens_per_step: int = 512
    """`max_tokens` of each call of the model."""
    temperature: float = 0.7
    """How it samples."""
    tools_config: Mapping[str, Any] | None = None
    """Built-in tools with their settings, as in a file's `[tools]`: `{"calculator": {"precision": 10}}`; tools by
    class, `{"web": {"class": "module:Class", ...}}`; and `sandbox`, where those of them work that need one."""
    interactions_config: Any = None
    """Who answers the agent after its final answer, by name: a function, an object, or `{"class": "module:Class"}`."""
    batch_size: int = 1
    """How many trajectories `iter_batches` gives at a time."""
    concurrent_requests: int = 4
    """How many trajectories play at once, and so how many requests are under way."""
    include_trajectory_in_output: bool = True
    """Whether `generate_sequences` gives the whole trajectories beside their responses."""
    save_trajectories: bool | None = None
    """Whether each is saved as it plays. Without a word, the variable AGENTIC_SAVE_TRAJECTORIES says, or else no."""
    trajectory_save_path: str | None = None
    """The folder for that. Default: `./trajectories`."""

    def __post_init__(self) -> None:
        if not isinstance(self.agent_type, str) or not self.agent_type:
            raise ValueError(f"agent_type is the name of an agent, found {self.agent_type!r:.60}")
        for name in ("max_steps", "max_tokens_per_step", "batch_size", "concurrent_requests"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} is a whole number from 1, found {value!r:.60}")
        for name in ("include_trajectory_in_output", "save_trajectories"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise ValueError(f"{name} is True or False, found {value!r:.60}")
        if self.tools_config is not None and not isinstance(self.tools_config, Mapping):
            raise ValueError(f"tools_config is a table by tool, found {type(self.tools_config).__name__}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AgenticRolloutConfig:
        """Of a dictionary. Raises ValueError for a key that is none."""
        known = [each.name for each in fields(cls)]
        for key in values:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                guess = f"; did you mean {near[0]!r}?" if near else f"; keys: {', '.join(known)}"
                raise ValueError(f"an AgenticRolloutConfig has no {key!r}{guess}")
        return cls(**dict(values))

    def to_dict(self) -> dict[str, Any]:
        """Every key."""
        return asdict(self)
