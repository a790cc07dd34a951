"""A start that was handed over to a sibling which heard it and then said nothing more: never two rollouts of one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.serve.admission import Answer
from runner.serve.dialects.single_sample import SingleSample
from runner.serve.start import Refused
from runner.serve.workers.board import Board
from runner.serve.workers.crew import Crew
from runner.serve.workers.membership import Membership


class Engine:
    """Remembers what it was asked to play."""

    draining = False

    def __init__(self) -> None:
        self.started: list[Mapping[str, Any]] = []

    async def start(self, dialect: Any, body: Mapping[str, Any], raw: bytes, headers: Any = ()) -> Answer:
        self.started.append(body)
        return Answer(202, b"{}")


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """It has heard, perhaps accepted, and is gone."""
    await reader.read(8)
    writer.close()


@pytest.mark.parametrize(("body", "plays"), [({"rollout_id": "r"}, True), ({}, False), ({"rollout_id": None}, False)])
def test_only_what_is_known_again_is_played_here_instead(tmp_path: Path, body: dict[str, Any], plays: bool) -> None:
    async def test() -> None:
        engine: Any = Engine()
        crew = Crew(Membership(0, 2, str(tmp_path), (), 0, 0, 0), 8, 8)
        crew.join(engine, None, {}, True)  # type: ignore[arg-type]
        others = Board(tmp_path / "board", 2)
        others.hold(0, 5)
        others.open(1)
        sibling = await asyncio.start_unix_server(hangs_up, tmp_path / "1.sock")
        try:
            if plays:
                assert (await crew.start(SingleSample(), body, b"{}")).status == 202
            else:
                with pytest.raises(Refused) as refused:
                    await crew.start(SingleSample(), body, b"{}")
                assert refused.value.status == 503
            assert engine.started == ([body] if plays else [])
        finally:
            await crew.aclose()
            sibling.close()
            others.close()

    asyncio.run(test())
