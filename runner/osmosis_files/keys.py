"""`KINDS`: the files of the Osmosis SDK as data: which tables and keys each has, and what a value may be.

Four files have been in use: what `osmosis rollout serve` and `osmosis eval run` of 0.2 read, and what `train submit`
and the later `eval` commands read. A table that takes any key has `None` for its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Type: TypeAlias = Literal["string", "integer", "number", "switch", "table", "strings"]

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
COMMIT = r"[0-9a-fA-F]{7,40}"
ENV_NAME = r"[A-Z_][A-Z0-9_]*"
SECRET_NAME = r"[A-Z][A-Z0-9_]*"  # noqa: S105
RESERVED = "_OSMOSIS_"


@dataclass(frozen=True, slots=True)
class Key:
    """What one key takes. `low` and `high` are inside the range, `above` is not; `form` is what `pattern` means."""

    type: Type
    required: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    words: tuple[str, ...] = ()
    pattern: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file. `marks` are tables that no other kind has; `required` those it cannot do without."""

    name: str
    what: str
    marks: tuple[str, ...]
    required: tuple[str, ...]
    tables: Mapping[str, Mapping[str, Key] | None]


_NEEDED = Key("string", required=True)
_TEXT = Key("string")
_SWITCH = Key("switch")
_VARIABLE = Key("string", pattern=VARIABLE, form="the name of a variable")
_URL = Key("string", pattern=r"https?://\S+", form="an address that begins with `http://` or `https://`")
_CODE = Key("string", pattern=r"[^:]+:[^:]+", form="`module:name`")
_SECONDS = Key("number", above=0)
_TRAINING_SECONDS = Key("number", low=1, high=86_400)
_LENGTH = Key("integer", low=1, high=262_144)
_LEVELS = ("critical", "error", "warning", "info", "debug", "trace")
_MODEL = {"model": _NEEDED, "base_url": _URL, "api_key_env": _VARIABLE}

_EXPERIMENT = {
    "rollout": _NEEDED,
    "entrypoint": _NEEDED,
    "model_path": _NEEDED,
    "dataset": _NEEDED,
    "branch": _TEXT,
    "commit_sha": Key("string", pattern=COMMIT, form="a commit of 7 to 40 hexadecimal digits"),
    "completion_webhook": Key("table"),
}
_SHARED: dict[str, Mapping[str, Key] | None] = {
    "advanced": None,
    "env": None,
    "secrets": {"required": Key("strings", required=True)},
}

EVAL = Kind(
    "eval",
    "an evaluation: `[experiment]` and `[evaluation]`",
    ("evaluation",),
    ("experiment", "secrets"),
    {
        "experiment": _EXPERIMENT,
        "evaluation": {
            "limit": Key("integer"),
            "n": Key("integer", low=1),
            "batch_size": Key("integer", low=1),
            "pass_threshold": Key("number"),
            "agent_workflow_timeout_s": _SECONDS,
            "grader_timeout_s": _SECONDS,
        },
        **_SHARED,
    },
)
TRAINING = Kind(
    "training",
    "a training run: `[experiment]` and `[training]`",
    ("training", "sampling", "checkpoints"),
    ("experiment",),
    {
        "experiment": _EXPERIMENT,
        "training": {
            "lr": Key("number", above=0, high=1),
            "total_epochs": Key("integer", low=1, high=10_000),
            "n_samples_per_prompt": Key("integer", low=1, high=1_024),
            "rollout_batch_size": Key("integer", low=1, high=1_000_000),
            "global_batch_size": Key("integer", low=1),
            "max_prompt_length": _LENGTH,
            "max_response_length": _LENGTH,
            "agent_workflow_timeout_s": _TRAINING_SECONDS,
            "grader_timeout_s": _TRAINING_SECONDS,
        },
        "sampling": {
            "rollout_temperature": Key("number", low=0, high=2),
            "rollout_top_p": Key("number", low=0, high=1),
        },
        "checkpoints": {
            "eval_interval": Key("integer", low=1, high=1_000_000),
            "checkpoint_save_freq": Key("integer", low=1, high=1_000_000),
        },
        **_SHARED,
    },
)
EVAL_02 = Kind(
    "eval-0.2",
    "an evaluation of SDK 0.2: `[eval]`, `[llm]` and `[runs]`",
    ("eval", "llm", "runs", "output", "timeouts", "grader", "baseline"),
    ("eval", "llm"),
    {
        "eval": {
            "dataset": _NEEDED,
            "rollout": _NEEDED,
            "entrypoint": _NEEDED,
            "limit": Key("integer", low=1),
            "offset": Key("integer", low=0),
            "fresh": _SWITCH,
            "retry_failed": _SWITCH,
        },
        "llm": _MODEL,
        "runs": {
            "n": Key("integer", low=1),
            "batch_size": Key("integer", low=1),
            "pass_threshold": Key("number", low=0, high=1),
        },
        "output": {"log_samples": _SWITCH, "output_path": _TEXT, "quiet": _SWITCH, "debug": _SWITCH},
        "grader": {"module": _CODE, "config": _CODE},
        "baseline": _MODEL,
        "timeouts": {"agent_workflow_timeout_s": _SECONDS, "grader_timeout_s": _SECONDS},
    },
)
SERVE = Kind(
    "serve",
    "a server of SDK 0.2: `[serve]` and `[server]`",
    ("serve", "server", "debug", "registration"),
    ("serve",),
    {
        "serve": {"rollout": _NEEDED, "entrypoint": _NEEDED},
        "server": {
            "port": Key("integer", low=1, high=65_535),
            "host": _TEXT,
            "log_level": Key("string", words=_LEVELS),
        },
        "debug": {"no_validate": _SWITCH, "trace_dir": _TEXT},
        "registration": {"skip": _SWITCH, "api_key": _TEXT},
    },
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in (EVAL, TRAINING, EVAL_02, SERVE)}
"""By the name that `--kind` takes."""

OURS = ("workflow", "graders", "tools", "model", "roles", "reward", "dataset", "limits", "matrix", "profiles")
"""Tables that only a workflow.toml has."""

TURNS = 1000
"""The SDK limits no turns; a loop that never ends still has to."""

AGENT_SECONDS, GRADER_SECONDS = 450.0, 150.0
"""What the SDK gives an agent and a grader where the file does not say."""


def tables_of(kind: Kind, key: str) -> list[str]:
    """The tables of `kind` that have `key`."""
    return [name for name, keys in kind.tables.items() if keys is not None and key in keys]


def plain(value: Any) -> bool:
    """Whether TOML can hold `value` as it is."""
    if isinstance(value, list):
        return all(map(plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(inner) for key, inner in value.items())
    return isinstance(value, str | bool | int | float)
