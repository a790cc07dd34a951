"""`configs/research`: what it answers is what was read, from a server of the official package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RESEARCH = Path(__file__).parents[2] / "configs" / "research"
DOCUMENTS = {path.stem: path.read_text(encoding="utf-8") for path in (RESEARCH / "documents").iterdir()}
ROWS = [json.loads(line) for line in (RESEARCH / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]
WRONG = {"plants", "engineer", "gust", "niece"}


def flat(text: str) -> str:
    return " ".join(text.split()).lower()


# The library


def test_documents_refer_to_documents() -> None:
    named = {name: set(re.findall(r"\[([a-z0-9-]+)\]", text)) for name, text in DOCUMENTS.items()}
    assert len(DOCUMENTS) == 27
    assert set().union(*named.values()) <= set(DOCUMENTS)
    assert all(names - {name} for name, names in named.items())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_an_answer_takes_the_way_that_its_row_says(row: dict[str, Any]) -> None:
    """It stands in the last document, none before it has it, and each names the next."""
    *before, last = row["documents"]
    assert len(before) + 1 == row["hops"] >= 2
    assert flat(row["answer"]) in flat(DOCUMENTS[last])
    for document, following in zip(before, row["documents"][1:], strict=True):
        assert f"[{following}]" in DOCUMENTS[document]
    assert row["id"] in ("leader", "niece") or all(flat(row["answer"]) not in flat(DOCUMENTS[each]) for each in before)


# The policy's run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The summary, and the records by row."""
    runs, bin = tmp_path_factory.mktemp("runs"), Path(sys.executable).parent
    command = [str(bin / "osmosis-run"), "eval", "-w", str(RESEARCH), "--set", f"eval.output={runs}", "--json"]
    env = {**os.environ, "PATH": os.pathsep.join([str(bin), os.environ["PATH"]])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr
    lines = (runs / "research" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if '"rollout/1"' in line]
    return json.loads(done.stdout), {record["row_id"]: record for record in records}


def test_sixteen_of_twenty_are_answered_from_their_sources(run: Any) -> None:
    summary, records = run
    assert summary["outcomes"]["scored"] == len(records) == 20
    assert {name for name, record in records.items() if record["reward"] != 1.0} == WRONG
    assert summary["reward"]["mean"] == pytest.approx(0.8)
    assert summary["stop_reasons"] == {"final_answer": 19, "max_turns": 1}


def test_a_right_answer_that_was_not_read_earns_nothing(run: Any) -> None:
    record = run[1]["engineer"]
    assert {name: score["value"] for name, score in record["scores"].items()} == {"answer": 1.0, "sources": 0.0}
    assert record["reward"] == 0.0


def test_slips_are_told_and_mended(run: Any) -> None:
    told = [message["content"] for message in run[1]["steamer"]["messages"] if message["role"] == "user"]
    assert any("there is no document `the-tern`; names like it: ferry-tern" in text for text in told)
    told = [message["content"] for message in run[1]["architect"]["messages"] if message["role"] == "user"]
    assert any("is never closed" in text for text in told)
    assert run[1]["steamer"]["reward"] == run[1]["architect"]["reward"] == 1.0
