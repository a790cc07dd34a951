"""A small workflow, and the shipped `simulate` as its controller: real processes, real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

FILE = """
schema = 1
[workflow]
name = "capitals"
[tools.capital]
call = "./tools.py:capital"
[model]
provider = "scripted"
[[model.rules]]
when = "turn == 0"
delay = "300ms"
tool_calls = [{ name = "capital", arguments = { country = "{{ row.user_prompt }}" } }]
[[model.rules]]
reply = "{{ last if luck < 0.7 else 'no idea' }}"
[graders.answer]
kind = "exact"
[dataset]
path = "rows.jsonl"
"""
TOOLS = '''
def capital(country: str) -> str:
    """The capital of a country."""
    return {"Peru": "Lima", "Chad": "N'Djamena", "Oman": "Muscat"}[country]
'''
ROWS = [("Peru", "Lima"), ("Chad", "N'Djamena"), ("Oman", "Muscat")]

Simulate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """`simulate(*words, **settings)`: the report of `osmosis-run simulate`; `__` in a setting's name stands for `.`."""
    folder = tmp_path_factory.mktemp("capitals")
    (folder / "workflow.toml").write_text(FILE)
    (folder / "tools.py").write_text(TOOLS)
    lines = [json.dumps({"user_prompt": country, "ground_truth": capital}) for country, capital in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(lines))

    def play(*words: str, **settings: Any) -> dict[str, Any]:
        said = [f"{name.replace('__', '.')}={value}" for name, value in settings.items()]
        command = [sys.executable, "-P", "-m", "runner.cli.main", "simulate", str(folder), "--json", *words]
        command += [word for each in said for word in ("--set", each)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert ended.stdout, ended.stderr
        facts: dict[str, Any] = json.loads(ended.stdout)
        return facts

    return play
