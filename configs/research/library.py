"""A server of the Model Context Protocol over a folder of documents: `python library.py [FOLDER]`.

Made with the official package; it speaks over standard input and output. A document is called by its file's name.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("documents"))

server = MCPServer("library")
documents = {path.stem: path.read_text(encoding="utf-8").strip() for path in sorted(FOLDER.glob("*.md"))}


@server.tool()
def search(
    query: Annotated[str, Field(description="Words to look for.")],
    limit: Annotated[int, Field(description="At most so many documents.", ge=1, le=20)] = 5,
) -> str:
    """Find documents by words. Gives their names, the best first, each with the line that fits best."""
    words = set(_words(query))
    scored = [(_score(words, text), name) for name, text in documents.items()]
    found = sorted((-score, name) for score, name in scored if score > 0)[:limit]
    if not found:
        return f"no document has any of these words: {', '.join(sorted(words))}"
    return "\n".join(f"{name}: {_line(words, documents[name])}" for _, name in found)


@server.tool()
def read(name: Annotated[str, Field(description="The document's name, as `search` gives it.")]) -> str:
    """Read a document. Names in brackets are those of other documents."""
    if name not in documents:
        near = get_close_matches(name, documents, n=3, cutoff=0.4)
        raise ToolError(f"there is no document `{name}`; names like it: {', '.join(near) or 'none'}")
    return documents[name]


def _words(text: str) -> list[str]:
    return re.findall(r"\w{3,}", text.lower())


def _score(words: set[str], text: str) -> float:
    """How many of the words are there; a word of the title counts three times."""
    title, _, rest = text.partition("\n")
    return 3 * len(words & set(_words(title))) + len(words & set(_words(rest)))


def _line(words: set[str], text: str) -> str:
    lines = [line for line in text.splitlines() if line]
    return max(lines[1:], key=lambda line: len(words & set(_words(line))))


if __name__ == "__main__":
    server.run()
