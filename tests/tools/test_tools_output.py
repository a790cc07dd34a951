"""From what a tool returned to the text that the model reads."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from runner.tools.output import Unsayable, cap, say, sendable


@dataclass
class Point:
    x: int
    at: datetime.date


class Order(BaseModel):
    id: str
    total: Decimal


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, ""),
        (True, "true"),
        (3.5, "3.5"),
        ({"ä": [1, None]}, '{"ä": [1, null]}'),
        (b"caf\xc3\xa9", "café"),
        (b"\xff\x00", "[2 bytes that are not UTF-8 text]"),
        (Decimal("1.10"), "1.10"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (Point(1, datetime.date(2024, 1, 2)), '{"x": 1, "at": "2024-01-02"}'),
        ([Order(id="a", total=Decimal("2.50"))], '[{"id": "a", "total": "2.50"}]'),
        ({"b", "a"}, '["a", "b"]'),
        (MappingProxyType({"a": (1, 2)}), '{"a": [1, 2]}'),
    ],
)
def test_values_are_said(value: Any, text: str) -> None:
    assert say(value) == text


def test_what_json_cannot_hold_is_named() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value, words in (
        (object(), "`object` has no JSON form"),
        ({"a": [object()]}, "`object` has no JSON form"),
        (Unsayable, "has no JSON form"),
        (float("nan"), "NaN"),
        ([float("inf")], "NaN or an infinite number"),
        ({(1, 2): 3}, "keys must be"),
        (loop, "contains itself"),
        (deep, "nested too deeply"),
    ):
        with pytest.raises(Unsayable, match=words):
            say(value)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.integers(min_value=0, max_value=300))
def test_a_capped_text_keeps_its_ends_and_counts_what_it_lost(text: str, limit: int) -> None:
    capped, cut = cap(text, limit)
    assert cut == (len(text) > limit)
    if not cut:
        assert capped == text
        return
    found = re.search(r"\n\[… ([\d,]+) characters cut …\]\n", capped)
    assert found
    head, tail = capped[: found.start()], capped[found.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(found[1].replace(",", "")) == len(text)
    assert len(capped) <= max(limit, len(found[0]))


def test_a_cut_is_said() -> None:
    capped, cut = cap("a" * 10_000 + "b" * 10_000, 7_684)
    assert cut
    assert capped == "a" * 3828 + "\n[… 12,345 characters cut …]\n" + "b" * 3827


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec=None, min_codepoint=0xD000, max_codepoint=0x1F600), max_size=20))
def test_any_text_can_be_sent(text: str) -> None:
    sent = sendable(text)
    sent.encode("utf-8")
    if not any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        assert sent == text


def test_halves_of_a_pair_are_joined_and_lone_ones_replaced() -> None:
    assert sendable("\ud83d\ude00 \ud800!") == "😀 �!"
