"""`[sandboxes]`: every key can be honoured by its kind, what is mounted and copied is there, and names are declared."""

from __future__ import annotations

import re
from pathlib import Path as FilePath

from runner.config.checks.checking import Checking
from runner.config.checks.contents import regex_of
from runner.config.graders import CommandGrader, CommandScore
from runner.config.model import VARIABLE_PATTERN
from runner.config.sandboxes import HONOURED, SandboxSection
from runner.diag.diagnostic import Path
from runner.diag.suggest import nearest

_TARGET = re.compile(r"[^:\0]+(:(ro|rw))?")
_NUMBERS = re.compile(r"\d{1,9}(:\d{1,9})?")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEYS = "letters, digits, `-`, `_` and `.`, at most 63, after `DOMAIN/` or not"
_VALUES = "letters, digits, `-`, `_` and `.`, at most 63"


def check_sandboxes(check: Checking) -> None:
    """Everything about `[sandboxes]` that one table cannot know alone."""
    for name, section in check.config.sandboxes.items():
        path: Path = ("sandboxes", name)
        if check.loaded.is_broken((*path, "kind")):
            continue
        _honoured(check, path, section)
        _user(check, path, section)
        _env(check, path, section)
        _mounts(check, path, section)
        _copies(check, path, section)
        _pool(check, path, section)
        if section.kind == "kubernetes":
            _kubernetes(check, (*path, "kubernetes"), section)
    _graders(check)


def _honoured(check: Checking, path: Path, section: SandboxSection) -> None:
    table = check.loaded.tree["sandboxes"][path[1]]
    for key, kinds in HONOURED.items():
        if section.kind not in kinds and key in table:
            message = f"a sandbox of kind `{section.kind}` has no `{key}`"
            named = [f"`{kind}`" for kind in kinds]
            label = f"it goes with {' and '.join([', '.join(named[:-1]), named[-1]] if named[1:] else named)}"
            check.report("misplaced-key", (*path, key), message, label, key=True)
    if section.kind in HONOURED["image"] and section.image is None and "image" not in table:
        message = f"a sandbox of kind `{section.kind}` needs an `image`"
        check.report("missing-key", path, message, 'add `image = "python:3.12-slim"`', key=True)


def _user(check: Checking, path: Path, section: SandboxSection) -> None:
    numbered = section.kind in ("bubblewrap", "kubernetes")
    if numbered and section.user is not None and not _NUMBERS.fullmatch(section.user):
        message = f"`{section.user}` is no user of a `{section.kind}` sandbox"
        check.report("bad-value", (*path, "user"), message, 'write numbers: `"1000"` or `"1000:1000"`')


def _env(check: Checking, path: Path, section: SandboxSection) -> None:
    for name in section.env:
        if not re.fullmatch(VARIABLE_PATTERN, name):
            message = f"`{name}` cannot be the name of a variable"
            check.report("bad-value", (*path, "env", name), message, "letters, digits and `_`", key=True)


def _mounts(check: Checking, path: Path, section: SandboxSection) -> None:
    for host, target in section.mount.items():
        where = (*path, "mount", host)
        if not _TARGET.fullmatch(target):
            check.report("bad-value", where, f"`{target}` is no place inside", 'write `"/data:ro"` or `"/data:rw"`')
        elif section.kind in HONOURED["mount"]:
            _there(check, where, host, "mount")


def _copies(check: Checking, path: Path, section: SandboxSection) -> None:
    for host, target in section.copy_in.items():
        where = (*path, "copy", host)
        if not target or "\0" in target:
            check.report("bad-value", where, "it is copied to no place", 'write a path inside: `"."`')
        elif "{{" not in host and "{%" not in host:
            _there(check, where, host, "copy")


def _there(check: Checking, where: Path, host: str, verb: str, *, key: bool = True) -> None:
    folder = check.loaded.origins.folder(where)
    found = folder / FilePath(host).expanduser()
    if not found.exists():
        names = [entry.name for entry in found.parent.iterdir()] if found.parent.is_dir() else []
        near = nearest(found.name, names)
        label = f"did you mean `{FilePath(host).with_name(near)}`?" if near else "make it, or name another"
        check.report("missing-path", where, f"there is no `{host}` to {verb}", label, key=key)


def _pool(check: Checking, path: Path, section: SandboxSection) -> None:
    if section.scope == "run":
        if section.warm:
            check.warn("no-effect", (*path, "warm"), "there is one sandbox for the whole run", "remove it", key=True)
    elif section.most is not None and section.warm > section.most:
        message = f"{section.warm} cannot be kept ready where at most {section.most} are alive"
        related = [(check.place((*path, "max")), "the most")]
        check.report("limits-conflict", (*path, "warm"), message, "lower it", related=related)


def _kubernetes(check: Checking, path: Path, section: SandboxSection) -> None:
    asked = section.kubernetes
    for kind, table in (
        ("labels", asked.labels),
        ("annotations", asked.annotations),
        ("node_selector", asked.node_selector),
    ):
        for key, value in table.items():
            where = (*path, kind, key)
            if not _LABEL_KEY.fullmatch(key):
                check.report("bad-value", where, f"`{key}` cannot be a key of `{kind}`", _KEYS, key=True)
            elif kind != "node_selector" and key.startswith(("osmosis-run/", "app.kubernetes.io/managed-by")):
                check.report("bad-value", where, f"`{key}` is ours: pods are found by it", "choose another", key=True)
            elif kind != "annotations" and not _LABEL_VALUE.fullmatch(value):
                check.report("bad-value", where, f"`{value}` cannot be the value of a label", _VALUES)
    for index, each in enumerate(asked.tolerations):
        where = (*path, "tolerations", index)
        if each.operator == "Exists" and each.value is not None:
            check.report("bad-value", (*where, "value"), "`Exists` takes no value", "remove it")
        elif each.operator == "Equal" and each.key is None:
            check.report(
                "missing-key", where, "`Equal` needs the `key` of a taint", 'add `key`, or `operator = "Exists"`'
            )
    for key, wanted, most in (
        ("request_memory", asked.request_memory, section.memory),
        ("request_cpus", asked.request_cpus, section.cpus),
    ):
        if wanted is not None and most is not None and wanted > most:
            limit = key.removeprefix("request_")
            related = [(check.place((*path[:-1], limit)), "the limit")]
            message = f"a pod cannot ask a node for more than its `{limit}`"
            check.report("limits-conflict", (*path, key), message, "lower it", related=related)
    if asked.kubeconfig is not None:
        _there(check, (*path, "kubeconfig"), asked.kubeconfig, "read", key=False)
    if section.network and "network_policy" in asked.model_fields_set:
        where = (*path, "network_policy")
        check.warn("no-effect", where, "with `network = true` nothing is denied", "remove it", key=True)


def _graders(check: Checking) -> None:
    table = check.loaded.tree.get("sandboxes")
    known = list(table) if isinstance(table, dict) else []
    for name, grader in check.config.graders.items():
        if not isinstance(grader, CommandGrader):
            continue
        path: Path = ("graders", name)
        if grader.sandbox is not None:
            if grader.sandbox not in known:
                check.unknown("unknown-sandbox", (*path, "sandbox"), "sandbox", grader.sandbox, known)
        elif len(known) != 1:
            message = f"`{name}` runs in a sandbox, and the file has " + ("several" if known else "none")
            label = f'add `sandbox = "{known[0]}"`' if known else "add `[sandboxes.work]`, and it is used"
            check.report("unknown-sandbox", path, message, label, key=True)
        if isinstance(grader.score, CommandScore) and grader.score.regex is not None:
            _pattern(check, (*path, "score", "regex"), grader.score.regex)


def _pattern(check: Checking, path: Path, text: str) -> None:
    pattern = regex_of(check, path, text)
    if pattern is not None and not 1 <= pattern.groups <= 2:
        message = "the pattern says not which part is the number"
        check.report("bad-value", path, message, "put one group `( )` around it, or two for a share")
