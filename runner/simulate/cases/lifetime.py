"""Cases about the server's own life: killed, started again, asked to end."""

from __future__ import annotations

import asyncio

from runner.simulate.bench import Bench, Case
from runner.simulate.history import COMPLETION, GRADER
from runner.simulate.starts import AGENT_LOOP, DIALECTS, MULTI_SAMPLE, SINGLE_SAMPLE

_ALONE = ("serve.drain=1s",)


async def killed_while_playing(bench: Bench, dialect: str) -> None:
    server = bench.own_server()
    histories = [await bench.start(bench.ask(dialect), script={"chat": ["chat-stall"]}) for _ in range(4)]
    await bench.quiet(0.5)
    bench.ledger.killed()
    await server.kill()
    await server.restart()
    for history in histories:
        await bench.verdict(history)
    await bench.quiet()


async def killed_while_owing(bench: Bench, dialect: str) -> None:
    """A callback that nobody has acknowledged yet comes again after a restart, with the same body."""
    server = bench.own_server()
    channel = COMPLETION if dialect == AGENT_LOOP else GRADER
    history = await bench.play(bench.ask(dialect), script={channel: ["callback-500"] * 3})
    bench.ledger.killed()
    await server.kill()
    tries = history.channels[channel].tries
    history.script[channel] = []
    await server.restart()
    for _ in range(300):
        if history.channels[channel].acknowledged is not None:
            break
        await bench.quiet(0.1)
    bench.want(history.channels[channel].tries > tries, f"the {channel} did not come again after the restart")
    await bench.quiet()


async def killed_when_done(bench: Bench, dialect: str) -> None:
    """What was acknowledged before stays so: nothing comes again, and a repeated start is known."""
    server = bench.own_server()
    bench.plain_agent()
    history = await bench.play(bench.ask(dialect))
    await bench.quiet(0.5)
    tries = {name: channel.tries for name, channel in history.channels.items()}
    await server.kill()
    await server.restart()
    await bench.post(history)
    await bench.quiet(2.0)
    came = {name: channel.tries for name, channel in history.channels.items()}
    bench.want(came == tries, f"callbacks before {tries}, after the restart {came}")
    bench.want(history.first_turns == 1, f"it was played {history.first_turns} times")


async def stopped(bench: Bench, dialect: str) -> None:
    """Asked to end, it reports what it cannot finish."""
    server = bench.own_server()
    history = await bench.start(bench.ask(dialect), script={"chat": ["chat-stall"] * 20})
    await bench.quiet(0.5)
    ended = asyncio.ensure_future(server.stop())
    try:
        await bench.verdict(history, 15.0)
    finally:
        code = await ended
        bench.ledger.killed()
        history.script["chat"] = []
        await server.restart()
    assert history.verdict is not None
    bench.want(history.verdict.status != "success", "a rollout that could not be finished is a success")
    bench.want(code in (0, 3), f"it ended with exit code {code}")
    await bench.quiet(2.0)


async def stopped_when_idle(bench: Bench, dialect: str) -> None:
    server = bench.own_server()
    begun = asyncio.get_running_loop().time()
    code = await server.stop()
    seconds = asyncio.get_running_loop().time() - begun
    await server.restart()
    bench.want(code == 0, f"it ended with exit code {code}")
    bench.want(seconds < 5.0, f"with nothing to do it took {seconds:.1f} s to end")


LIFETIME: tuple[Case, ...] = (
    Case("killed-playing", (13,), "play on after kill -9", killed_while_playing, DIALECTS, _ALONE, alone=True),
    Case("killed-owing", (1, 13), "deliver after kill -9 what it owes", killed_while_owing, DIALECTS, _ALONE,
         alone=True),
    Case("killed-done", (2, 49), "remember after kill -9 what is done", killed_when_done, DIALECTS, _ALONE,
         alone=True),
    Case("stopped-playing", (14,), "report what it cannot finish when it is asked to end", stopped,
         (AGENT_LOOP, MULTI_SAMPLE, SINGLE_SAMPLE), _ALONE, alone=True),
    Case("stopped-idle", (), "end at once with nothing to do", stopped_when_idle, (SINGLE_SAMPLE,), _ALONE,
         alone=True),
)  # fmt: skip
