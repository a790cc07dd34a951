"""Cases about starts: what is accepted, what a repetition means, whose id it is."""

from __future__ import annotations

import asyncio

from runner.simulate.bench import Bench, Case, value_of
from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE, SINGLE_SAMPLE

_ROLLOUT = (MULTI_SAMPLE, SINGLE_SAMPLE)
_HOLD = {"chat": ["chat-slow"]}


async def plays(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect))
    bench.want(history.status == 202 or dialect == MULTI_SAMPLE, f"the start was answered {history.status}")
    await bench.quiet()


async def unknown_fields(bench: Bench, dialect: str) -> None:
    await bench.play(bench.ask(dialect, extra={"a_field_of_tomorrow": {"x": 1}, "tool_server_url": None}))


async def empty_prompt(bench: Bench, dialect: str) -> None:
    key = "messages" if dialect == AGENT_LOOP else "initial_messages"
    await bench.play(bench.ask(dialect, extra={key: []}, prompt=()))


async def chat_before_answer(bench: Bench, dialect: str) -> None:
    """The history is open before the start is posted; a chat call may be faster than the answer."""
    histories = await asyncio.gather(*(bench.play(bench.ask(dialect)) for _ in range(4)))
    bench.want(len({each.rollout_id for each in histories}) == 4, "rollouts were mixed up")


async def repeated_at_once(bench: Bench, dialect: str) -> None:
    bench.plain_agent()
    history = bench.expect(bench.ask(dialect), script=_HOLD)
    answers = await asyncio.gather(bench.post(history), bench.post(history), bench.post(history))
    bench.want(all(each.status in (200, 202) for each in answers), f"answered {[each.status for each in answers]}")
    await bench.verdict(history)
    await bench.quiet()
    bench.want(history.first_turns == 1, f"three starts led to {history.first_turns} plays")


async def repeated_later(bench: Bench, dialect: str) -> None:
    bench.plain_agent()
    history = await bench.play(bench.ask(dialect))
    await bench.post(history)
    await bench.quiet()
    bench.want(history.first_turns == 1, f"two starts led to {history.first_turns} plays")


async def joined_by_key(bench: Bench, dialect: str) -> None:
    leader = bench.ask(dialect)
    key = {"idempotency_key": f"key-{leader.rollout_id}"}
    history = await bench.start(bench.ask(dialect, extra=key))
    other = bench.ask(dialect, extra=key)
    answer = await bench.client.post(other.path, other.encoded(bench.controller.url))
    bench.want(answer.status == 202, f"the repetition was answered {answer.status}")
    named = value_of(answer).get("rollout_id")
    bench.want(named == history.rollout_id, f"it names {named}, not the first one's {history.rollout_id}")
    await bench.verdict(history)


async def key_is_no_id(bench: Bench, dialect: str) -> None:
    first = await bench.start(bench.ask(dialect))
    second = await bench.start(bench.ask(dialect, extra={"idempotency_key": first.rollout_id}))
    await bench.verdict(first)
    await bench.verdict(second)


async def empty_key(bench: Bench, dialect: str) -> None:
    histories = [await bench.start(bench.ask(dialect, extra={"idempotency_key": ""})) for _ in range(2)]
    for history in histories:
        await bench.verdict(history)


async def odd_ids(bench: Bench, dialect: str) -> None:
    mark = bench.ask(dialect).rollout_id
    for name in (f"../../{mark}", f"{mark}/a b/é😀", f"..{mark}%2F"):
        await bench.play(bench.ask(dialect, rollout_id=name))


async def odd_segments(bench: Bench, dialect: str) -> None:
    mark = bench.ask(dialect).rollout_id
    for name in (f"{mark} é😀", f"{mark}%2F..", f"{mark}?x#y"):
        await bench.play(bench.ask(dialect, rollout_id=name))


async def no_segment(bench: Bench, dialect: str) -> None:
    for name in ("", ".", "..", "a/b", "a\\b", "a\u0000b"):
        ask = bench.ask(dialect, extra={"rollout_id": name})
        await bench.refuses(ask, 422, why=f"the id {name!r} is no path segment")


async def long_id(bench: Bench, dialect: str) -> None:
    ask = bench.ask(dialect, extra={"rollout_id": "x" * 5000})
    await bench.refuses(ask, 422, why="an id of 5,000 characters")


async def blank_id(bench: Bench, dialect: str) -> None:
    for name in ("", "  \t"):
        await bench.refuses(bench.ask(dialect, extra={"rollout_id": name}), 422, why=f"the id {name!r}")


async def no_id(bench: Bench, dialect: str) -> None:
    ask = bench.ask(dialect, extra={"rollout_id": None})
    history = bench.expect(ask)
    await bench.post(history)
    bench.want(history.accepted, f"a start without an id was answered {history.status}")
    await bench.verdict(history)


async def label_presence(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect, label="", metadata={}))
    first = history.channels["grader"].first
    bench.want(first is not None, 'a label of "" leads to no grade')


async def prompt_surrogate(bench: Bench, dialect: str) -> None:
    key = "messages" if dialect == AGENT_LOOP else "initial_messages"
    ask = bench.ask(dialect, extra={key: [{"role": "user", "content": "half a pair: @@"}]})
    history = bench.expect(ask)
    bench.ledger.posted(history)
    body = ask.encoded(bench.controller.url).replace(b"@@", b"\\ud83d")
    answer = await bench.client.send("POST", ask.path, body)
    bench.want(answer.status in (200, 202, 422), f"answered {answer.status}")
    if answer.status != 422:
        bench.ledger.answered(history, answer.status, answer.headers, answer.body)
        await bench.verdict(history)


STARTING: tuple[Case, ...] = (
    Case("start-plays", (), "play a start to its verdict", plays),
    Case("start-unknown-fields", (), "ignore fields that it does not know", unknown_fields),
    Case("start-empty-prompt", (38,), "accept an empty prompt and say how it went", empty_prompt),
    Case("start-chat-first", (84,), "keep rollouts apart that start together", chat_before_answer),
    Case("start-repeated-at-once", (44,), "play a start once that comes three times at once", repeated_at_once),
    Case("start-repeated-later", (44, 49), "answer a start again that it has played", repeated_later),
    Case("start-key-joins", (45, 48), "join starts by their idempotency key", joined_by_key, (AGENT_LOOP,)),
    Case("start-key-is-no-id", (46,), "not take an idempotency key for a rollout id", key_is_no_id, (AGENT_LOOP,)),
    Case("start-key-empty", (47,), "take an empty idempotency key for none", empty_key, (AGENT_LOOP,)),
    Case("id-any-text", (41, 42), "play any id, and never use it as a path", odd_ids, (AGENT_LOOP,)),
    Case("id-any-segment", (41, 90), "play an id with blanks, signs and emoji", odd_segments, (SINGLE_SAMPLE,)),
    Case("id-no-segment", (41,), "refuse an id that is no path segment", no_segment, (SINGLE_SAMPLE,)),
    Case("id-too-long", (41,), "refuse an id without bounds", long_id, (AGENT_LOOP, SINGLE_SAMPLE)),
    Case("id-blank", (41,), "refuse a blank id", blank_id, (AGENT_LOOP,)),
    Case("id-absent", (12,), "call a rollout without an id null, or by its address", no_id, (SINGLE_SAMPLE,)),
    Case("label-presence", (37,), 'count a label of "" as one', label_presence, _ROLLOUT),
    Case("text-surrogate-in-prompt", (30,), "survive half a surrogate pair in a prompt", prompt_surrogate),
)
