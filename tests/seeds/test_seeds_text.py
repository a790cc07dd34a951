"""The copies of the seeds' blocks against the seeds: every block is there, and none of them was changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BLOCKS = Path(__file__).parent / "blocks"
SEEDS = Path(__file__).parents[2].parent / "shared" / "seeds"
DOCUMENTS = ("agent-loop-guide", "agent-workflow", "agentic-rollout-library", "remote-rollout-sdk",
             "strands-integration")  # fmt: skip
NAMES = [path.relative_to(BLOCKS).as_posix() for path in sorted(BLOCKS.rglob("*.txt"))]

_LAYOUT_LOST = frozenset({"agent-workflow"})
"""Documents whose line breaks were lost when they were stored: there, blanks are left out of the comparison."""
_CODE = re.compile(
    r"^(    |from \S+ import|import |class |def |async def |@\w+|\w+ = |export |osmosis |uvicorn |pip |[)\]}]$)"
)


def document(name: str) -> str:
    path = SEEDS / f"{name}.md"
    if not path.is_file():
        pytest.skip(f"the seed documents are not beside the project: no {path.name}")
    return path.read_text(encoding="utf-8")


def plain(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_block_is_as_its_document_has_it(name: str) -> None:
    text, copied = document(name.split("/")[0]), (BLOCKS / name).read_text(encoding="utf-8")
    if name.split("/")[0] in _LAYOUT_LOST:
        assert plain(copied) in plain(text)
    else:
        assert copied.rstrip("\n") in text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_line_of_code_is_in_a_block(name: str) -> None:
    text = document(name)
    copies = [path.read_text(encoding="utf-8") for path in (BLOCKS / name).glob("*.txt")]
    if name in _LAYOUT_LOST:
        for copied in map(plain, copies):
            text = plain(text).replace(copied, "")
        assert not re.search(r"import\w|classdef|asyncdef", text), text
        return
    known = {line for copied in copies for line in copied.splitlines()}
    assert [line for line in text.splitlines() if _CODE.match(line) and line not in known] == []


@pytest.mark.parametrize("name", ["agentic-rollout-library", "remote-rollout-sdk"])
def test_every_fenced_block_is_copied_whole(name: str) -> None:
    fenced = re.findall(r"```\w*\n(.*?)```", document(name), re.DOTALL)
    copies = {path.read_text(encoding="utf-8") for path in (BLOCKS / name).glob("*.txt")}
    assert set(fenced) == copies
