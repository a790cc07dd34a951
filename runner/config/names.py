"""Unknown keys: what the user meant. Renamed and removed names, keys of another section, slips of the pen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.config.config import RolloutConfig
from runner.config.fields import keys, keys_of, lookup
from runner.config.kinds import ALL
from runner.config.layers import Origins
from runner.diag.diagnostic import Diagnostic, Fix, Path
from runner.diag.suggest import alternatives, nearest
from runner.records.quick import quick

OBSOLETE: dict[tuple[str, str], str] = {
    ("*", "max_turns"): "limits.turns",
    ("*", "max_steps"): "limits.turns",
    ("*", "max_iterations"): "limits.turns",
    ("*", "max_tool_calls"): "limits.tool_calls",
    ("*", "max_tokens_total"): "limits.total_tokens",
    ("*", "timeout_seconds"): "limits.time",
    ("limits", "tokens"): "limits.total_tokens",
    ("limits", "max_tokens"): "limits.total_tokens",
    ("limits", "timeout"): "limits.time",
    ("limits", "max_cost"): "limits.cost",
    ("workflow", "ground_truth"): "workflow.label",
    ("workflow", "target"): "workflow.label",
    ("workflow", "prompt"): "workflow.user",
    ("workflow", "user_prompt"): "workflow.user",
    ("workflow", "system_prompt"): "workflow.system",
    ("workflow", "kind"): "workflow.agent",
    ("workflow", "type"): "workflow.agent",
    ("model", "name"): "model.id",
    ("model", "model"): "model.id",
    ("model", "url"): "model.base_url",
    ("model", "api_base"): "model.base_url",
    ("model", "endpoint"): "model.base_url",
    ("model", "max_retries"): "model.retries.attempts",
    ("sampling", "n"): "eval.attempts",
    ("sampling", "max_completion_tokens"): "sampling.max_tokens",
    ("sampling", "top_k"): "sampling.extra.top_k",
    ("sampling", "min_p"): "sampling.extra.min_p",
    ("eval", "n"): "eval.attempts",
    ("eval", "epochs"): "eval.attempts",
    ("eval", "num_samples"): "eval.attempts",
    ("eval", "num_rollouts"): "eval.attempts",
    ("eval", "repeats"): "eval.attempts",
    ("eval", "batch_size"): "eval.concurrency",
    ("eval", "max_concurrent"): "eval.concurrency",
    ("eval", "threshold"): "eval.pass_threshold",
    ("eval", "pass_at"): "eval.attempts",
    ("eval", "limit"): "dataset.limit",
    ("dataset", "file"): "dataset.path",
    ("dataset", "name"): "dataset.path",
    ("dataset", "batch_size"): "eval.concurrency",
    ("dataset", "mapping"): "dataset.columns",
    ("dataset", "seed"): "dataset.shuffle.seed",
    ("reward", "aggregation"): "reward.combine",
    ("reward", "metrics"): "reward.measured",
    ("tools.*", "path"): "tools.*.call",
    ("tools.*", "callable"): "tools.*.call",
    ("tools.*", "function"): "tools.*.call",
    ("tools.*", "fn"): "tools.*.call",
    ("tools.*", "schema"): "tools.*.parameters",
    ("tools.*", "input_schema"): "tools.*.parameters",
    ("tools.*", "retries"): "tools.*.retry.attempts",
    ("graders.*", "type"): "graders.*.kind",
    ("graders.*", "path"): "graders.*.call",
    ("graders.*", "fn"): "graders.*.call",
    ("graders.*", "function"): "graders.*.call",
    ("graders.*", "callable"): "graders.*.call",
    ("graders.*", "target"): "graders.*.expect",
    ("graders.*", "label"): "graders.*.expect",
    ("graders.*", "ground_truth"): "graders.*.expect",
    ("graders.*", "weight"): "reward.weights.*",
    ("graders.*", "model"): "graders.*.role",
    ("graders.*.expect", "name"): "graders.*.expect.tool",
    ("graders.*.expect", "arguments"): "graders.*.expect.args",
    ("graders.*.criteria", "name"): "graders.*.criteria.id",
    ("graders.*.criteria", "description"): "graders.*.criteria.text",
    ("graders.*.tests", "answer"): "graders.*.tests.output",
    ("tools.*.tests", "arguments"): "tools.*.tests.args",
    ("model.rules", "if"): "model.rules.when",
    ("model.rules", "content"): "model.rules.reply",
    ("model.rules", "response"): "model.rules.reply",
    ("resources.*", "call"): "resources.*.open",
    ("sandboxes.*", "type"): "sandboxes.*.kind",
    ("sandboxes.*", "backend"): "sandboxes.*.kind",
    ("sandboxes.*", "timeout"): "sandboxes.*.time",
    ("sandboxes.*", "mem"): "sandboxes.*.memory",
    ("sandboxes.*", "cpu"): "sandboxes.*.cpus",
    ("sandboxes.*", "mounts"): "sandboxes.*.mount",
    ("sandboxes.*", "volumes"): "sandboxes.*.mount",
    ("sandboxes.*", "max_alive"): "sandboxes.*.max",
    ("sandboxes.*", "pool"): "sandboxes.*.warm",
    ("serve", "address"): "serve.host",
    ("serve", "bind"): "serve.host",
    ("serve", "max_concurrent_rollouts"): "serve.max_concurrent",
    ("serve", "concurrency"): "serve.max_concurrent",
    ("serve", "max_queued"): "serve.max_queue",
    ("serve", "ttl"): "serve.record_ttl",
    ("serve", "database"): "serve.state",
    ("serve", "artifacts"): "serve.archive",
    ("serve", "log_level"): "serve.log.level",
    ("serve", "certfile"): "serve.hypercorn.certfile",
    ("serve", "keyfile"): "serve.hypercorn.keyfile",
    ("serve", "backlog"): "serve.hypercorn.backlog",
    ("serve.chat", "max_retries"): "serve.chat.retries.attempts",
    ("serve.callbacks", "retries"): "serve.callbacks.attempts",
    ("serve.callbacks", "max_retries"): "serve.callbacks.attempts",
    ("serve.connections", "keepalive"): "serve.connections.idle",
    ("", "n"): "eval.attempts",
    ("", "num_samples"): "eval.attempts",
    ("", "batch_size"): "eval.concurrency",
    ("", "prompt"): "workflow.user",
    ("", "system_prompt"): "workflow.system",
    ("", "ground_truth"): "workflow.label",
    ("", "agent_loop"): "workflow.agent",
}
"""(table, a name it once had or has elsewhere) -> the key to use. `*` stands for any name, or for any table."""

_NAMED = ("tools", "graders", "roles", "resources", "sandboxes", "mcp")


@quick
class Unknown:
    """A finding about a key that does not exist, and the key of the same table that was meant, if any."""

    finding: Diagnostic
    meant: str | None = None


def unknown_key(path: Path, tree: Mapping[str, Any], origins: Origins) -> Unknown:
    """The finding for the key at `path`, which its table does not have."""
    parent, key = path[:-1], str(path[-1])
    known = keys_of(parent, tree)
    place = origins.key_place(path)
    where = _where(parent)
    advice = _advice(parent, key)
    if advice is not None:
        return _moved(path, advice, "renamed-key", f"{where} has no key `{key}`", origins)
    other = _other_kinds(parent, key, tree)
    if other:
        message = f"{other[0]} has no `{key}`"
        return Unknown(Diagnostic("misplaced-key", message, place, f"it goes with {other[1]}"))
    elsewhere = _misplaced(key, known, parent)
    near = nearest(key, known)
    if elsewhere and not near:
        here = where if parent else "the top of the file"
        return _moved(path, elsewhere, "misplaced-key", f"`{key}` does not belong to {here}", origins)
    section = not parent and isinstance(tree.get(key), dict)
    message = f"there is no section `[{key}]`" if section else f"{where} has no key `{key}`"
    notes = _notes(where, known)
    if near is None:
        return Unknown(Diagnostic("unknown-key", message, place, notes=notes))
    fix = Fix(place, near) if place is not None and place.source.text[place.start : place.end] == key else None
    label = f"did you mean `{near}`?"
    return Unknown(Diagnostic("unknown-key", message, place, label, fix=fix), near)


def _other_kinds(parent: Path, key: str, tree: Mapping[str, Any]) -> tuple[str, str] | None:
    """What the grader or tool is that has no `key`, and those that have; None when no kind has it."""
    kinds = ALL.get(str(parent[0])) if len(parent) == 2 else None
    table = tree.get(str(parent[0])) if kinds is not None else None
    if kinds is None or not isinstance(table, dict) or not isinstance(table.get(parent[1]), dict):
        return None
    kind = table[parent[1]].get(kinds.key)
    having = [f"`{name}`" for name, model in kinds.models.items() if key in keys(model)]
    if kinds.section == "tools":
        having = [f'`builtin = "{name.strip("`")}"`' for name in having]
        if key in keys(kinds.without):
            having.append("tools that are not built in")
    if (
        not having
        or (kind is not None and kind not in kinds.models)
        or (kind is None and kinds.without is kinds.shared)
    ):
        return None
    noun = f"a grader of kind `{kind}`" if kinds.section == "graders" else f"the built-in tool `{kind}`"
    return noun if kind is not None else "a tool with a `call`", " and ".join(having)


def _moved(path: Path, advice: str, code: str, message: str, origins: Origins) -> Unknown:
    parent, key = path[:-1], str(path[-1])
    place = origins.key_place(path)
    table, _, name = advice.rpartition(".")
    if table == ".".join(_tables(parent)):
        exact = place is not None and place.source.text[place.start : place.end] == key
        fix = Fix(place, name) if place is not None and exact else None
        return Unknown(Diagnostic(code, message, place, f"it is called `{name}`", fix=fix), name)
    return Unknown(Diagnostic(code, message, place, _belongs(table, name, key)))


def _belongs(table: str, name: str, key: str) -> str:
    return f"it belongs to `[{table}]`" if name == key else f"write `{name}` in `[{table}]`"


def _advice(parent: Path, key: str) -> str | None:
    named = parent[:1] and parent[0] in _NAMED
    table = ".".join(["*" if index == 1 and named else part for index, part in enumerate(_tables(parent))])
    for where in (table, "*" if len(parent) <= 2 else None):
        found = OBSOLETE.get((where, key)) if where is not None else None
        if found is not None:
            return found.replace("*", str(parent[1]) if len(parent) > 1 else "NAME")
    return None


def _tables(path: Path) -> list[str]:
    """The keys of a path, without the places in arrays."""
    return [part for part in path if isinstance(part, str)]


def _misplaced(key: str, known: list[str], parent: Path) -> str | None:
    """The one section that has `key`, if exactly one does and the key is telling enough to say so."""
    if len(parent) > 2 or key in ("name", "path", "id", "min", "max", "tests", "timeout", "concurrency"):
        return None
    homes: list[str] = []
    for section, info in RolloutConfig.model_fields.items():
        found = lookup((info.alias or section,), {})
        if found is not None and found.table is not None and key in keys(found.table):
            homes.append(info.alias or section)
    if parent and parent[0] in homes:
        return None
    return f"{homes[0]}.{key}" if len(homes) == 1 else None


def _notes(where: str, known: list[str]) -> tuple[str, ...]:
    listed = alternatives(known)
    if listed:
        return (f"keys of {where}: {listed}",)
    return ("`osmosis-run explain` lists them",) if known else ()


def _where(parent: Path) -> str:
    return f"`[{dotted(parent)}]`" if parent else "the file"


def dotted(path: Path) -> str:
    """A path as people write it: `tools.search.tests[0].args`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            quoted = part if part.replace("_", "").replace("-", "").isalnum() else f'"{part}"'
            text += f".{quoted}" if text else quoted
    return text
