"""The stand-in by itself, for kubectl and for curiosity: `python -m tests.sandboxes.kubernetes.api_server`.

Prints its address and the folder of a kubeconfig for it, and serves until it is interrupted.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from tests.sandboxes.kubernetes.api_server.server import serving


async def main() -> None:
    async with serving() as (_, url):
        with tempfile.TemporaryDirectory() as folder:
            config = {
                "current-context": "stand-in",
                "contexts": [{"name": "stand-in", "context": {"cluster": "stand-in"}}],
                "clusters": [{"name": "stand-in", "cluster": {"server": url}}],
            }
            path = Path(folder) / "config"
            path.write_text(json.dumps(config), encoding="utf-8")
            print(f"{url}\nexport KUBECONFIG={path}", flush=True)  # noqa: T201
            await asyncio.Event().wait()


asyncio.run(main())
