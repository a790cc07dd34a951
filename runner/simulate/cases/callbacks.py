"""Cases about callbacks: how often, in which order, after which answers, and never twice with two meanings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runner.simulate.bench import Bench, Case
from runner.simulate.history import COMPLETION, GRADER, History
from runner.simulate.starts import AGENT_LOOP, DIALECTS, MULTI_SAMPLE, SINGLE_SAMPLE

_ROLLOUT = (MULTI_SAMPLE, SINGLE_SAMPLE)


async def _through(bench: Bench, dialect: str, channel: str, faults: Sequence[str]) -> History:
    """A rollout whose callback meets faults first; then it must be acknowledged, once."""
    history = await bench.play(bench.ask(dialect), script={channel: faults})
    await _acknowledged(bench, history)
    tries = history.channels[channel].tries
    bench.want(tries == len(faults) + 1, f"the {channel} came {tries} times, not {len(faults) + 1}")
    await bench.quiet(0.7)
    return history


async def _acknowledged(bench: Bench, history: History) -> None:
    """Until everything owed is acknowledged: a verdict may come before its acknowledgement."""
    channels = [COMPLETION] if history.dialect == AGENT_LOOP or not history.ask.graded else [COMPLETION, GRADER]
    for _ in range(400):
        if all(history.channels[each].acknowledged is not None for each in channels):
            return
        await bench.quiet(0.05)
    bench.want(False, f"not acknowledged after 20 s: {', '.join(channels)}")


def _retried(channel: str, *faults: str) -> Callable[[Bench, str], Any]:
    async def play(bench: Bench, dialect: str) -> None:
        await _through(bench, dialect, channel, faults)

    return play


def _taken(channel: str, ack: str) -> Callable[[Bench, str], Any]:
    """An odd acknowledgement is one: nothing comes again."""

    async def play(bench: Bench, dialect: str) -> None:
        history = await bench.play(bench.ask(dialect), script={channel: [ack]})
        await bench.quiet(2.0)
        tries = history.channels[channel].tries
        bench.want(tries == 1, f"the {channel} came {tries} times")

    return play


async def redirected(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect), script={COMPLETION: ["callback-307"]})
    await bench.quiet()
    bench.want(not bench.ledger.counts["redirect-followed"], "a redirect was followed")
    bench.want(history.verdict is not None, "no verdict")


async def completion_refused(bench: Bench, dialect: str) -> None:
    """A completion that nobody wants changes neither the verdict nor its grade."""
    plain = await bench.play(bench.ask(dialect))
    history = await bench.play(bench.ask(dialect), script={COMPLETION: ["callback-404"]})
    ours, theirs = plain.verdict, history.verdict
    assert ours is not None and theirs is not None
    bench.want(ours.value[:2] == theirs.value[:2], f"else {ours.status} {ours.reward}, now {theirs.status}")
    await bench.quiet(2.0)


async def grade_refused(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect), script={GRADER: ["callback-400"]})
    await bench.quiet(2.5)
    bench.want(history.channels[COMPLETION].tries == 1, "the completion came again, and it was acknowledged")


async def stalled(bench: Bench, dialect: str) -> None:
    channel = COMPLETION if dialect == AGENT_LOOP else GRADER
    await _through(bench, dialect, channel, ["callback-stall"])


async def ungraded(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect, graded=False))
    await bench.quiet()
    bench.want(history.channels[GRADER].first is None, "a grade came, and no grader URL was given")


async def empty_grader(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect, graded=False, extra={"grader_callback_url": ""}))
    await bench.quiet()
    bench.want(history.channels[GRADER].first is None, 'a grade came, and the grader URL was ""')


async def no_keys(bench: Bench, dialect: str) -> None:
    name = "api_key" if dialect == AGENT_LOOP else "controller_api_key"
    for value in ("", None):
        extra = {name: value} if dialect != SINGLE_SAMPLE else {name: value, "llm_api_key": None}
        await bench.play(bench.ask(dialect, callback_key="", chat_key="", extra=extra))


async def two_keys(bench: Bench, dialect: str) -> None:
    """Every chat call and callback brought its own key: the ledger has looked."""
    history = await bench.play(bench.ask(dialect))
    bench.want(history.ask.chat_key != history.ask.callback_key, "the keys are the same")
    one = bench.ask(dialect)
    await bench.play(bench.ask(dialect, chat_key="", callback_key=one.callback_key))


def _report(calls: int) -> dict[str, Any]:
    call = {"prompt_tokens": 20, "completion_tokens": 1, "prompt_token_ids": [1, 2], "completion_token_ids": [9],
            "logprobs": [-0.02]}  # fmt: skip
    return {"model_name": "policy-7", "samples": {"main": {"llm_call_metrics": [call] * calls}}}


async def reports(bench: Bench, dialect: str) -> None:
    """An acknowledgement may tell how the calls went: rightly, for too many calls, or in another shape."""
    kinds: tuple[dict[str, Any], ...] = (_report(1), _report(9), {"samples": 7}, {"samples": {"a": {}, "b": {}}})
    for report in kinds:
        history = bench.expect(bench.ask(dialect))
        history.report = report
        await bench.post(history)
        await bench.verdict(history)
        await _acknowledged(bench, history)
    await bench.quiet()


async def with_metrics(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect))
    payload = history.bodies[0][1]
    bench.want(isinstance(payload.get("metrics"), dict), "the completion has no metrics")
    if bench.plan.config.workflow.agent in (None, "chat", "tools"):
        came = payload["metrics"].get("num_llm_calls")
        bench.want(came == history.chats, f"num_llm_calls is {came}, and {history.chats} came")


_END, _BOTH = COMPLETION, (COMPLETION, GRADER)

CALLBACKS: tuple[Case, ...] = (
    Case("completion-500", (1, 4), "repeat a refused completion, and mean the same",
         _retried(_END, "callback-500", "callback-503")),
    Case("completion-429", (5,), "come back when Retry-After says", _retried(_END, "callback-429")),
    Case("completion-429-date", (5, 67), "read Retry-After as a date", _retried(_END, "callback-429-date")),
    Case("completion-reset", (1,), "repeat a completion that was reset", _retried(_END, "callback-reset")),
    Case("completion-ack-lost", (1,), "repeat a completion with the same body", _retried(_END, "ack-drop")),
    Case("grade-500", (4,), "repeat a refused grade, and mean the same",
         _retried(GRADER, "callback-500", "callback-500"), _ROLLOUT),
    Case("grade-429", (5,), "come back when Retry-After says", _retried(GRADER, "callback-429"), _ROLLOUT),
    Case("grade-ack-lost", (4,), "repeat a grade with the same body", _retried(GRADER, "ack-drop"), _ROLLOUT),
    Case("ack-204", (6,), "take any 2xx for an acknowledgement", _taken(_END, "ack-204")),
    Case("ack-201", (6,), "take any 2xx for an acknowledgement", _taken(_END, "ack-201")),
    Case("ack-html", (7,), "not mind what an acknowledgement says", _taken(_END, "ack-html")),
    Case("ack-empty", (7,), "not mind an empty acknowledgement", _taken(_END, "ack-empty")),
    Case("ack-huge", (7,), "not read an acknowledgement without end", _taken(_END, "ack-huge")),
    Case("ack-late", (22, 23), "wait for a late acknowledgement", _taken(_END, "ack-late")),
    Case("ack-trajectory", (8, 9), "take a report with an acknowledgement", reports, (SINGLE_SAMPLE,)),
    Case("callback-redirect", (6,), "follow no redirect with a key", redirected, _ROLLOUT),
    Case("completion-404", (3,), "grade all the same when nobody wants the completion", completion_refused, _ROLLOUT),
    Case("grade-400", (2,), "not post again what was acknowledged", grade_refused, _ROLLOUT),
    Case("callback-stall", (1, 22), "repeat a callback that nobody answers", stalled, DIALECTS,
         ("serve.callbacks.timeout=1s",)),
    Case("grade-unasked", (20,), "send no grade that nobody asked for", ungraded, _ROLLOUT),
    Case("grade-empty-url", (20,), "take an empty grader URL for none", empty_grader, _ROLLOUT),
    Case("keys-none", (59,), "send no Authorization without a key", no_keys),
    Case("keys-two", (58, 60), "send each key where it belongs", two_keys, (SINGLE_SAMPLE,)),
    Case("completion-metrics", (28,), "count its calls", with_metrics, (AGENT_LOOP,)),
)  # fmt: skip
