"""The outbox against a plain model of it: any calls in any order, with the file closed and opened again in between."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runner.store.outbox import Accepted, Contradiction, Outbox, Owed, Verdict, Withdrawn

ATTEMPTS = st.sampled_from([f"a{number}" for number in range(6)])
CHANNELS = st.sampled_from(["completion", "grader"])
OWED = st.lists(st.builds(Owed, CHANNELS, st.just("u"), st.binary(max_size=20)), max_size=2)
TEXTS = st.text(st.characters(), max_size=4)


@dataclass
class Callback:
    body: bytes
    state: str = "owed"
    tries: int = 0
    problem: str = ""


@dataclass
class Rollout:
    accepted: Accepted
    left: bytes | None = None
    verdict: Verdict | None = None
    cancelled: bool = False
    released: bool = False
    callbacks: dict[str, Callback] = field(default_factory=dict)

    def owe(self, owed: list[Owed]) -> None:
        for one in owed:
            self.callbacks.setdefault(one.channel, Callback(one.body))

    @property
    def open(self) -> list[str]:
        """In the order in which they are posted, whatever the order they came in."""
        states = {name: callback.state for name, callback in self.callbacks.items()}
        return [name for name in ("completion", "grader") if states.get(name, "taken") != "taken"]

    @property
    def owing(self) -> list[str]:
        return [name for name, callback in self.callbacks.items() if callback.state == "owed"]


def storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class OutboxMachine(RuleBasedStateMachine):
    """`rollouts` holds what should be in the file, in order of acceptance."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="outbox-model-"))
        self.runner = asyncio.Runner()
        self.rollouts: dict[str, Rollout] = {}
        self.box = Outbox.open(self.folder / "r.db")

    def teardown(self) -> None:
        if hasattr(self, "box"):
            self.runner.run(self.box.aclose())
            self.runner.close()
            shutil.rmtree(self.folder)

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.box.aclose())
        self.box = Outbox.open(self.folder / "r.db")
        for rollout in self.rollouts.values():
            for callback in rollout.callbacks.values():
                if callback.state == "abandoned":
                    callback.state, callback.tries = "owed", 0

    @rule(attempt=ATTEMPTS, wire=TEXTS, keys=st.lists(st.sampled_from("klmno"), max_size=3), request=st.binary())
    def accept(self, attempt: str, wire: str, keys: list[str], request: bytes) -> None:
        if attempt in self.rollouts:
            return
        accepted = Accepted(attempt, wire, "d", tuple(keys), request, 1.0)
        held = [
            name for key in keys for name, one in self.rollouts.items() if key in one.accepted.keys and not one.released
        ]
        assert self.runner.run(self.box.accept(accepted)) == (held[0] if held else None)
        if not held:
            self.rollouts[attempt] = Rollout(accepted)

    @rule(attempt=ATTEMPTS, left=st.binary(max_size=5), owed=OWED)
    def hold(self, attempt: str, left: bytes, owed: list[Owed]) -> None:
        rollout = self.rollouts.get(attempt)
        try:
            self.runner.run(self.box.hold(attempt, left, owed))
        except Contradiction:
            assert rollout is None or rollout.left is not None or rollout.verdict is not None or rollout.cancelled
            return
        assert rollout is not None
        assert (rollout.left, rollout.verdict) == (None, None)
        rollout.left = left
        rollout.owe(owed)

    @rule(attempt=ATTEMPTS, reward=st.none() | st.floats(allow_nan=False), message=TEXTS, owed=OWED)
    def settle(self, attempt: str, reward: float | None, message: str, owed: list[Owed]) -> None:
        rollout = self.rollouts.get(attempt)
        try:
            self.runner.run(self.box.settle(attempt, Verdict("scored", "s", reward, message), owed))
        except Withdrawn:
            assert rollout is not None and rollout.verdict is None and rollout.cancelled
            return
        except Contradiction:
            assert rollout is None or rollout.verdict is not None
            return
        assert rollout is not None
        assert rollout.verdict is None and not rollout.cancelled
        rollout.verdict = Verdict("scored", "s", reward, storable(message))
        rollout.owe(owed)

    @rule(attempt=ATTEMPTS, channel=CHANNELS, tries=st.integers(1, 9), problem=TEXTS)
    def tried(self, attempt: str, channel: str, tries: int, problem: str) -> None:
        self.box.tried(attempt, channel, tries, 5.0, problem)
        callback = self.callback(attempt, channel)
        if callback is not None and callback.state == "owed":
            callback.tries, callback.problem = tries, storable(problem)

    @rule(attempt=ATTEMPTS, channel=CHANNELS)
    def acknowledged(self, attempt: str, channel: str) -> None:
        self.runner.run(self.taken(attempt, channel))
        callback = self.callback(attempt, channel)
        if callback is not None:
            callback.state = "taken"

    @rule(attempt=ATTEMPTS, channel=CHANNELS)
    def abandoned(self, attempt: str, channel: str) -> None:
        self.runner.run(self.box.abandoned(attempt, channel, "gone"))
        callback = self.callback(attempt, channel)
        if callback is not None and callback.state == "owed":
            callback.state, callback.problem = "abandoned", "gone"

    @rule(attempts=st.lists(ATTEMPTS, max_size=3))
    def cancel(self, attempts: list[str]) -> None:
        self.runner.run(self.box.cancel(attempts))
        for rollout in filter(None, map(self.rollouts.get, attempts)):
            rollout.cancelled = rollout.cancelled or rollout.verdict is None

    @rule(attempt=ATTEMPTS, owed=OWED, release=st.booleans())
    def settle_cancelled(self, attempt: str, owed: list[Owed], release: bool) -> None:
        rollout, verdict = self.rollouts.get(attempt), Verdict("cancelled", "cancelled", None, "cancelled")
        try:
            self.runner.run(self.box.settle(attempt, verdict, owed, release=release))
        except Contradiction:
            assert rollout is None or rollout.verdict is not None
            return
        assert rollout is not None and rollout.verdict is None
        rollout.verdict, rollout.cancelled, rollout.released = verdict, False, release
        rollout.owe(owed)

    @rule(attempts=st.lists(ATTEMPTS, max_size=3))
    def withdraw(self, attempts: list[str]) -> None:
        open_ = [self.rollouts[name] for name in attempts if name in self.rollouts]
        self.runner.run(self.box.withdraw([one.accepted.attempt_id for one in open_ if one.verdict is None]))
        for rollout in open_:
            if rollout.verdict is None and rollout.left is None:
                rollout.verdict = Verdict("cancelled", "cancelled", None, "cancelled")
                rollout.cancelled, rollout.released = False, True

    @rule()
    def sweep(self) -> None:
        done = [name for name, one in self.rollouts.items() if one.verdict is not None and not one.owing]
        assert self.runner.run(self.box.sweep(1e12)) == len(done)
        for name in done:
            del self.rollouts[name]

    async def taken(self, attempt: str, channel: str) -> None:
        self.box.acknowledged(attempt, channel)
        await self.box.written()

    def callback(self, attempt: str, channel: str) -> Callback | None:
        rollout = self.rollouts.get(attempt)
        return None if rollout is None else rollout.callbacks.get(channel)

    @invariant()
    def the_same(self) -> None:
        if not hasattr(self, "box"):
            return
        run = self.runner.run
        self.runner.run(self.taken("nobody", "grader"))  # what `tried` noted is written by now
        waiting = [one for one in self.rollouts.values() if one.verdict is None]
        assert [(one.accepted, one.left, one.cancelled) for one in run(self.box.unfinished())] == [
            (one.accepted, one.left, one.cancelled) for one in waiting
        ]
        cancelled = [one.accepted.attempt_id for one in waiting if one.cancelled]
        assert sorted(run(self.box.to_cancel())) == sorted(cancelled)
        assert [one.attempt_id for one in run(self.box.by_prefix(""))] == [one.accepted.attempt_id for one in waiting]
        found: dict[str, list[str]] = {}
        for delivery in run(self.box.owing()):
            found.setdefault(delivery.attempt_id, []).append(delivery.channel)
            callback = self.rollouts[delivery.attempt_id].callbacks[delivery.channel]
            assert (callback.body, callback.tries, callback.problem) == (
                delivery.owed.body,
                delivery.tries,
                delivery.problem,
            )
        assert found == {name: one.open for name, one in self.rollouts.items() if one.open}
        for rollout in self.rollouts.values():
            self.found(rollout)

    def found(self, rollout: Rollout) -> None:
        wire = rollout.accepted.rollout_id
        latest = [one for one in self.rollouts.values() if one.accepted.rollout_id == wire][-1]
        known = self.runner.run(self.box.find(wire))
        assert known is not None
        assert known.attempt_id == latest.accepted.attempt_id
        assert (known.verdict, known.undelivered) == (latest.verdict, len(latest.open))


TestOutbox = OutboxMachine.TestCase
TestOutbox.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
