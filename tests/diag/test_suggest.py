"""The name that was meant, or none rather than a wrong one."""

from __future__ import annotations

import pytest

from runner.diag.suggest import alternatives, nearest

SAMPLING = ["temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "extra"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("temprature", "temperature"),
        ("Temperature", "temperature"),
        ("max-tokens", "max_tokens"),
        ("maxTokens", "max_tokens"),
        ("max_token", "max_tokens"),
        ("sede", "seed"),
        ("sotp", "stop"),
        ("tmeperature", "temperature"),
        ("top_q", None),  # two are equally near
        ("colour", None),
        ("", None),
        ("_", None),
    ],
)
def test_nearest(word: str, meant: str | None) -> None:
    assert nearest(word, SAMPLING) == meant
    assert nearest(word, reversed(SAMPLING)) == meant


def test_the_word_itself_is_no_suggestion() -> None:
    assert nearest("seed", ["seed"]) is None
    assert nearest("seed", []) is None


def test_alternatives() -> None:
    assert alternatives(["b", "a", "b"]) == "b, a"
    assert alternatives(str(number) for number in range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert alternatives(str(number) for number in range(13)) is None
    assert alternatives([]) is None
