"""The network of pods that have none: one `NetworkPolicy` for all of ours in a namespace, which allows nothing.

It stays: other runs rely on it at the same time, and whoever took it away would open theirs. The API can only be asked
for it. Whether packets are stopped is up to the cluster's network plugin, which nothing here can see.
"""

from __future__ import annotations

from typing import Any

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api, ApiError
from runner.sandboxes.kubernetes.pods import MANAGED, NETWORK

NAME = "osmosis-run-no-network"
_CHOSEN = {MANAGED: "osmosis-run", NETWORK: "none"}
_SPEC = {
    "podSelector": {"matchLabels": _CHOSEN},
    "policyTypes": ["Egress", "Ingress"],
}


async def deny_network(api: Api) -> str:
    """Make sure that the policy is there, as it must be. Returns what it cannot promise.

    Raises `SandboxError` (kind "sandbox_unavailable") when it is not there and may not be made.
    """
    path = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace}/networkpolicies"
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "labels": {MANAGED: "osmosis-run"}},
        "spec": _SPEC,
    }
    try:
        there = await _get(api, f"{path}/{NAME}")
        if there is None:
            there = await _create(api, path, policy)
    except ApiError as error:
        raise SandboxError(
            f"`network = false` needs the NetworkPolicy `{NAME}` in `{api.namespace}`, and it cannot be had: {error}. "
            "Allow `get` and `create` of networkpolicies, have it made, or set `kubernetes.network_policy = false` "
            "where the cluster shuts its pods off in another way",
            kind="sandbox_unavailable",
        ) from error
    if not _allows_nothing(there):
        raise SandboxError(
            f"the NetworkPolicy `{NAME}` in `{api.namespace}` was changed and lets something through: delete it, and "
            "it is made again",
            kind="sandbox_unavailable",
        )
    return (
        f"the NetworkPolicy `{NAME}` denies its pods the network; whether it is enforced depends on the cluster's "
        "network plugin"
    )


async def _get(api: Api, path: str) -> dict[str, Any] | None:
    try:
        return await api.call("GET", path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


async def _create(api: Api, path: str, policy: dict[str, Any]) -> dict[str, Any]:
    try:
        return await api.call("POST", path, policy)
    except ApiError as error:
        if error.status == 409:  # somebody made it in this very moment
            return await api.call("GET", f"{path}/{NAME}")
        raise


def _allows_nothing(policy: dict[str, Any]) -> bool:
    spec = policy.get("spec") or {}
    rules = [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]
    chosen = (spec.get("podSelector") or {}).get("matchLabels") or {}
    narrower = set(chosen.items()) - set(_CHOSEN.items()) or (spec.get("podSelector") or {}).get("matchExpressions")
    return not rules and not narrower and set(spec.get("policyTypes") or ()) == {"Egress", "Ingress"}
