"""A later layer may put another model in the place of a scripted one, whose rules then lie unused below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.config.layers import Override
from runner.config.load import load
from runner.diag.diagnostic import ConfigError

SCRIPTED = """\
[workflow]
user = "{{ row.question }}"

[model]
provider = "scripted"
[[model.rules]]
reply = "4"

[graders.answer]
kind = "exact"

[profiles.vllm]
"model.provider" = "openai"
"model.id"       = "openai/qwen3-8b"
"model.base_url" = "http://localhost:8000/v1"
"""


def test_a_profile_or_the_command_line_swaps_the_model(tmp_path: Path) -> None:
    file = tmp_path / "workflow.toml"
    file.write_text(SCRIPTED)
    swapped = load(file, profile="vllm").model
    assert swapped is not None and swapped.effective_provider == "openai"
    (tmp_path / "calls.jsonl").write_text("")
    words = ("model.provider=replay", f"model.recording={tmp_path / 'calls.jsonl'}")
    replayed = load(file, [Override.from_set(word) for word in words]).model
    assert replayed is not None and replayed.effective_provider == "replay"


def test_rules_that_no_layer_would_ever_read_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "workflow.toml"
    file.write_text(SCRIPTED.replace('"scripted"', '"openai"\nid = "openai/a"'))
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert [finding.code for finding in caught.value.report.findings] == ["misplaced-key"]
