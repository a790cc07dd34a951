"""`[sandboxes.NAME] kubernetes`: labels that a cluster takes, tolerations that say something, and no contradiction."""

from __future__ import annotations

import re

from runner.config.checks.checking import Checking
from runner.config.checks.there import is_there
from runner.config.sandboxes import SandboxSection
from runner.diag.diagnostic import Path

_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_CURE = "letters, digits, `-`, `_` and `.`, at most 63"
_OURS = ("osmosis-run/", "app.kubernetes.io/managed-by")


def check_kubernetes(check: Checking, path: Path, section: SandboxSection) -> None:
    """What the cluster would refuse of the section at `path`, or what would do nothing."""
    asked, below = section.kubernetes, (*path, "kubernetes")
    for kind in ("labels", "annotations", "node_selector"):
        _labels(check, (*below, kind), getattr(asked, kind))
    _tolerations(check, (*below, "tolerations"), section)
    _requests(check, path, section)
    if asked.kubeconfig is not None:
        is_there(check, (*below, "kubeconfig"), asked.kubeconfig, "read", key=False)
    if section.network and "network_policy" in asked.model_fields_set:
        where = (*below, "network_policy")
        check.warn("no-effect", where, "with `network = true` nothing is denied", "remove it", key=True)


def _labels(check: Checking, path: Path, table: dict[str, str]) -> None:
    kind = path[-1]
    for key, value in table.items():
        where = (*path, key)
        if not _KEY.fullmatch(key):
            check.report("bad-value", where, f"`{key}` cannot be a key of `{kind}`", f"{_CURE}, after `DOMAIN/` or not",
                         key=True)  # fmt: skip
        elif kind != "node_selector" and key.startswith(_OURS):
            check.report("bad-value", where, f"`{key}` is ours: pods are found by it", "choose another", key=True)
        elif kind != "annotations" and not _VALUE.fullmatch(value):
            check.report("bad-value", where, f"`{value}` cannot be the value of a label", _CURE)


def _tolerations(check: Checking, path: Path, section: SandboxSection) -> None:
    for index, each in enumerate(section.kubernetes.tolerations):
        where = (*path, index)
        if each.operator == "Exists" and each.value is not None:
            check.report("bad-value", (*where, "value"), "`Exists` takes no value", "remove it")
        elif each.operator == "Equal" and each.key is None:
            label = 'add `key`, or `operator = "Exists"`'
            check.report("missing-key", where, "`Equal` needs the `key` of a taint", label)


def _requests(check: Checking, path: Path, section: SandboxSection) -> None:
    asked = section.kubernetes
    for limit, wanted, most in (
        ("memory", asked.request_memory, section.memory),
        ("cpus", asked.request_cpus, section.cpus),
    ):
        if wanted is not None and most is not None and wanted > most:
            related = [(check.place((*path, limit)), "the limit")]
            message = f"a pod cannot ask a node for more than its `{limit}`"
            check.report(
                "limits-conflict", (*path, "kubernetes", f"request_{limit}"), message, "lower it", related=related
            )
