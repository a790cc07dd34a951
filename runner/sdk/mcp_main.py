"""`python -m runner.sdk.mcp_main DIR`: the MCP server that DIR/main.py makes, over stdin and stdout.

The file is imported, not run as a program: it need only hold its server under some name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

KINDS = ("FastMCP", "MCPServer")
"""What its class is called, in the packages `fastmcp` and `mcp`, in each of their versions."""


def find_server(folder: Path) -> Any:
    """The one server of `folder`/main.py. Raises LookupError for none and for several, and whatever the import does."""
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("main", folder / "main.py")
    if spec is None or spec.loader is None:
        raise LookupError(f"{folder / 'main.py'} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["main"] = module
    with contextlib.redirect_stdout(sys.stderr):  # stdout is the protocol's
        spec.loader.exec_module(module)
    found = {id(value): (name, value) for name, value in vars(module).items() if _is_server(value)}
    if len(found) != 1:
        names = ", ".join(name for name, _ in found.values()) or "none"
        raise LookupError(f"main.py must hold one {' or '.join(KINDS)}, found {names}")
    return next(iter(found.values()))[1]


def _is_server(value: Any) -> bool:
    return any(kind.__name__ in KINDS for kind in type(value).__mro__) and callable(getattr(value, "run", None))


def main(words: list[str]) -> int:
    """Serve until stdin ends. 1, with a sentence on stderr, where there is nothing to serve."""
    try:
        server = find_server(Path(words[0]).resolve())
    except LookupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
