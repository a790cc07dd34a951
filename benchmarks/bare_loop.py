"""The baseline: a bare aiohttp loop that makes the same two calls per conversation and nothing else.

Run as `python bare_loop.py BASE_URL CONVERSATIONS IN_FLIGHT`; prints conversations per second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import aiohttp

TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}},
}


async def conversation(session: aiohttp.ClientSession, url: str, number: int) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": f"What is {number} plus 1?"}]
    for _ in range(2):
        body = json.dumps({"model": "m", "messages": messages, "tools": [TOOL]}).encode()
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
            message = json.loads(await response.read())["choices"][0]["message"]
        messages.append(message)
        for call in message.get("tool_calls") or ():
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "2"})


async def main(base: str, conversations: int, in_flight: int) -> float:
    numbers = iter(range(conversations))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            for number in numbers:
                await conversation(session, f"{base}/chat/completions", number)

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(in_flight)))
        return conversations / (time.perf_counter() - started)


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
