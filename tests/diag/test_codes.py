"""Every code can be explained."""

from __future__ import annotations

import re

import pytest

from runner.diag.codes import CODES, explain_code


@pytest.mark.parametrize("name", CODES)
def test_every_code_has_all_its_text(name: str) -> None:
    code = CODES[name]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
    assert not code.title.endswith(".")
    assert code.explanation.endswith(".")
    assert code.example.strip()
    assert code.cure
    assert all(len(line) <= 130 for line in explain_code(name).splitlines())


def test_whole_explanation() -> None:
    assert explain_code("bad-duration") == (
        "bad-duration: the value is not a duration\n"
        "\n"
        "A duration is a string of numbers with units: ms, s, m, h. A bare number is refused\n"
        "because nobody can tell whether it means seconds or milliseconds.\n"
        "\n"
        "Example:\n"
        "\n"
        "    [limits]\n"
        "    time = 300\n"
        "\n"
        'Cure: Write the unit: "300s", "5m", "1h30m", "250ms".\n'
    )


def test_an_unknown_code_names_the_near_one() -> None:
    with pytest.raises(KeyError, match="did you mean `unknown-key`"):
        explain_code("unknwon-key")
