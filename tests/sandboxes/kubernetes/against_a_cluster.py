"""Runs the cases of the tests against a real cluster, which no machine of ours has at hand:

    python -m tests.sandboxes.kubernetes.against_a_cluster --namespace rl [--context NAME] [--kubeconfig FILE]
        [--image python:3.12-slim] [--user 1000] [--only WORD]

from the folder of the project. The account needs the role of docs/sandboxes.md. Each case gets a pod of its own, and
nothing is left. One line for each case; the exit code is 1 when one has failed.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api
from runner.sandboxes.kubernetes.connection import Connection
from runner.sandboxes.kubernetes.kubeconfig import find_access
from runner.sandboxes.kubernetes.maker import KubernetesMaker
from runner.sandboxes.kubernetes.pods import PodOptions
from runner.sandboxes.sandbox import Sandbox
from tests.sandboxes.conftest import sh
from tests.sandboxes.kubernetes.cases import CASES


def asked() -> PodOptions:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("namespace", "context", "kubeconfig", "user"):
        words.add_argument(f"--{name}")
    words.add_argument("--image", default="python:3.12-slim")
    words.add_argument("--only", default="")
    given = words.parse_args()
    asked.only = given.only  # type: ignore[attr-defined]
    return PodOptions(
        image=given.image,
        section="against-a-cluster",
        user=given.user,
        namespace=given.namespace,
        context=given.context,
        kubeconfig=given.kubeconfig,
        lifetime=1800.0,
    )


async def no_such_image(options: PodOptions) -> None:
    maker = KubernetesMaker(replace(options, image="registry.invalid/no-such:1", start_time=120.0))
    try:
        await maker.make("no-such-image")
    except SandboxError as error:
        assert "cannot be pulled" in str(error), error
    else:
        raise AssertionError("a pod of an image that is not there has started")
    finally:
        await maker.aclose()


async def no_such_node(options: PodOptions) -> None:
    maker = KubernetesMaker(replace(options, node_selector={"osmosis-run/no-such": "label"}, start_time=15.0))
    try:
        await maker.make("no-such-node")
    except SandboxError as error:
        assert error.kind == "sandbox_full" and "no node takes it" in str(error), error
    else:
        raise AssertionError("a pod was scheduled where no node has its label")
    finally:
        await maker.aclose()


async def deleted_by_somebody(options: PodOptions) -> None:
    maker = KubernetesMaker(options)
    access = find_access(options.kubeconfig, options.context)
    connection = Connection(access)
    try:
        box = await maker.make("deleted")
        doing = asyncio.create_task(sh(box, "sleep 60", timeout=90.0))
        await asyncio.sleep(1.0)
        started = time.monotonic()
        await Api(connection, options.namespace or access.namespace).delete_pod(box.name, None)
        try:
            ran = await doing
        except SandboxError as error:
            assert error.kind == "sandbox_lost" and time.monotonic() - started < 10, error
        else:
            raise AssertionError(f"a command in a pod that is gone has ended with {ran.code}")
    finally:
        await connection.aclose()
        await maker.aclose()


async def main() -> int:
    options, failed = asked(), 0
    maker = KubernetesMaker(options)

    async def on_a_pod(case: Callable[[Sandbox], Awaitable[None]]) -> None:
        box = await maker.make(case.__name__)
        try:
            await case(box)
        finally:
            await box.stop()

    async def probe() -> None:
        for said in await maker.probe():
            print(f"      {said}")

    todo: list[tuple[str, Callable[[], Awaitable[None]]]] = [("probe", probe)]
    todo += [(case.__name__, lambda case=case: on_a_pod(case)) for case in CASES]  # type: ignore[misc]
    for whole in (no_such_image, no_such_node, deleted_by_somebody):
        todo.append((whole.__name__, lambda whole=whole: whole(options)))  # type: ignore[misc]
    try:
        for name, do in todo:
            if asked.only not in name:  # type: ignore[attr-defined]
                continue
            started = time.monotonic()
            try:
                await do()
                print(f"ok    {name} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception as error:
                failed += 1
                print(f"WRONG {name}: {type(error).__name__}: {error}", flush=True)
                traceback.print_exc()
    finally:
        await maker.aclose()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
