"""Who answers: a provider has what it needs and nothing it would ignore, and the secrets it needs are set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.config.checks.checking import Checking
from runner.config.graders import RubricGrader
from runner.config.layers import looks_secret
from runner.config.model import EnvName, ModelSection, Rule
from runner.config.names import dotted
from runner.diag.diagnostic import Path

_OFFLINE = ("scripted", "replay", "python")
_SECRET_HEADERS = ("authorization", "proxy-authorization", "x-api-key", "api-key", "cookie")


def check_models(check: Checking, *, serving: bool) -> None:
    """`[model]`, `[roles]` and `[secrets]`. When `serving`, the policy is the controller's and needs no key of ours."""
    judges = {grader.role for grader in check.config.graders.values() if isinstance(grader, RubricGrader)}
    if check.config.model is not None:
        _model(check, ("model",), check.config.model)
    for name, role in check.config.roles.items():
        _model(check, ("roles", name), role)
    _secrets(check, judges, serving)
    _env(check)


def _model(check: Checking, path: Path, model: ModelSection) -> None:
    _provider(check, path, model)
    _concurrency(check, path, model)
    _headers(check, path, model)


def _secrets(check: Checking, judges: set[str], serving: bool) -> None:
    """Every variable that a run needs is set; each is told once, wherever it is needed first."""
    needed: dict[str, list[Path]] = {}
    for index, variable in enumerate(check.config.secrets.required):
        needed.setdefault(variable, []).append(("secrets", "required", index))
    models: list[tuple[Path, ModelSection]] = [(("roles", n), r) for n, r in check.config.roles.items() if n in judges]
    if check.config.model is not None and not serving:
        models.insert(0, (("model",), check.config.model))
    for path, model in models:
        if model.effective_provider not in _OFFLINE:
            for variable, where in _variables(path, model):
                needed.setdefault(variable, []).append(where)
    for name, server in check.config.mcp.items():
        for key in ("env", "headers"):
            for variable, where in _named(getattr(server, key), ("mcp", name, key)):
                needed.setdefault(variable, []).append(where)
    for variable, paths in needed.items():
        if not check.loaded.environ.get(variable) and variable not in check.config.env:
            label = f"`export {variable}=…`"
            related = [(check.loaded.origins.value_place(path), "needed here") for path in paths[1:]]
            message = f"the environment variable `{variable}` is not set"
            check.report("secret-missing", paths[0], message, label, related=related)


def _variables(path: Path, model: ModelSection) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if model.api_key is not None:
        found.append((model.api_key.env, (*path, "api_key", "env")))
    return found + _named(model.headers, (*path, "headers"))


def _named(table: Mapping[str, str | EnvName], path: Path) -> list[tuple[str, Path]]:
    """The variables that the values of a table name."""
    return [(value.env, (*path, name, "env")) for name, value in table.items() if isinstance(value, EnvName)]


def _env(check: Checking) -> None:
    for name, value in check.config.env.items():
        if not name or "=" in name or "\0" in name:
            message = (
                f"`{name!r:.60}` cannot name a variable: no system takes one that is empty or holds `=` or a zero byte"
            )
            check.report("bad-value", ("env", name), message, "give it another name", key=True)
        elif "\0" in value:
            message = f"the value of `{name}` holds a zero byte, and no variable can"
            check.report("bad-value", ("env", name), message, "take it out")
        elif value and looks_secret((name,)):
            message = f"`{name}` in `[env]` looks like a secret in the file"
            label = "set it in the environment and name it in `[secrets] required`"
            check.warn("secret-in-file", ("env", name), message, label, key=True)


def _provider(check: Checking, path: Path, model: ModelSection) -> None:
    provider, where = model.effective_provider, ".".join(map(str, path))
    broken = check.loaded.is_broken
    if broken((*path, "provider")):
        return
    if provider == "scripted" and not model.rules and not broken((*path, "rules")):
        check.report(
            "missing-key", path, f"`{where}` is scripted and has no rules", f"add `[[{where}.rules]]`", key=True
        )
    if provider == "replay" and model.recording is None and not broken((*path, "recording")):
        check.report(
            "missing-key", path, f"`{where}` is a replay and has no recording", 'add `recording = "FILE"`', key=True
        )
    if provider not in _OFFLINE and not model.id and not broken((*path, "id")):
        check.report("missing-key", path, f"`{where}` has no `id`", 'add `id = "provider/model"`', key=True)
    if provider == "python" and model.call is None and not broken((*path, "call")):
        check.report("missing-key", path, f"`{where}` has no function to ask", 'add `call = "module:name"`', key=True)
    if model.call is not None and provider != "python" and not _was(check, path, "python"):
        message = f"only a function reads `call`, and `{where}` is `{provider}`"
        check.report("misplaced-key", (*path, "call"), message, "remove it, or remove `provider`", key=True)
    if provider == "scripted":
        check_rules(check, (*path, "rules"), model.rules)
    if model.rules and provider != "scripted" and not _was(check, path, "scripted"):
        message = f"only a scripted model reads `rules`, and `{where}` is `{provider}`"
        check.report(
            "misplaced-key", (*path, "rules"), message, 'add `provider = "scripted"`, or remove them', key=True
        )
    if model.recording is not None and provider != "replay" and not _was(check, path, "replay"):
        message = f"only a replay reads `recording`, and `{where}` is `{provider}`"
        check.report(
            "misplaced-key", (*path, "recording"), message, 'add `provider = "replay"`, or remove it', key=True
        )
    if model.recording is not None and provider == "replay" and not model.recording.path.is_file():
        label = "record one with `osmosis-run eval --record FILE`"
        check.report("not-found", (*path, "recording"), f"there is no recording `{model.recording.text}`", label)
    if provider in _OFFLINE:
        for key in ("base_url", "api_key", "headers"):
            if check.is_set((*path, key)):
                check.warn(
                    "no-effect", (*path, key), f"a model that is `{provider}` never uses `{key}`", "remove it", key=True
                )
    if provider == "litellm" and model.id:
        _litellm(check, path, model)
    _id(check, path, model)


def _litellm(check: Checking, path: Path, model: ModelSection) -> None:
    """What only the direct path does; `"auto"` asks for nothing, so it promises nothing."""
    for key, value in (("stream", model.stream), ("return_token_ids", model.return_token_ids)):
        if value is True and check.is_set((*path, key)):
            message = f"`{key}` works on the direct path only, and this model is asked through litellm"
            label = 'remove it, or set `provider = "openai"` for an OpenAI-compatible endpoint'
            check.warn("no-effect", (*path, key), message, label, key=True)


def check_rules(check: Checking, path: Path, rules: Sequence[Rule]) -> None:
    """Every rule of a script says something."""
    for index, rule in enumerate(rules):
        said = (rule.reply, rule.reasoning, rule.finish_reason, rule.error)
        if not rule.tool_calls and all(one is None for one in said):
            message = f"`{dotted((*path, index))}` says nothing"
            check.report("missing-key", (*path, index), message, "add `reply`, `tool_calls` or `error`")


def _was(check: Checking, path: Path, provider: str) -> bool:
    """Whether a lower layer chose `provider`: a profile or `--set` that swaps the model leaves its keys behind."""
    history = check.loaded.origins.history((*path, "provider"))
    return any(value == provider for value, _, _ in history[:-1])


def _id(check: Checking, path: Path, model: ModelSection) -> None:
    if model.effective_provider == "litellm" and model.id and "/" not in model.id and model.provider is None:
        message = f"`{model.id}` does not say which provider serves it"
        label = f"write `openai/{model.id}`, or set `base_url`"
        check.report("bad-value", (*path, "id"), message, label)


def _concurrency(check: Checking, path: Path, model: ModelSection) -> None:
    limits, path = model.concurrency, (*path, "concurrency")
    if not check.is_set(path) or limits.mode == "fixed":
        for key in ("min", "start"):
            if limits.mode == "fixed" and key in _table(check, path):
                check.warn("no-effect", (*path, key), f"a fixed concurrency has no `{key}`", "remove it", key=True)
        return
    if not limits.min <= limits.start <= limits.max:
        message = f"`min` {limits.min}, `start` {limits.start} and `max` {limits.max} are not in order"
        check.report("out-of-range", path, message, "min ≤ start ≤ max")


def _table(check: Checking, path: Path) -> dict[str, object]:
    """The keys that were written at `path`: a model does not tell them from its defaults once it was built."""
    found = check.loaded.origins.setting(path)
    return found[1].value if found is not None and isinstance(found[1].value, dict) else {}


def _headers(check: Checking, path: Path, model: ModelSection) -> None:
    for name, header in model.headers.items():
        if isinstance(header, str) and name.lower() in _SECRET_HEADERS:
            message = f"the header `{name}` holds a secret in the file"
            check.report(
                "secret-in-file", (*path, "headers", name), message, 'name the variable instead: `{ env = "NAME" }`'
            )
