"""Numbers as people write them."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.graders.number import parse_number, same_number
from runner.graders.number_in import first_number, last_number

HALF = Fraction(1, 2)

READS = [
    ("0", 0),
    ("18", 18),
    ("007", 7),
    ("+7", 7),
    ("-5", -5),
    ("−5", -5),
    ("– 5", -5),
    ("18.", 18),
    ("18.0", 18),
    (".5", HALF),
    ("5.", 5),
    ("3.14", Fraction(314, 100)),
    ("1,234", 1234),
    ("1,234.5", Fraction(12345, 10)),
    ("12,345,678", 12345678),
    ("1,00,000", 100000),
    ("1 234", 1234),
    ("1 234 567", 1234567),
    ("1\u202f234,5", Fraction(12345, 10)),
    ("1_000_000", 1000000),
    ("1'000", 1000),
    ("1.234,5", Fraction(12345, 10)),
    ("1.234.567", 1234567),
    ("1.234.567,89", Fraction(123456789, 100)),
    ("1.234", Fraction(1234, 1000)),
    ("1{,}000", 1000),
    ("1,\\!234", 1234),
    ("1\\,234", 1234),
    ("$18", 18),
    ("\\$18", 18),
    ("$18$", 18),
    ("$$18$$", 18),
    ("$\\$5.50$", Fraction(11, 2)),
    ("-$5", -5),
    ("$-5", -5),
    ("$ 1,234.00", 1234),
    ("US$12", 12),
    ("USD 12", 12),
    ("12 USD", 12),
    ("€5", 5),
    ("5 €", 5),
    ("£1,000", 1000),
    ("99¢", 99),
    ("1234 dollars", 1234),
    ("18 dollars every day", 18),
    ("$3.50 each", Fraction(7, 2)),
    ("5 km", 5),
    ("5km", 5),
    ("5 km/h", 5),
    ("5 m/s^2", 5),
    ("5 m²", 5),
    ("5 cm^{2}", 5),
    ("5 \\text{ cm}^2", 5),
    ("90^\\circ", 90),
    ("90^{\\circ}", 90),
    ("90°", 90),
    ("90 degrees", 90),
    ("\\text{18 km}", 18),
    ("18\\text{ km}", 18),
    ("18\\ \\mathrm{km}", 18),
    ("5 1/2 cups", Fraction(11, 2)),
    ("2/3 of the cake", Fraction(2, 3)),
    ("3/4", Fraction(3, 4)),
    ("-3/4", Fraction(-3, 4)),
    ("3 / 4", Fraction(3, 4)),
    ("3⁄4", Fraction(3, 4)),
    ("½", HALF),
    ("2½", Fraction(5, 2)),
    ("1 1/2", Fraction(3, 2)),
    ("-1 1/2", Fraction(-3, 2)),
    ("1 + 1/2", Fraction(3, 2)),
    ("\\frac{3}{4}", Fraction(3, 4)),
    ("\\dfrac{3}{4}", Fraction(3, 4)),
    ("\\tfrac34", Fraction(3, 4)),
    ("\\frac{ 3 }{ 4 }", Fraction(3, 4)),
    ("-\\frac{1}{2}", -HALF),
    ("1\\frac{1}{2}", Fraction(3, 2)),
    ("$\\frac{1}{2}$", HALF),
    ("1.5/2", Fraction(3, 4)),
    ("2e3", 2000),
    ("2.5E-3", Fraction(25, 10000)),
    ("3.2 \\times 10^{5}", 320000),
    ("3.2 × 10^5", 320000),
    ("3.2*10^5", 320000),
    ("3.2 x 10^-2", Fraction(32, 1000)),
    ("3.2 \\cdot 10^{-2}", Fraction(32, 1000)),
    ("3*10**2", 300),
    ("10^5", 100000),
    ("10^{-2}", Fraction(1, 100)),
    ("1e400", 10**400),
    ("3 million", 3000000),
    ("1.5 billion dollars", 1500000000),
    ("0.\\overline{3}", Fraction(1, 3)),
    ("0.1\\overline{6}", Fraction(1, 6)),
    ("0.(3)", Fraction(1, 3)),
    ("\\boxed{42}", 42),
    ("\\boxed{\\text{42}}", 42),
    ("\\fbox{42}", 42),
    ("**42**", 42),
    ("`42`", 42),
    ("*42*.", 42),
    ('"42"', 42),
    ("(42)", 42),
    ("{42}", 42),
    ("\\left(42\\right)", 42),
    ("\\(42\\)", 42),
    ("\\[ 42 \\]", 42),
    ("x = 5", 5),
    ("x=-5", -5),
    ("= 5", 5),
    ("≈ 5", 5),
    ("~5", 5),
    ("٣", 3),
    ("４２", 42),
    ("  42\n", 42),
]

NOT_NUMBERS = [
    "",
    " ",
    ".",
    "-",
    "$",
    "abc",
    "A5",
    "A 5",
    "1,5",
    "0,5",
    "3,5,7",
    "1,234,56",
    "1,2345",
    "1.2.3",
    "1 23",
    "1 2 3",
    "1/2/3",
    "1/0",
    "\\frac{1}{0}",
    "1 234/500",
    "1 3/2",
    "--5",
    "-$-5",
    "2+2",
    "3-4",
    "2*3",
    "2^3",
    "5²",
    "5:30",
    "3:4",
    "18 or 20",
    "18 and 20",
    "2 of 3",
    "5%5",
    "50%%",
    "5 pi",
    "5\\pi",
    "π",
    "2\\sqrt{3}",
    "5 x",
    "5 e",
    "1e999999999",
    "1e401",
    "10^99999",
    "10**10**8",
    "10^{10^{8}}",
    "3 × 10^999999",
    "inf",
    "nan",
    "NaN",
    "Infinity",
    "0x10",
    "e5",
    "(1, 2)",
    "[1,2)",
    "5 not 6",
    "it is quite long and full of words but has 5 somewhere",
    "9" * 1001,
]


@pytest.mark.parametrize(("text", "value"), READS)
def test_reads(text: str, value: Fraction | int) -> None:
    number = parse_number(text)
    assert number is not None, text
    assert number.value == value
    assert not number.percent


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_is_not_a_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["50%", "50 %", "50\\%", "50 percent", "50.0%", "$50\\%$", "50 per cent", "**50%**."])
def test_reads_percentages(text: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert number.percent
    assert number.value == 50


SAME = [
    ("18", "$18.00"),
    ("1234", "$1,234.00"),
    ("1234", "1234 dollars"),
    ("50", "50%"),
    ("50%", "50 %"),
    ("50%", "0.5"),
    ("50%", "50"),
    ("0.5", "50%"),
    ("50%", "1/2"),
    ("5 km", "5"),
    ("5", "5 km"),
    ("5 km", "5 kilometers"),
    ("5 km", "5km"),
    ("5 hours", "5 hrs"),
    ("5 hours", "5 hours a day"),
    ("18 dollars", "$18 per day"),
    ("5 red apples", "5 apples"),
    ("5 apples", "5 apple"),
    ("0.75", "3/4"),
    ("1/3", "\\frac{2}{6}"),
    ("100000", "1e5"),
    ("0.1", "0.10"),
    ("-0", "0"),
    ("2x", "2x"),
    ("5m", "5 m"),
]
DIFFERENT = [
    ("18", "19"),
    ("18", "-18"),
    ("5 km", "5 kg"),
    ("5 km", "5000 m"),
    ("5 apples", "5 oranges"),
    ("5 square feet", "5 feet"),
    ("5 km", "5 km/h"),
    ("$5", "€5"),
    ("2", "2x"),
    ("2x", "2"),
    ("1/3", "0.333"),
    ("50%", "51"),
    ("100000000000000000001", "100000000000000000000"),
    ("9007199254740993", "9007199254740992"),
    ("0.1", "0.10000000000000000001"),
]


def _same(label: str, answer: str, tolerance: Fraction = Fraction(0)) -> bool:
    one, other = parse_number(label), parse_number(answer)
    assert one is not None
    assert other is not None
    return same_number(one, other, tolerance)


@pytest.mark.parametrize(("label", "answer"), SAME)
def test_same(label: str, answer: str) -> None:
    assert _same(label, answer)


@pytest.mark.parametrize(("label", "answer"), DIFFERENT)
def test_different(label: str, answer: str) -> None:
    assert not _same(label, answer)


def test_tolerance_is_relative_and_leaves_whole_numbers_alone_when_tiny() -> None:
    rounding = Fraction(1, 10**6)
    assert _same("0.333333333", "0.3333333334", rounding)
    assert not _same("10000000", "10000001", rounding)
    assert _same("200", "205", Fraction(5, 100))
    assert not _same("200", "211", Fraction(5, 100))


@settings(max_examples=150, deadline=None)
@given(st.integers(-(10**15), 10**15))
def test_integers_come_back_however_they_are_grouped(value: int) -> None:
    sign = "-" if value < 0 else ""
    for text in (
        f"{value}",
        f"{value:,}",
        f"{value:,}.00",
        f"{sign}${abs(value):,}",
        f"\\boxed{{{value}}}",
        f"**{value:_}**",
    ):
        number = parse_number(text)
        assert number is not None, text
        assert number.value == value
    grouped = parse_number(f"{value:,}".replace(",", "\u00a0"))
    assert grouped is not None
    assert grouped.value == value


@settings(max_examples=150, deadline=None)
@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_fractions_come_back(over: int, under: int) -> None:
    value = Fraction(over, under)
    sign = "-" if over < 0 else ""
    for text in (f"{over}/{under}", f"{sign}\\frac{{{abs(over)}}}{{{under}}}", f"${over}/{under}$."):
        number = parse_number(text)
        assert number is not None, text
        assert number.value == value


@settings(max_examples=100, deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9))
def test_decimals_are_exact(value: object) -> None:
    number = parse_number(f"{value:f}")
    assert number is not None
    assert number.value == Fraction(str(value))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.,/-+eE%$ x^*{}()\\frac km'_½²π", max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    number = parse_number(text)
    assert number is None or isinstance(number.value, Fraction)
    for found in (last_number(text), first_number(text)):
        assert found is None or any(character.isdigit() for character in found)


LAST = [
    ("The answer is 3/4 cup.", "3/4"),
    ("10-5", "5"),
    ("x=-5", "-5"),
    ("it costs $1,234.50.", "$1,234.50"),
    ("about 50\\% of it", "50\\%"),
    ("about 50% of 10", "10"),
    ("from 3-4", "4"),
    ("7 apples and 8", "8"),
    ("I got 18. ", "18"),
    ("so \\frac{3}{4}.", "\\frac{3}{4}"),
    ("1 1/2 cups", "1 1/2"),
    ("3.2 \\times 10^{5} m", "3.2 \\times 10^{5}"),
    ("9*2=18", "18"),
    ("**18**", "18"),
    ("(5)", "5"),
    ("−5°C", "−5"),
    ("1.5e-3 s", "1.5e-3"),
    ("no number", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "number"), LAST)
def test_last_number(text: str, number: str | None) -> None:
    assert last_number(text) == number


def test_first_number() -> None:
    assert first_number("I had 3, then 4.") == "3"
    assert first_number("x" * 100_000 + " -7 and 8") == "-7"
    assert first_number("none") is None


@pytest.mark.parametrize("piece", ["1,", "9", "1,111", " ", "$", "1 1/", "-", "\\frac{", "a1"])
def test_ten_megabytes_take_no_time(piece: str) -> None:
    text = piece * (10_000_000 // len(piece))
    started = time.monotonic()
    last_number(text)
    parse_number(text)
    assert time.monotonic() - started < 5
