"""Pods from their making to their end: what they are, why they do not start, how they are lost, who removes them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.asked import Limits
from runner.sandboxes.kubernetes.kubeconfig import Access
from runner.sandboxes.kubernetes.lookout import Followed
from runner.sandboxes.kubernetes.maker import RIGHTS, KubernetesMaker
from runner.sandboxes.kubernetes.network import NAME
from runner.sandboxes.kubernetes.pods import ALIVE_UNTIL, OWNER, PodOptions, label, standing
from runner.sandboxes.owner import owner_key
from runner.sandboxes.sandbox import Command
from tests.sandboxes.conftest import sh
from tests.sandboxes.kubernetes.api_server.cluster import Cluster, Pod
from tests.sandboxes.kubernetes.api_server.server import serving
from tests.sandboxes.kubernetes.conftest import OPTIONS, Place, placed, play


def only(cluster: Cluster) -> Pod:
    (pod,) = cluster.pods.values()
    return pod


def test_what_a_pod_is() -> None:
    async def work(place: Place) -> None:
        box = await place.box()
        pod = only(place.cluster).object
        assert box.name == pod["metadata"]["name"] and pod["metadata"]["namespace"] == "team"
        assert pod["metadata"]["labels"] == {
            "team": "rl",
            "app.kubernetes.io/managed-by": "osmosis-run",
            "osmosis-run/owner": owner_key(),
            "osmosis-run/section": "work",
            "osmosis-run/network": "none",
        }
        assert pod["metadata"]["annotations"]["osmosis-run/name"] == "Row 3/attempt 1"
        spec = pod["spec"]
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsUser": 1000,
            "runAsGroup": 1001,
            "runAsNonRoot": True,
        }
        assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
        assert container["resources"] == {
            "limits": {"memory": str(1 << 30), "cpu": "1500m", "ephemeral-storage": "1000"},
            "requests": {"cpu": "100m"},
        }
        assert spec["automountServiceAccountToken"] is spec["enableServiceLinks"] is False
        assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 600)
        assert (spec["serviceAccountName"], spec["runtimeClassName"]) == ("runner", "gvisor")
        assert spec["tolerations"] == [{"key": "spot", "operator": "Exists"}]
        assert spec["imagePullSecrets"] == [{"name": "registry"}] and container["imagePullPolicy"] == "Always"
        assert container["volumeMounts"][0]["mountPath"] == "/work" and (await sh(box, "pwd")).stdout == b"/work\n"

    play(
        work,
        limits=Limits(memory=1 << 30, cpus=1.5),
        user="1000:1001",
        workdir="/work",
        labels={"team": "rl"},
        request_cpus=0.1,
        disk=1000,
        lifetime=600.0,
        service_account="runner",
        runtime_class="gvisor",
        tolerations=[{"key": "spot", "operator": "Exists"}],
        image_pull_secrets=["registry"],
        image_pull_policy="Always",
    )


@pytest.mark.parametrize(
    ("changed", "fault", "words", "kind"),
    [
        (
            {"image": "no-such:1"},
            {},
            r"image `no-such:1`.*cannot be pulled \(ImagePullBackOff\)",
            "sandbox_unavailable",
        ),
        ({"node_selector": {"gpu": "yes"}}, {}, r"no node takes it \(Unschedulable\): 0/1 nodes are", "sandbox_full"),
        ({}, {"quota": 0}, "quota is used up: .*exceeded quota: team", "sandbox_full"),
        ({}, {"never_running": True}, r"not ready within 0.5 s.*ContainerCreating", "sandbox_unavailable"),
        ({}, {"calls": [(403, None)]}, "no pod can be created: please try", "sandbox_unavailable"),
        ({}, {"calls": [(503, None)] * 9}, "no pod can be created: please try", "sandbox_unavailable"),
    ],
    ids=["image", "unschedulable", "quota", "never-running", "forbidden", "unavailable"],
)
def test_why_it_does_not_start(changed: dict[str, Any], fault: dict[str, Any], words: str, kind: str) -> None:
    async def main() -> None:
        async with placed(**{"start_time": 0.5, **changed}) as place:
            for name, value in fault.items():
                setattr(place.cluster.faults, name, value)
            with pytest.raises(SandboxError, match=words) as caught:
                await place.box()
            assert caught.value.kind == kind and not place.cluster.pods

    asyncio.run(main())


def test_what_passes_is_waited_for() -> None:
    """429 with a time to wait, 500 at a creation that was done, watches that end early, are told 410, or break."""

    async def work(place: Place) -> None:
        faults = place.cluster.faults
        faults.calls, faults.start_delay = [(429, "7"), (500, None)], 0.2
        faults.watch_ends_after, faults.watch_gone, faults.watch_garbage = 1, 2, 1
        boxes = await asyncio.gather(*(place.box() for _ in range(3)))
        assert {(await sh(box, "echo here")).stdout for box in boxes} == {b"here\n"}
        assert 3.5 <= max(place.pauses) <= 10.5 and min(place.pauses) < 0.2  # as the server says, and as we do

    play(work)


def _deleted(cluster: Cluster, pod: Pod) -> None:
    cluster.delete("team", pod.name, grace=0)


def _evicted(cluster: Cluster, pod: Pod) -> None:
    cluster.finish(pod, "Evicted", "The node was low on resource: ephemeral-storage.")


def _late(cluster: Cluster, pod: Pod) -> None:
    cluster.finish(pod, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


def _node(cluster: Cluster, pod: Pod) -> None:
    """The node does not answer: nothing closes the connection, the cluster only says so."""
    pod.object["status"]["reason"] = "NodeLost"
    cluster.patch(pod, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})


def _silent(cluster: Cluster, pod: Pod) -> None:
    """The node does not answer, and the cluster has not given it up yet."""
    pod.object["status"]["conditions"][-1]["status"] = "False"
    cluster.patch(pod, {})


def _another(cluster: Cluster, pod: Pod) -> None:
    """Deleted, and made again by somebody under the same name."""
    manifest = json.loads(json.dumps({key: pod.object[key] for key in ("metadata", "spec")}))
    cluster.delete("team", pod.name, grace=0)
    cluster.create("team", manifest)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (_deleted, "its pod is gone|being deleted"),
        (_evicted, r"it was evicted \(Evicted\): The node was low"),
        (_late, r"its lifetime \(`kubernetes.lifetime`\) is over"),
        (_node, "its node was lost"),
        (_silent, "its node does not answer any more"),
        (_another, "its pod is gone|being deleted"),
    ],
)
def test_a_lost_pod(end: Callable[[Cluster, Pod], None], words: str) -> None:
    """Commands that run and those that come say so at once."""

    async def work(place: Place) -> None:
        box = await place.box()
        shell = await box.start(Command(["/bin/sh"]))
        doing = asyncio.create_task(sh(box, "sleep 30"))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        end(place.cluster, only(place.cluster))
        for use in (doing, shell.wait(), sh(box, "true"), box.get("x")):
            with pytest.raises(SandboxError, match=words) as caught:
                await asyncio.wait_for(use, 10)
            assert caught.value.kind == "sandbox_lost"
        assert time.monotonic() - started < 5
        await box.stop()
        for pod in list(place.cluster.pods.values()):
            place.cluster.remove(pod)

    play(work)


def test_memory_ends_the_command_and_then_the_pod() -> None:
    """The command has failed by its own doing; what comes after it finds no sandbox any more."""

    async def work(place: Place) -> None:
        box = await place.box()
        doing = asyncio.create_task(sh(box, "echo begun; sleep 30"))
        await asyncio.sleep(0.3)
        pod = only(place.cluster)
        place.cluster.finish(pod, "", terminated={"reason": "OOMKilled", "exitCode": 137})
        ran = await asyncio.wait_for(doing, 10)
        assert (ran.code, ran.out_of_memory, ran.timed_out, ran.stdout) == (137, True, False, b"begun\n")
        with pytest.raises(SandboxError, match="out of memory"):
            await sh(box, "true")

    play(work)


def test_what_cannot_be_killed_goes_with_its_pod() -> None:
    async def work(place: Place) -> None:
        box = await place.box()
        doing = asyncio.create_task(sh(box, "sleep 30", timeout=0.5))
        await asyncio.sleep(0.2)
        place.cluster.faults.handshake = [400] * 9
        assert (await asyncio.wait_for(doing, 10)).timed_out
        with pytest.raises(SandboxError, match="could not be killed"):
            await sh(box, "true")
        assert not place.cluster.pods

    play(work)


def test_probing() -> None:
    async def main() -> None:
        async with placed() as place:
            (said,) = await place.maker.probe()
            assert NAME in said and "network plugin" in said
            policy = place.cluster.policies["team", NAME]
            assert policy["spec"]["policyTypes"] == ["Egress", "Ingress"] and not place.cluster.pods
            assert await place.maker.probe() == [said]
            policy["spec"]["egress"] = [{}]
            with pytest.raises(SandboxError, match="was changed and lets something through"):
                await place.maker.probe()
            place.cluster.faults.denied = {"create pods", "get pods/exec"}
            with pytest.raises(SandboxError, match="it lacks `create` of pods, `get` of pods/exec; give it the role"):
                await place.maker.probe()
            place.cluster.faults.denied = {"create networkpolicies"}
            place.cluster.policies.clear()
            with pytest.raises(SandboxError, match="`network = false` needs the NetworkPolicy"):
                await place.maker.probe()
        async with placed(network_policy=False) as place:
            (said,) = await place.maker.probe()
            assert "nothing here keeps its pods from the network" in said and not place.cluster.policies
        async with placed(network=True) as place:
            assert await place.maker.probe() == [] and not place.cluster.policies
            place.cluster.token = str(place)
            with pytest.raises(SandboxError, match="it does not know who we are: Unauthorized"):
                await place.maker.probe()
            place.cluster.token = None
            nowhere = KubernetesMaker(OPTIONS, access=Access("http://127.0.0.1:9"), pause=place.maker._pause)
        with pytest.raises(SandboxError, match="cannot be reached") as caught:
            await nowhere.probe()
        assert caught.value.kind == "sandbox_unavailable"
        await nowhere.aclose()

    asyncio.run(main())


def test_pods_of_dead_owners_are_removed() -> None:
    async def work(place: Place) -> None:
        box = await place.box()
        ours = only(place.cluster).object
        mine, boot = owner_key(), owner_key().partition("-")[0]
        namespace = owner_key().split("-")[1]
        for name, owner, until, stays in (
            ("dead-here", f"{boot}-{namespace}-1999999-5", "2099-01-01T00:00:00Z", False),
            ("elsewhere", "0badb007-1-2-3", "2099-01-01T00:00:00Z", True),
            ("silent", "0badb007-1-2-3", "2020-01-01T00:00:00Z", False),
            ("strange", "0badb007-1-2-3", "never", True),
        ):
            manifest = json.loads(json.dumps({"metadata": ours["metadata"], "spec": ours["spec"]}))
            manifest["metadata"] |= {"name": f"{name}-{stays}"}
            manifest["metadata"]["labels"][OWNER] = owner
            manifest["metadata"]["annotations"][ALIVE_UNTIL] = until
            place.cluster.create("team", manifest)
        said = await place.maker.probe()
        assert said[0] == "2 pods that dead runs had left in `team` were removed"
        left = {name for _, name in place.cluster.pods}
        assert left == {box.name, "elsewhere-True", "strange-True"} and mine == owner_key()

    play(work)


def test_the_living_are_renewed() -> None:
    async def main() -> None:
        async with serving() as (cluster, url):
            maker = KubernetesMaker(OPTIONS, access=Access(url, namespace="team"), beat=0.1)
            await maker.make("x")
            pod = only(cluster)
            pod.object["metadata"]["annotations"][ALIVE_UNTIL] = "2020-01-01T00:00:00Z"
            await asyncio.sleep(0.5)
            assert pod.object["metadata"]["annotations"][ALIVE_UNTIL] > "2026"
            await maker.aclose()
            assert not cluster.pods

    asyncio.run(main())


KILLED = """
import asyncio, os, sys
from runner.sandboxes.kubernetes.kubeconfig import Access
from runner.sandboxes.kubernetes.lookout import Followed
from runner.sandboxes.kubernetes.maker import RIGHTS, KubernetesMaker
from runner.sandboxes.kubernetes.pods import PodOptions
async def main():
    maker = KubernetesMaker(PodOptions("busybox"), access=Access(sys.argv[1], namespace="team"))
    await maker.make("x")
    print("made", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_after_kill_9_the_next_start_removes_them() -> None:
    async def work(place: Place) -> None:
        killed = subprocess.Popen([sys.executable, "-c", KILLED, place.url], stdout=subprocess.PIPE)
        assert killed.stdout is not None and await asyncio.to_thread(killed.stdout.readline) == b"made\n"
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        killed.stdout.close()
        assert len(place.cluster.pods) == 1  # nobody has removed it; its lifetime would
        assert only(place.cluster).object["spec"]["activeDeadlineSeconds"] == 21600
        assert "1 pods that dead runs" in (await place.maker.probe())[0] and not place.cluster.pods

    play(work)


def test_a_making_that_is_given_up_leaves_nothing() -> None:
    async def work(place: Place) -> None:
        place.cluster.faults.never_running = True
        for seconds in (0.002, 0.3):
            making = asyncio.create_task(place.box())
            await asyncio.sleep(seconds)
            making.cancel()
            with pytest.raises(asyncio.CancelledError):
                await making
        assert not place.cluster.pods

    play(work)


def test_words_for_what_the_cluster_says(tmp_path: Path) -> None:
    def told(**status: Any) -> Any:
        return standing({"metadata": {}, "status": status})

    followed = Followed("p", "1")
    followed.saw({"metadata": {"uid": "2"}, "status": {}})
    assert followed.over == "its pod is gone"
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    running = {"containerStatuses": [{"state": {"running": {}}}]}
    assert told(phase="Running", **ready, **running).ready
    assert not told(phase="Running", **running).ready and "not ready" in told(phase="Running", **running).waiting
    assert "ended (Succeeded)" in told(phase="Succeeded").over
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "m"}}}]}
    assert told(phase="Pending", **waiting).over == "its container cannot be configured (CreateContainerConfigError): m"
    ended = {"containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}
    assert "ended with 1 (Error)" in told(phase="Running", **ended).over
    assert label("-Work, ä 1!-") == "Work----1" and len(label("x" * 99)) == 63
    assert PodOptions("x").lifetime == 21600.0


def test_the_role_of_the_page_is_what_is_asked_for() -> None:
    import yaml

    text = (Path(__file__).parents[3] / "docs" / "sandboxes.md").read_text()
    role = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    given = {
        (verb, *resource.partition("/")[::2])
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    network = {("get", "networkpolicies", ""), ("create", "networkpolicies", "")}
    assert given == {*RIGHTS, *network}
