"""Ten thousand rollouts' own models in flight at once on one slow origin: what each costs besides its socket.

Every model has its own path, key and headers, as a controller hands them out; all share one `Connections`. Memory per
model in flight is the peak with 9,000 less the peak with 1,000, divided by the difference, in processes of their own;
"bare" is the same posts through `Connections.post`, that is, sockets and requests without models.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import measure, model_server, sound, write_report

MANY, FEW = 9_000, 1_000
LATENCY = 5.0
MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "What is 2 + 2? " * 10}]
MADE = 5_000


@dataclass(frozen=True)
class Chat:
    url: str
    key: str | None
    headers: dict[str, str]
    extra: dict[str, Any]
    model: str = "default"
    tools: bool = False
    stream: bool = field(default=False)


def chat(base_url: str, number: int) -> Chat:
    return Chat(
        f"{base_url}/rollouts/{number:06}/chat/completions",
        f"key-{number:06}",
        {"x-rollout-id": f"rollout-{number:06}", "x-sample-id": "main"},
        {"rollout_id": f"rollout-{number:06}"},
    )


async def fly(what: str, base_url: str, count: int) -> None:
    """`count` calls at once; the process's peak is what is measured from outside."""
    from runner.models.chat import ChatModels
    from runner.models.connections import Connections
    from runner.records.completion import Caller, Sampling

    connections = Connections()
    models = ChatModels(connections=connections, timeout=120.0)
    body = json.dumps({"model": "default", "messages": MESSAGES}).encode()

    async def model(number: int) -> None:
        await models.model_for(chat(base_url, number)).complete(MESSAGES, (), Sampling(), Caller("r"))

    async def bare(number: int) -> None:
        one = chat(base_url, number)
        headers = {"authorization": f"Bearer {one.key}", **one.headers}
        await connections.post(one.url, headers, body, timeout=120.0, max_body=1 << 20)

    await asyncio.gather(*[(model if what == "models" else bare)(number) for number in range(count)])
    await connections.aclose()


async def make() -> dict[str, float]:
    """Microseconds and bytes of a model that nobody has asked yet, its url, key and headers included."""
    from runner.models.chat import ChatModels
    from runner.models.connections import Connections

    models = ChatModels(connections=Connections())
    chats = [chat("http://controller:9000", number) for number in range(MADE)]
    took = []
    for _ in range(5):
        started = time.perf_counter()
        made = [models.model_for(each) for each in chats]
        took.append((time.perf_counter() - started) / MADE)
    del made
    gc.collect()
    tracemalloc.start()
    made = [models.model_for(each) for each in chats]
    size = tracemalloc.get_traced_memory()[0] / len(made)
    return {"us": min(took) * 1e6, "bytes": size}


def main() -> None:
    if sys.argv[1:2] == ["make"]:
        print(json.dumps(asyncio.run(make())))
        return
    if sys.argv[1:]:
        what, base_url, count = sys.argv[1:]
        asyncio.run(fly(what, base_url, int(count)))
        return
    script = str(Path(__file__))
    made = json.loads(sound(measure([sys.executable, script, "make"])).out)
    each, wall = {}, {}
    with model_server("--fixed", "four", "--latency", str(LATENCY)) as url:
        for what in ("bare", "models"):
            few, many = (sound(measure([sys.executable, script, what, url, str(count)])) for count in (FEW, MANY))
            each[what] = (many.peak - few.peak) / (MANY - FEW)
            wall[what] = many.wall
    write_report(
        "chat_models",
        {
            "models in flight on one origin": MANY,
            "making one (us)": round(made["us"], 1),
            "wanted (us)": "< 30",
            "memory of one that was made (KB)": round(made["bytes"] / 1000, 2),
            "wanted (KB)": "< 6",
            "in flight: memory of each, task and socket included (KB)": round(each["models"] / 1000, 1),
            "in flight: the same without models (KB)": round(each["bare"] / 1000, 1),
            "seconds for all of them, of which the server sleeps 5": round(wall["models"], 1),
            "the same without models": round(wall["bare"], 1),
        },
    )
    if made["us"] > 30 or made["bytes"] > 6000:
        raise SystemExit("over the limit")


if __name__ == "__main__":
    main()
