"""A file from its text: written to a folder of its own, inspected and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from runner.config.check import check
from runner.config.layers import Override
from runner.config.load import Loaded, inspect_file
from runner.diag.diagnostic import Diagnostic

Inspect = Callable[..., Loaded]


@pytest.fixture
def inspect(tmp_path: Path) -> Inspect:
    """`inspect(text, sets=[...], profile=..., environ={...}, files={...}, checks=True)`."""

    def inspect(
        text: str,
        sets: Sequence[str] = (),
        profile: str | None = None,
        environ: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        checks: bool = True,
    ) -> Loaded:
        for name, content in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content, "utf-8")
        file = tmp_path / "workflow.toml"
        file.write_text(text, "utf-8")
        overrides = [Override.from_set(word) for word in sets]
        loaded = inspect_file(file, overrides=overrides, profile=profile, environ=environ or {})
        if checks:
            check(loaded)
        return loaded

    return inspect


@pytest.fixture
def findings() -> Callable[[Loaded], list[str]]:
    """Every finding as `line:column code: message | label`, with `W` before a warning; no file name for the file."""

    def line(finding: Diagnostic) -> str:
        place = finding.place
        where = "-" if place is None else f"{place.line}:{place.column}"
        if place is not None and place.source.origin != "file":
            where = str(place)
        elif place is not None and not place.source.name.endswith("workflow.toml"):
            where = f"{Path(place.source.name).name}:{where}"
        mark = "W " if finding.severity == "warning" else ""
        label = f" | {finding.label}" if finding.label else ""
        return f"{mark}{where} {finding.code}: {finding.message}{label}"

    return lambda loaded: [line(finding) for finding in loaded.report]
