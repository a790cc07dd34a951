"""Every link of the pages leads to a file that is there and to a heading that it has."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
MARKDOWN = MarkdownIt("commonmark").enable("table")


def tokens(page: Path) -> list[Any]:
    return MARKDOWN.parse(page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[str]:
    inline = [child for token in tokens(page) for child in token.children or ()]
    return [str(child.attrs["href"]) for child in inline if child.type == "link_open"]


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings: lower case, without punctuation, blanks as hyphens, numbered."""
    found: set[str] = set()
    parsed = tokens(page)
    for token, content in pairwise(parsed):
        if token.type == "heading_open":
            text = "".join(child.content for child in content.children or ())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            several = [name, *(f"{name}-{number}" for number in range(1, 99))]
            found.add(next(each for each in several if each not in found))
    return found


def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        if path.startswith(("https://", "http://")):
            continue
        target = (page.parent / path).resolve() if path else page
        inside = target.is_relative_to(ROOT) and target.exists()
        if not inside or (anchor and (target.suffix != ".md" or anchor not in anchors_of(target))):
            dead.append(link)
    assert dead == []


def test_every_page_is_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    linked = {link.partition("#")[0] for link in links_of(docs / "index.md")}
    assert sorted({page.name for page in docs.glob("*.md")} - linked - {"index.md"}) == []


def test_addresses_of_the_net_are_few_and_known(page: Path) -> None:
    known = re.compile(r"https?://(docs\.litellm\.ai|strandsagents\.com|127\.0\.0\.1|localhost)")
    strange = [link for link in links_of(page) if link.startswith("http") and not known.match(link)]
    assert strange == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("What is `x`?", "what-is-x"), ("A, b: c", "a-b-c"), ("`[serve]` TLS", "serve-tls")],
)
def test_an_anchor_is_githubs(heading: str, anchor: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# {heading}\n\n# {heading}\n", encoding="utf-8")
    assert anchors_of(page) == {anchor, f"{anchor}-1"}
