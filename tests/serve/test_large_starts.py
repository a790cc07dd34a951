"""A start of tens of MiB: accepted as it is, and nobody else waits for it to be read."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from runner.serve.dialects.single_sample import SingleSample
from runner.serve.json_text import LARGE, loads


def large(size: int) -> dict[str, Any]:
    """Metadata of about so many bytes, of all kinds."""
    count = size // 150
    return {
        "ground_truth": "4",
        "texts": [{"content": "x" * 100, "at": {"n": 1}} for _ in range(count)],
        "numbers": list(range(count)),
        "floats": [0.5] * count,
        "words": ["abc"] * count,
    }


@pytest.mark.parametrize("value", [{"a": [1, -2.5, 1e400, True, None, {"b": 12345678901234567890}]}, [float("nan")]])
def test_a_large_body_is_read_as_a_small_one(value: Any) -> None:
    raw = json.dumps(value).encode()
    assert repr(loads(raw + b" " * LARGE)) == repr(loads(raw)) == repr(json.loads(raw))


def test_others_are_answered_while_a_large_start_is_read(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        metadata = large(12 * 2**20)
        async with stage.serving(serve='max_metadata = "64MiB"') as server:
            path, body = controller.start_of("r", metadata=metadata)
            raw = json.dumps(body).encode()
            assert len(raw) > 8 * 2**20
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(raw)}\r\n\r\n"
            writer.write(head.encode() + raw)
            await writer.drain()
            answer = asyncio.ensure_future(reader.read())
            most = 0.0
            while not answer.done():
                began = time.thread_time()
                await asyncio.sleep(0.001)
                most = max(most, time.thread_time() - began)
            assert b" 202 " in (await answer).split(b"\r\n")[0]
            writer.close()
            began = time.thread_time()
            SingleSample().parse(json.loads(raw), "")
            # What this thread works at a stretch, while the start is read, is little beside reading it.
            assert most < 0.5 * (time.thread_time() - began), most
            await server.quiet(20)
            assert controller.told("r")[-1] == ("grader", "success", 1.0)

    stage.run(test)
