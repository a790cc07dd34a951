"""What goes wrong on purpose: faults with chances, all from one seed.

A fault is named by what it strikes and how: `callback-500`, `chat-stall`, `start-duplicate`. A profile is several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

FAULTS: Mapping[str, str] = {
    "callback-500": "a callback is answered 500",
    "callback-503": "a callback is answered 503",
    "callback-404": "a callback is answered 404, as if its rollout were forgotten",
    "callback-429": "a callback is answered 429, to come back after a second",
    "callback-429-date": "a callback is answered 429, with an HTTP date in Retry-After",
    "callback-stall": "a callback is left without an answer, longer than a server waits",
    "callback-reset": "the connection of a callback is reset",
    "callback-307": "a callback is redirected to another path",
    "ack-drop": "a callback is taken, and the connection closed before the answer",
    "ack-late": "a callback is taken, and acknowledged after a second",
    "ack-huge": "a callback is acknowledged with a body of 9 MiB",
    "ack-html": "a callback is acknowledged with a page of HTML",
    "ack-empty": "a callback is acknowledged without a body",
    "ack-204": "a callback is acknowledged with 204",
    "chat-500": "a chat call is answered 500",
    "chat-429": "a chat call is answered 429, to come back after a second",
    "chat-stall": "a chat call is left without an answer for a while, then its connection is reset",
    "chat-reset": "the connection of a chat call is reset",
    "chat-cut": "half of a completion comes, then the connection closes",
    "chat-garbage": "a chat call is answered 200 with a page of HTML",
    "chat-empty": "a chat call is answered 200 with no choices",
    "chat-error": "a chat call is answered with an error, in a stream under status 200",
    "chat-slow": "a chat call is answered after a second",
    "start-duplicate": "a start is posted twice at once",
    "start-again": "a start is posted again a little later",
    "cancel": "a rollout is cancelled by its id soon after its start",
}
"""Name -> what happens."""

PROFILES: Mapping[str, Mapping[str, float]] = {
    "none": {},
    "flaky": {
        "callback-500": 0.2, "callback-429": 0.05, "ack-drop": 0.05, "callback-reset": 0.02,
        "chat-500": 0.03, "chat-429": 0.02, "start-duplicate": 0.05, "start-again": 0.02,
    },
    "hostile": {
        "callback-500": 0.25, "callback-503": 0.05, "callback-429": 0.05, "callback-429-date": 0.03,
        "callback-stall": 0.02, "callback-reset": 0.05, "ack-drop": 0.1, "ack-late": 0.05, "ack-huge": 0.005,
        "ack-html": 0.03, "ack-empty": 0.03, "ack-204": 0.03, "chat-500": 0.05, "chat-429": 0.05, "chat-stall": 0.01,
        "chat-reset": 0.02, "chat-cut": 0.01, "chat-garbage": 0.01, "chat-empty": 0.01, "chat-error": 0.02,
        "chat-slow": 0.05, "start-duplicate": 0.1, "start-again": 0.05, "cancel": 0.05,
    },
}  # fmt: skip


def parse_fault(text: str) -> tuple[str, float]:
    """`"callback-500=0.3"` as a name and a chance. Raises ValueError with a sentence."""
    name, equals, chance = text.partition("=")
    if name not in FAULTS:
        from difflib import get_close_matches

        near = get_close_matches(name, FAULTS, n=1)
        ask = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(FAULTS)}"
        raise ValueError(f"there is no fault `{name}`{ask}")
    try:
        value = float(chance) if equals else 1.0
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"`{chance}` is no probability between 0 and 1 (in `{text}`)")
    return name, value


def chances_of(profile: str, single: Iterable[str]) -> dict[str, float]:
    """A profile with single faults laid over it. Raises ValueError."""
    chances = {**PROFILES[profile], **dict(map(parse_fault, single))}
    for what in ("callback", "chat"):
        total = sum(chance for name, chance in chances.items() if _struck(name) == what)
        if total > 1.0 + 1e-9:
            raise ValueError(f"the chances of all faults of a {what} together are {total:g}, more than 1")
    return chances


def _struck(name: str) -> str:
    what = name.partition("-")[0]
    return "callback" if what == "ack" else what


@dataclass(frozen=True, slots=True)
class Spell:
    """The controller is away, or pauses, for `seconds` from second `at` on."""

    seconds: float
    at: float


def parse_spell(text: str) -> Spell:
    """`"2@5"`: two seconds from second five. Raises ValueError with a sentence."""
    seconds, _, at = text.partition("@")
    try:
        spell = Spell(float(seconds), float(at))
    except ValueError:
        raise ValueError(f"`{text}` is not SECONDS@START, such as 2@5") from None
    if not 0.0 <= spell.seconds <= 86_400.0 or not 0.0 <= spell.at <= 86_400.0:
        raise ValueError(f"`{text}` is out of range")
    return spell


class Faults:
    """Draws faults. The same seed and the same order of questions give the same faults.

    Each rollout's draws come from its own number, so that they do not depend on how rollouts interleave.
    """

    def __init__(self, chances: Mapping[str, float], seed: int = 0) -> None:
        self._seed = seed
        self._kinds = {
            what: [(name, chance) for name, chance in chances.items() if _struck(name) == what and chance > 0.0]
            for what in ("callback", "chat")
        }
        self._chances = chances

    def draw(self, what: str, rollout_id: str, count: int) -> str | None:
        """The fault that strikes the `count`-th "chat", "completion" or "grader" request of a rollout, or None."""
        kinds = self._kinds["chat" if what == "chat" else "callback"]
        if not kinds:
            return None
        number = Random(f"{self._seed}\0{_lasting(rollout_id)}\0{what}\0{count}").random()
        for name, chance in kinds:
            if number < chance:
                return name
            number -= chance
        return None

    def happens(self, name: str, rollout_id: str) -> bool:
        """Whether a fault of starts ("start-duplicate", "start-again", "cancel") strikes a rollout."""
        chance = self._chances.get(name, 0.0)
        return chance > 0.0 and Random(f"{self._seed}\0{_lasting(rollout_id)}\0{name}").random() < chance


def _lasting(rollout_id: str) -> str:
    """What a rollout's id has in common with that of another run on the same seed."""
    return rollout_id.partition(".")[0]
