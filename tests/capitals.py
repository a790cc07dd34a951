"""A small workflow about capitals, with a tool and some luck: what `osmosis-run simulate` is tried on."""

from __future__ import annotations

import json
from pathlib import Path

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
{calling}
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


def write_capitals(folder: Path, calling: str = "") -> None:
    """Write the file, the tool and the rows; `calling` goes into the rule that calls the tool."""
    (folder / "workflow.toml").write_text(FILE.replace("{calling}", calling))
    (folder / "tools.py").write_text(TOOLS)
    lines = [json.dumps({"user_prompt": country, "ground_truth": capital}) for country, capital in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(lines))
