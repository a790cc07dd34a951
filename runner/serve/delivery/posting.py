"""One post of one callback: what is sent, how long is waited, and what came of it. Nothing is decided here.

Only ids, an origin and a status leave this file: neither a key nor a body is ever part of a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from runner.models.connections import Connections
from runner.models.transport import TransportError
from runner.records.quick import quick
from runner.serve.delivery.reading import HEARD, MAX_ACK, Reading, read
from runner.store.outbox import Owed

Result: TypeAlias = Literal["acknowledged", "retry", "abandoned"]

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CallbackPolicy:
    """How callbacks are delivered; the first six as in `[serve.callbacks]`. Times in seconds."""

    timeout: float = 10.0
    attempts: int | None = None
    """Posts of one callback since this server was started, before it is abandoned."""
    give_up: float = 86400.0
    base_wait: float = 0.5
    max_wait: float = 30.0
    concurrency: int = 64
    """Posts at once to one origin."""
    at_once: int = 512
    """Posts at once to all origins together; they take turns."""
    absence: float = 30.0
    """How long a 404 that is not the controller's own may last: a restart behind a proxy."""
    ack_wait: float = 2.0
    """How long the body of an answer may take once its status is here."""
    held: int = 64 * 1024 * 1024
    """Bytes of bodies kept in memory; the others are read back from the outbox when their turn comes."""


@quick
class Posted:
    """One post, for metrics, the log and the archive. `number` counts from 1 over restarts.

    `status` is None if no answer came. `report` is the body of an acknowledgement that may hold a `trajectory`,
    else empty. `wait` is how long until the next try, in seconds, of a retry.
    """

    attempt_id: str
    rollout_id: str
    channel: str
    origin: str
    number: int
    status: int | None
    problem: str
    seconds: float
    result: Result
    report: bytes = b""
    wait: float = 0.0


@quick
class Tried:
    """What came of a post. `blame` is False if it says nothing about the origin."""

    reading: Reading
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    report: bytes = b""
    blame: bool = True


NOTHING = Tried(Reading("again"), blame=False)
"""Of a callback that had no turn."""


async def post(connections: Connections, owed: Owed, policy: CallbackPolicy) -> Tried:
    """Post a callback once. Never raises, except when it is cancelled."""
    key = owed.key
    if key and not (key.isascii() and key.isprintable()):
        return Tried(Reading("refused", "its key cannot be sent in a header: it is not printable ASCII"), blame=False)
    headers = {"authorization": f"Bearer {key}"} if key else _NONE
    try:
        # An acknowledgement is its status: a body that is too large, too slow or cut off does not undo it.
        answer = await connections.post(
            owed.url, headers, owed.body, timeout=policy.timeout, max_body=MAX_ACK, body_wait=policy.ack_wait
        )
    except TransportError as error:
        return Tried(Reading("again", str(error)))
    except Exception as error:  # a defect of ours must not lose what is owed
        return Tried(Reading("again", f"it could not be posted ({type(error).__name__})"), blame=False)
    reading = read(answer.status, answer.headers, answer.body)
    report = answer.body if reading is HEARD and b'"trajectory"' in answer.body else b""
    return Tried(reading, answer.status, answer.headers, report)
