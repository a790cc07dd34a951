"""Commands and files in pods, over both protocols, when all is well and with each fault that a connection can have."""

from __future__ import annotations

import asyncio
import time

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.channels import Ended, Status, frames
from tests.sandboxes.conftest import sh
from tests.sandboxes.kubernetes.cases import BY_PROTOCOL, CASES, Case
from tests.sandboxes.kubernetes.conftest import Place, play

ALL = [*((case, False) for case in CASES), *((case, True) for case in BY_PROTOCOL)]


@pytest.mark.parametrize(("case", "v4"), ALL, ids=[f"{case.__name__}-v{4 if v4 else 5}" for case, v4 in ALL])
def test_case(case: Case, v4: bool) -> None:
    async def work(place: Place) -> None:
        await case(await place.box())

    play(work, v4=v4)


def test_every_byte_a_frame(v4: bool) -> None:
    async def work(place: Place) -> None:
        box = await place.box()
        place.cluster.faults.split = True
        ran = await sh(box, "printf 'é€𝄞'; printf 'ß' >&2; exit 9")
        assert (ran.code, ran.stdout.decode(), ran.stderr.decode()) == (9, "é€𝄞", "ß")

    play(work, v4=v4)


def test_output_after_the_status_is_heard(v4: bool) -> None:
    async def work(place: Place) -> None:
        box = await place.box()
        place.cluster.faults.status_first = True
        ran = await sh(box, "echo late; exit 5")
        assert (ran.code, ran.stdout) == (5, b"late\n")

    play(work, v4=v4)


@pytest.mark.parametrize(("fault", "v4"), [("no_status", False), ("drop", True)])
def test_nobody_knows_the_code(fault: str, v4: bool) -> None:
    """That is a failure of the sandbox, never an exit code, and never 0; and the command is killed."""

    async def work(place: Place) -> None:
        box, faults = await place.box(), place.cluster.faults
        faults.no_status, faults.drop_after = fault == "no_status", 1000 if fault == "drop" else None
        text = (
            "echo done"
            if fault == "no_status"
            else "head -c 5000 /dev/zero; while :; do echo x >> on; sleep 0.02; done"
        )
        started = time.monotonic()
        with pytest.raises(SandboxError, match="ended without its exit code") as caught:
            await sh(box, text)
        assert caught.value.kind == "sandbox_lost" and time.monotonic() - started < 6
        faults.no_status, faults.drop_after = False, None
        if fault == "drop":
            await asyncio.sleep(0.5)
            before = len(await box.get("on"))
            await asyncio.sleep(0.2)
            assert len(await box.get("on")) == before > 0

    play(work, v4=v4)


@pytest.mark.parametrize(
    ("refusals", "kind"),
    [
        ([500, 500], None),
        ([429], None),
        ([403], "sandbox_unavailable"),
        ([404], "sandbox_lost"),
        ([500] * 9, "sandbox_lost"),
    ],
)
def test_refused_handshakes(refusals: list[int], kind: str | None) -> None:
    """What passes is tried again, since nothing was started; the words of the server are kept."""

    async def work(place: Place) -> None:
        box = await place.box()
        place.cluster.faults.handshake = list(refusals)
        if kind is None:
            assert (await sh(box, "echo once >> times; wc -l < times")).stdout.strip() == b"1"
            return
        with pytest.raises(SandboxError, match=f"refused with {refusals[0]}, as asked") as caught:
            await sh(box, "true")
        assert caught.value.kind == kind

    play(work)


def test_an_image_without_a_shell(v4: bool) -> None:
    async def work(place: Place) -> None:
        box = await place.box()
        pod = next(iter(place.cluster.pods.values()))
        assert pod.container is not None
        pod.container.refuses = "/bin/sh"
        with pytest.raises(SandboxError, match="cannot start /bin/sh") as caught:
            await sh(box, "true")
        assert caught.value.kind == "sandbox_unavailable"

    play(work, v4=v4)


def test_secrets_are_in_no_address() -> None:
    """Servers write the words of a request to their audit logs, and anybody who lists pods reads what they are."""

    async def work(place: Place) -> None:
        box = await place.box()
        ran = await sh(box, "echo $TOKEN $OTHER", env={"OTHER": "s3cond"})
        assert ran.stdout == b"s3cret s3cond\n"
        assert not [line for line in place.cluster.requests if "s3c" in line]
        assert "s3c" not in str([pod.object for pod in place.cluster.pods.values()])

    play(work, env={"TOKEN": "s3cret"})


def test_channels() -> None:
    data = bytes(600_000)
    cut = list(frames(data))
    assert b"".join(each[1:] for each in cut) == data and {each[0] for each in cut} == {0}
    assert max(map(len, cut)) <= 1 << 20

    def heard(*pieces: bytes) -> Ended | None:
        status = Status()
        for piece in pieces:
            status.add(piece)
        return status.ended

    ok = b'{"metadata":{},"status":"Success"}'
    causes = b'{"causes":[{"reason":"ExitCode","message":"7"}]}'
    seven = b'{"status":"Failure","reason":"NonZeroExitCode","details":%b}' % causes
    assert heard(ok) == heard(*(bytes([each]) for each in ok)) == Ended(0)
    assert heard(seven) == heard(seven[:60], seven[60:]) == Ended(7)
    for text in (b"", ok[:-1], b"null", b"[]", b"{}x"):
        assert heard(text) is None
    for wrong in (
        seven.replace(b'"7"', b'"x"'),
        seven.replace(b"ExitCode", b"Other"),
        b'{"status":"Failure","reason":"InternalError","message":"no"}',
        b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":7}}',
        b"{}",
    ):
        found = heard(wrong)
        assert found is not None and found.code is None and found.trouble
