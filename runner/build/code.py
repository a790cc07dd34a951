"""Files that a config names, as facts: a changed grader file re-grades, a changed tool file or recording re-runs.

A fact is a digest of the file's bytes under the key that names it, so that a plan can say which file has changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.build.sources import is_users
from runner.config.config import RolloutConfig


def code_facts(code: Mapping[str, Path], folder: Path) -> dict[str, dict[str, Any]]:
    """By part ("result" or "grade"), `dotted.key (file)` to a digest of the file's bytes.

    Only files of the user's project count: a library's version is recorded in the manifest, not compared.
    """
    facts: dict[str, dict[str, Any]] = {"result": {}, "grade": {}}
    for key, file in sorted(code.items()):
        if not is_users(file):
            continue
        part = "grade" if key.startswith("graders.") else "result"
        facts[part][f"{key} ({os.path.relpath(file, folder)})"] = _digest(file)
    return facts


def recording_facts(config: RolloutConfig) -> dict[str, dict[str, Any]]:
    """By part, the recordings that `provider = "replay"` answers from: what they hold is what is answered.

    A role's recording changes a grade, the policy's the result. One that is not there has no digest.
    """
    facts: dict[str, dict[str, Any]] = {"result": {}, "grade": {}}
    models = {"model": config.model, **{f"roles.{name}": role for name, role in config.roles.items()}}
    for key, section in models.items():
        if section is None or section.recording is None or section.effective_provider != "replay":
            continue
        file = section.recording.path
        if file.is_file():
            part = "result" if key == "model" else "grade"
            facts[part][f"{key}.recording ({os.path.relpath(file, config.folder)})"] = _digest(file)
    return facts


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
