"""What stands for a model: it asks the library what `PLANS` says, and takes its answers out of what it has read.

It knows the way and not the answer: that is found by a pattern in what the last call gave. Four of its ways go wrong,
two have a slip that it mends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """Words to search for, the documents to read then, and the pattern of the answer, in group 1."""

    query: str
    reads: tuple[str, ...]
    pattern: str
    query_again: bool = False
    """Whether it searches over and over."""
    slip: bool = False
    """Whether its first call is not closed."""


PLANS = {
    "lens": Plan("Skerry Light lens", ("skerry-light", "ada-lindqvist"), r"born in Malm in (\d+)"),
    "book": Plan("Skerry Light lens", ("skerry-light", "ada-lindqvist", "per-osten"), r'book "(.+?)"'),
    "period": Plan("Hollin Observatory founded", ("hollin-observatory", "edda-marsh", "comet-marsh"), r"every (\d+)"),
    "return": Plan(
        "comet discovered founder", ("hollin-observatory", "edda-marsh", "comet-marsh"), r"expected in (\d+)"
    ),
    "hill": Plan("Hollin saxifrage", ("hollin-saxifrage", "gannet-hill"), r"(\d+) metres"),
    "plants": Plan("Hollin saxifrage counted", ("hollin-saxifrage",), r"(\d+) plants"),  # an old number
    "leader": Plan("saxifrage census", ("hollin-saxifrage", "census-2021", "mira-dahl"), r"born in (\w+)"),
    "works": Plan("Long Eye mounting", ("long-eye", "velden-works"), r"closed in (\d+)"),
    "archive": Plan("Long Eye mounting", ("long-eye", "velden-works", "carrow-museum"), r"Opened in (\d+)"),
    "architect": Plan("museum of Carrow", ("carrow-museum", "fish-hall"), r"plans of (\w+ \w+)", slip=True),
    "library": Plan("museum Carrow", ("carrow-museum", "fish-hall", "henrike-vos"), r"library in (\d+)"),
    "gust": Plan("Long Eye storm", (), r"(\d+)", query_again=True),  # never gets to read anything
    "pier": Plan("Long Eye storm", ("long-eye", "storm-of-1953"), r"work of (\w+ \w+)"),
    "engineer": Plan("pier of Port Ellan", (), r"born in (\d+)"),  # right, from what the search shows: nothing is read
    "dog": Plan("director Hollin Observatory", ("hollin-observatory", "jonas-kerr"), r"called (\w+)"),
    "keeper": Plan("last keeper of the light", ("skerry-light", "tomas-reyl"), r"its (harbour\s+master)"),
    "niece": Plan("founder of Hollin Observatory", ("hollin-observatory", "edda-marsh"), r"(comet)"),  # too early
    "captain": Plan("ferry Maren captain", ("ferry-maren", "ingrid-sol"), r"Port Ellan in (\d+)"),
    "steamer": Plan("ferry before the Maren", ("ferry-maren", "the-tern", "ferry-tern"), r"Since (\d+)"),
    "town": Plan("ferry to Hollin", ("ferry-maren", "carrow"), r"town of ([\d,]+)"),
}


def answer(messages: list[dict[str, Any]], row: dict[str, Any]) -> str:
    """The next text: a thought and a call, or the final answer."""
    plan = PLANS[row["id"]]
    turn = sum(message["role"] == "assistant" for message in messages)
    call = f'library__search(query="{plan.query}"'
    if plan.slip:
        if turn == 0:
            return f"Thought: I look for it.\nAction: {call}"
        turn -= 1
    if turn == 0 or plan.query_again:
        return f"Thought: I look for it.\nAction: {call})"
    if turn <= len(plan.reads):
        return f'Thought: It should stand there.\nAction: library__read(name="{plan.reads[turn - 1]}")'
    found = re.search(plan.pattern, str(messages[-1]["content"]))
    said = " ".join(found[1].split()) if found else "unknown"
    return f"Thought: That is it.\nFinal Answer: {said}"
