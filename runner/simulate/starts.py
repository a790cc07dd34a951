"""What a controller asks for: one row's attempt as the start of each dialect, its addresses and its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from secrets import token_hex
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import to_json

from runner.records.message import Message

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.datasets.dataset import Row

AGENT_LOOP, MULTI_SAMPLE, SINGLE_SAMPLE = "agent-loop", "multi-sample", "single-sample"
DIALECTS = (AGENT_LOOP, MULTI_SAMPLE, SINGLE_SAMPLE)
START_PATH = {AGENT_LOOP: "/v1/rollout/init", MULTI_SAMPLE: "/rollout", SINGLE_SAMPLE: "/rollout"}

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ask:
    """One rollout that a controller asks for. `row` is what the scripted model sees; `group` counts the GRPO groups.

    `extra` is laid over the body as it is: what a test wants said differently, with `...` for a key to leave out.
    """

    rollout_id: str
    dialect: str
    prompt: tuple[Message, ...]
    label: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    row: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    row_id: str = ""
    attempt: int = 0
    group: int = 0
    callback_key: str = ""
    chat_key: str = ""
    graded: bool = True
    sampling: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    turns: int | None = None
    tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    @property
    def path(self) -> str:
        return START_PATH[self.dialect]

    def body(self, base: str) -> dict[str, Any]:
        """The start's body for a controller at `base` (`http://host:port`)."""
        make = _agent_loop if self.dialect == AGENT_LOOP else _rollout
        body = {**make(self, base), **self.extra}
        return {key: value for key, value in body.items() if value is not ...}

    def encoded(self, base: str) -> bytes:
        return to_json(self.body(base))


def _agent_loop(ask: Ask, base: str) -> dict[str, Any]:
    truth = {} if ask.label is None else {"ground_truth": ask.label}
    body: dict[str, Any] = {
        "rollout_id": ask.rollout_id,
        "server_url": base,
        "messages": list(ask.prompt),
        "completion_params": dict(ask.sampling),
        "metadata": {**ask.metadata, **truth},
        "api_key": ask.callback_key or None,
    }
    if ask.turns is not None:
        body["max_turns"] = ask.turns
    if ask.tokens is not None:
        body["max_tokens_total"] = ask.tokens
    return body


def _rollout(ask: Ask, base: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "rollout_id": ask.rollout_id,
        "initial_messages": list(ask.prompt),
        "label": ask.label,
        "metadata": dict(ask.metadata),
        "controller_api_key": ask.callback_key or None,
        "agent_timeout_sec": None,
        "grader_timeout_sec": None,
        "extra_fields": None,
    }
    if ask.dialect == MULTI_SAMPLE:
        body["chat_completions_url"] = base
        body["completion_callback_url"] = base + "/v1/rollout/completed"
        body["grader_callback_url"] = base + "/v1/grader/completed" if ask.graded else None
        return body
    own = f"{base}/v1/rollouts/{quote(ask.rollout_id, safe='')}"
    body["chat_completions_url"] = own
    body["completion_callback_url"] = own + "/completion"
    body["grader_callback_url"] = own + "/grader" if ask.graded else None
    # Written always, also as null: its presence is what tells this generation from the one before.
    body["llm_api_key"] = ask.chat_key or None
    return body


def fitting(group_size: int, rollouts: int | None, dialects: int) -> int:
    """The size of groups with which each dialect gets one, if so many rollouts can give that."""
    return group_size if rollouts is None else min(group_size, max(1, rollouts // dialects))


class Asking:
    """Makes `Ask`s from a plan's rows, without end, in groups: the attempts of a row stand together.

    A file without a dataset gets one made-up row. Ids and keys follow from `seed`. With `anew`, ids end in a word that
    no run had before: a server that runs on remembers the ids of the last one, and answers them without playing.
    """

    def __init__(
        self, plan: Plan, dialects: Sequence[str], *, group_size: int = 1, seed: int = 0, anew: bool = False
    ) -> None:
        self._plan = plan
        self._dialects = tuple(dialects)
        self._group_size = group_size
        self._random = Random(seed)
        self._mark = f"{self._random.getrandbits(32):08x}"
        self._run = f".{token_hex(4)}" if anew else ""
        self._count = 0
        sampling = {"temperature": plan.sampling.temperature, "top_p": plan.sampling.top_p,
                    "max_tokens": plan.sampling.max_tokens}  # fmt: skip
        self._sampling = {key: value for key, value in sampling.items() if value is not None}

    def groups(self) -> Iterator[list[Ask]]:
        """Groups of `group_size` rollouts, row after row, dialect after dialect, and round again."""
        number = 0
        while True:
            rows = self._plan.dataset.rows() if self._plan.dataset is not None else iter([None])
            empty = True
            for row in rows:
                empty = False
                dialect = self._dialects[number % len(self._dialects)]
                first = self._row(row, dialect)
                yield [replace(self._fresh(first), attempt=n, group=number) for n in range(self._group_size)]
                number += 1
            if empty:
                return

    def one(self, dialect: str, row: Row | None = None, attempt: int = 0) -> Ask:
        """One rollout: of `row`, or of the dataset's first."""
        if row is None and self._plan.dataset is not None:
            row = next(iter(self._plan.dataset.rows()), None)
        return replace(self._fresh(self._row(row, dialect)), attempt=attempt)

    def _fresh(self, ask: Ask) -> Ask:
        """The same with an id and keys of its own: a key that turns up in the wrong place is noticed."""
        self._count += 1
        key = f"{self._random.getrandbits(64):016x}"
        chat = f"chat-{key}" if ask.dialect == SINGLE_SAMPLE else ""
        name = f"sim-{self._mark}-{self._count:07d}{self._run}"  # none is the prefix of another
        return replace(ask, rollout_id=name, callback_key=f"back-{key}", chat_key=chat)

    def _row(self, row: Row | None, dialect: str) -> Ask:
        limits = self._plan.limits
        if row is None:
            prompt: tuple[Message, ...] = ({"role": "user", "content": "Say OK."},)
            return Ask("", dialect, prompt, "OK", {}, {}, "0", sampling=self._sampling, turns=limits.turns)
        request = self._plan.request(row, 0)
        data = dict(row.data)
        return Ask("", dialect, request.prompt, request.label, data, data, row.id, sampling=self._sampling,
                   turns=limits.turns, tokens=limits.total_tokens)  # fmt: skip
