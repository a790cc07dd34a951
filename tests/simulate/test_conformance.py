"""Every case of `simulate --conformance` against the real server, one test for each case in each dialect.

The numbers of the traps that a case is about are in its id: `-k trap_16` plays what concerns cancelling.
"""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from runner.simulate.bench import Case
from runner.simulate.conformance import CASES


def _id(case: Case, dialect: str) -> str:
    return "-".join([dialect, case.name, *(f"trap_{number}" for number in case.traps)])


PLAYS = [pytest.param(case, dialect, id=_id(case, dialect)) for case in CASES for dialect in case.dialects]


@cache
def _outcomes(told: Path) -> dict[tuple[str, str], dict[str, Any]]:
    until = time.monotonic() + 170
    while not told.exists():
        assert time.monotonic() < until, told.with_suffix(".err").read_text()
        time.sleep(0.1)
    text = told.read_text()
    assert text, told.with_suffix(".err").read_text()
    return {(each["case"], each["dialect"]): each for each in json.loads(text)["cases"]}


@pytest.mark.parametrize(("case", "dialect"), PLAYS)
def test_a_server_must(conformance: Path, case: Case, dialect: str) -> None:
    outcome = _outcomes(conformance)[case.name, dialect]
    assert outcome["result"] == "ok", f"a server must {case.says}: {outcome['reason']}"
