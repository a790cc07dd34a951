"""Durations, money and sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.quantity import duration_text, parse_duration, parse_money, parse_size, size_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("250ms", 0.25), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172800), ("0s", 0)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "s", "9 s", "-1s", "1S", "1s ", "1e3s", "90s\n"])
def test_no_durations(text):
    assert parse_duration(text) is None


@pytest.mark.parametrize(("text", "dollars"), [("0.25 USD", 0.25), ("25USD", 25), ("$5", 5)])
def test_money(text, dollars):
    assert parse_money(text) == dollars


@pytest.mark.parametrize("text", ["", "5", "5 EUR", "USD", "$", "-1 USD"])
def test_no_money(text):
    assert parse_money(text) is None


@given(st.integers(0, 10**7))
def test_a_duration_is_written_so_that_it_reads_back(seconds):
    assert parse_duration(duration_text(seconds)) == seconds


@given(st.floats(0, 86400))
def test_a_fraction_is_written_to_six_digits(seconds):
    assert parse_duration(duration_text(round(seconds, 3))) == pytest.approx(round(seconds, 3), rel=1e-5)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * 2**20),
        ("512 KiB", 512 * 2**10),
        ("2MB", 2_000_000),
        ("1.5kB", 1500),
        ("1KB", 1000),
        ("0B", 0),
        ("9007199254740993B", 9007199254740993),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "64", "MiB", "64mb", "64M", "-1B", "1e3B", "64MiB\n", "1  MB", "0x1B"])
def test_no_sizes(text):
    assert parse_size(text) is None


@given(st.integers(0, 2**70))
def test_a_size_is_written_exactly(size):
    assert parse_size(size_text(size)) == size
