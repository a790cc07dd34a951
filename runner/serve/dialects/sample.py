"""What a callback tells of a sample: its messages, metrics and notes, each as JSON, and how they are encoded.

Most samples are JSON as they are, so that is tried first; only one that is not, or that is too large, is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.records.message import Message
from runner.records.quick import quick
from runner.records.rollout import Sample
from runner.serve.dialects.encode import UNFIT, Mender, is_strict, strict


@quick
class Parts:
    """`extra` is what the workflow wants kept, and under `left_out` what could not be sent as it was."""

    messages: Sequence[Any]
    metrics: Mapping[str, Any]
    extra: Mapping[str, Any]


def encoded(write: Callable[[Parts], bytes], sample: Sample, max_messages: int | None) -> bytes:
    """The body that `write` makes of a sample's parts; the rest of it must be JSON."""
    try:
        body = write(Parts(sample.messages, dict(sample.metrics), dict(sample.info)))
    except UNFIT:
        return write(_mended(sample, max_messages))
    if max_messages is None or len(body) <= max_messages:
        return body
    return write(_mended(sample, max_messages))


def _mended(sample: Sample, max_messages: int | None) -> Parts:
    mender = Mender(drop=True)
    metrics = mender.members(sample.metrics, "metrics")
    extra = mender.members(sample.info, "info")
    lost: list[str] = mender.lost
    messages = [_message(each, place, lost) for place, each in enumerate(sample.messages)]
    if max_messages is not None:
        messages = shortened(messages, max_messages, lost)
    return Parts(messages, metrics, {**extra, "left_out": lost} if lost else extra)


def _message(message: Message, place: int, lost: list[str]) -> Any:
    if is_strict(message):
        return message
    mender = Mender()
    mended = mender.members(message, f"messages[{place}]")
    lost.extend(mender.lost)
    return mended


def shortened(messages: list[Any], most: int, lost: list[str]) -> list[Any]:
    """The messages if they are at most `most` bytes of JSON; else the middle is cut, and `lost` says so.

    The start takes up to a quarter of the room, the end the rest, and a message between them says what is missing.
    """
    sizes = [len(strict(message)) + 1 for message in messages]
    if sum(sizes) + 1 <= most:
        return messages
    head = _fitting(sizes, most // 4)
    tail = _fitting(sizes[head:][::-1], most - sum(sizes[:head]))
    cut = len(messages) - head - tail
    said = f"{cut} of {len(messages)} messages ({sum(sizes[head : head + cut])} bytes) cut: [serve] max_messages"
    lost.append(said)
    return [*messages[:head], {"role": "system", "content": f"[{said}]"}, *messages[head + cut :]]


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many of `sizes`, from the first on, fit into `room` together."""
    count = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        count += 1
    return count
