"""`-m MODULE:NAME`: a config without a file, made of what the command line says.

Each flag is a layer over the defaults that the first generation's command line had, and names itself in every finding
and in `explain`; `--set` and the environment reach every key that has no flag.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner.cli.exit import CommandError
from runner.cli.options import DEFAULT
from runner.records.quick import quick

if TYPE_CHECKING:
    from runner.config.layers import Override
    from runner.config.loaded import Loaded

F = TypeVar("F", bound=Callable[..., Any])

LAYER = "the default of `-m`"
KEY, BASELINE_KEY, SERVE_KEY = "OSMOSIS_RUN_API_KEY", "OSMOSIS_RUN_BASELINE_API_KEY", "OSMOSIS_RUN_SERVE_KEY"
"""The variables that hold the keys of a command line: a config names variables, and a manifest holds no key."""

module_option = click.option(
    "-m", "--module", metavar="MODULE:NAME",
    help="Bring your code unchanged: an agent loop, or whatever `[workflow] agent` may name. No file is read.",
)  # fmt: skip
mcp_option = click.option(
    "--mcp", metavar="DIR", type=click.Path(path_type=Path),
    help="Instead of -m: an agent with the tools of the MCP server that DIR/main.py holds.",
)  # fmt: skip


@quick
class Module:
    """An agent named on the command line, and what stands around it. `defaults` are by dotted key."""

    name: str | None
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    settings: tuple[Override, ...] = ()
    mcp: Path | None = None

    def inspect(self, *more: Override, serving: bool = False, named: bool = True) -> Loaded:
        """The config with all that is wrong with it. `named` looks into the code for what the agent calls itself."""
        from runner.config.check import check
        from runner.config.layers import Override
        from runner.config.load import inspect_flags

        if self.name is None:
            own, agent = "mcp_agent", _with_tools(self.mcp)
        else:
            own = _own_name(self.name, imports=named)
            agent = [Override.from_option("workflow.agent", agent_text(self.name), f"-m {self.name}")]
        loaded = inspect_flags(
            {"workflow.name": own, **self.defaults},
            overrides=[*agent, *map(Override.from_set, self.overrides), *self.settings, *more],
            profile=self.profile,
            layer=LAYER,
        )
        check(loaded, serving=serving)
        return loaded

    def load(self, *more: Override, serving: bool = False) -> Any:
        """The config. Raises `ConfigError` with every finding."""
        from runner.diag.diagnostic import ConfigError

        loaded = self.inspect(*more, serving=serving)
        if loaded.report.errors or loaded.config is None:
            raise ConfigError(loaded.report)
        return loaded.config


def refuse_both(module: str | None, workflow: Path, mcp: Path | None = None) -> None:
    """`-m`, `--mcp` and a file are three configs. Raises `CommandError`."""
    if module is not None and mcp is not None:
        raise CommandError(f"`-m {module}` and `--mcp {mcp}` are two agents", "leave one out")
    flag = f"-m {module}" if module is not None else f"--mcp {mcp}"
    if (module is not None or mcp is not None) and workflow != DEFAULT:
        hint = f", or run the file with `--set workflow.agent={module}`" if module is not None else ""
        raise CommandError(f"`{flag}` reads no file, and `{workflow}` is one", f"leave one out{hint}")
    if mcp is not None and not (mcp / "main.py").is_file():
        raise CommandError(f"`--mcp {mcp}`: there is no `{mcp / 'main.py'}`", "name the folder of a server's main.py")


def _with_tools(mcp: Path | None) -> list[Override]:
    """The agent that calls tools of the server in `mcp` until it answers."""
    import sys

    from runner.config.layers import Override

    command = [sys.executable, "-m", "runner.sdk.mcp_main", str(mcp)]
    found = {"workflow.agent": "tools", "mcp.server.command": command}
    return [Override.from_option(key, value, f"--mcp {mcp}") for key, value in found.items()]


def agent_text(module: str) -> str:
    """`-m main` as `[workflow] agent` says it: a bare word is a module beside you."""
    if re.fullmatch(r"[A-Za-z_]\w*", module):
        return f"./{module}.py"
    return f"./{module}" if re.fullmatch(r"[^:./][^:]*\.py(:.*)?", module) else module


def _own_name(module: str, *, imports: bool) -> str:
    """What the agent is called: by itself, or by the word it was named with."""
    text = agent_text(module)
    target, _, name = text.partition(":")
    plain = name.rpartition(".")[2] or target.rpartition("/")[2].removesuffix(".py") or module
    if not imports or not name:
        return plain
    from runner.build.importing import Importer, ReferenceProblem

    try:
        own = getattr(Importer().find(text, Path.cwd()).value, "name", None)
    except ReferenceProblem:  # building it says why, and where
        return plain
    return own if isinstance(own, str) and own.strip() else plain


def option_settings(asked: Mapping[str, Any], keys: Mapping[str, tuple[str, str]]) -> list[Override]:
    """Options as layers: of each option's parameter, the key it sets and the flag that a finding shows."""
    from runner.config.layers import Override

    found = [(key, flag, asked.get(name)) for name, (key, flag) in keys.items()]
    return [Override.from_option(key, value, f"{flag} {value}") for key, flag, value in found if value is not None]


def model_settings(
    words: tuple[str | None, str | None, str | None], *, guess: bool, prefix: str = "", variable: str = KEY
) -> list[Override]:
    """Who answers: `words` are model, address and key, `prefix` is that of their flags.

    A key goes into `variable` and nowhere else. With `guess` a bare name is one of OpenAI's, whose key is where
    LiteLLM would look for it; beside a file nothing is guessed, since the file says the rest.
    """
    from runner.config.layers import Override

    model, base_url, api_key = words
    found: list[tuple[str, Any, str]] = []
    bare = guess and model is not None and "/" not in model and base_url is None
    if model is not None:
        found.append(("model.id", f"openai/{model}" if bare else model, f"--{prefix}model {model}"))
    if base_url is not None:
        found.append(("model.base_url", base_url, f"--{prefix}base-url {base_url}"))
    if api_key is not None:
        os.environ[variable] = api_key
        found.append(("model.api_key", {"env": variable}, f"--{prefix}api-key …"))
    elif bare or (guess and base_url is None and model is not None and model.startswith("openai/")):
        found.append(("model.api_key", {"env": "OPENAI_API_KEY"}, f"--{prefix}model {model}"))
    return [Override.from_option(key, value, shown) for key, value, shown in found]


def eval_functions(functions: Sequence[str]) -> list[Override]:
    """Each `--eval-fn MODULE:NAME` as a grader of its name. Raises `CommandError` for one that is named twice."""
    from runner.config.layers import Override

    named = grader_names(functions)
    found = []
    for text, name in named.items():
        shown = f"--eval-fn {text}"
        key = f'graders."{name}"'
        found.append(Override.from_option(f"{key}.kind", "python", shown))
        found.append(Override.from_option(f"{key}.call", text, shown))
    return found


def grader_names(functions: Sequence[str]) -> dict[str, str]:
    """By path, what the grader of an eval function is called: its own name, or the whole path where two share it."""
    for text in functions:
        if functions.count(text) > 1:
            raise CommandError(f"`--eval-fn {text}` is given twice", "leave one out: a function scores a rollout once")
    short = {text: text.rpartition(":")[2] or text for text in functions}
    shared = [name for name in short.values() if list(short.values()).count(name) > 1]
    return {
        text: re.sub(r"[^A-Za-z0-9_.-]", "_", text.replace(":", ".").lstrip("./") if name in shared else name)
        for text, name in short.items()
    }


def row_settings(config: Any, offset: int | None, limit: int | None) -> list[Override]:
    """What only the dataset itself can say: columns in other letters, and where the rows behind `offset` end.

    Raises `DatasetError` and `CommandError`.
    """
    from runner.config.layers import Override
    from runner.datasets.open import open_dataset

    section = config.dataset
    if section.path is None:
        return []
    dataset = open_dataset(section.path.path, format=section.format)
    known = dataset.columns()
    found = []
    for ours in ("system_prompt", "user_prompt", "ground_truth"):
        theirs = [name for name in known if name.lower() == ours]
        if ours not in known and ours not in section.columns and len(theirs) == 1:
            found.append(Override.from_option(f"dataset.columns.{ours}", theirs[0], f"-d {section.path.text}"))
    if offset:
        count = dataset.count()
        if offset >= count:
            raise CommandError(f"`--offset {offset}` leaves no row: there are {count}", "rows are counted from 0")
        last = count - 1 if limit is None else min(offset + limit, count) - 1
        found.append(Override.from_option("dataset.rows", f"{offset}-{last}", f"--offset {offset}"))
    return found
