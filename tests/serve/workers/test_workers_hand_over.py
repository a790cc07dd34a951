"""A start that was handed over to a sibling which heard it and then said nothing more: never two rollouts of one."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from runner.serve.dialects.single_sample import SingleSample
from runner.serve.start import Refused
from runner.serve.workers.board import Board
from runner.serve.workers.crew import Crew
from runner.serve.workers.membership import Membership
from runner.store.outbox import Accepted, Outbox


def sibling_that(accepts: bool, outbox: Outbox) -> Any:
    """It hears a start, accepts it or not, and is gone without a word."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, body = struct.unpack("!II", await reader.readexactly(8))
        asked, raw = json.loads(await reader.readexactly(head)), await reader.readexactly(body)
        name = json.loads(raw).get("rollout_id")
        if accepts:
            keys = (f"/rollout id:{name}",) if name else ()
            held = Accepted(asked["attempt_id"], name or "ours", asked["dialect"], keys, raw, time.time(), worker=1)
            assert await outbox.accept(held) is None
        writer.close()

    return serve


@pytest.mark.parametrize("dedupe", ["join", "reject"])
@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("name", ["r", None])
def test_a_sibling_that_hears_a_start_and_is_gone(
    stage: Any, tmp_path: Path, name: str | None, accepted: bool, dedupe: str
) -> None:
    """The first start is answered 202 if somebody has it on disk, and 503 only if that cannot be known."""

    async def test() -> None:
        never = asyncio.Event()
        controller = await stage.controller(chat=lambda seen: never.wait())
        async with stage.serving(serve=f'dedupe = "{dedupe}"') as server:
            house = server.house
            crew = Crew(Membership(0, 2, str(tmp_path), (), 0, 0, 0), 8, 8)
            crew.join(house.engine, house.outbox, {}, True)
            others = Board(tmp_path / "board", 2)
            others.hold(0, 5)
            others.open(1)
            sibling = await asyncio.start_unix_server(sibling_that(accepted, house.outbox), tmp_path / "1.sock")
            body = controller.start_of(name)[1]
            try:
                started = crew.start(SingleSample(), body, json.dumps(body).encode())
                if name or accepted:
                    assert (await started).status == 202
                else:
                    with pytest.raises(Refused) as refused:
                        await started
                    assert refused.value.status == 503
                assert house.engine.load().held == (1 if name and not accepted else 0)  # it is played once, somewhere
                if name:  # the second one is a repeated start, wherever it comes in
                    again = await server.start(controller.start_of(name))
                    assert again.status == (202 if dedupe == "join" else 409)
            finally:
                await crew.aclose()
                sibling.close()
                others.close()

    stage.run(test)
