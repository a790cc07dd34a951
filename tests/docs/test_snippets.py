"""Every block of the README and of docs/ is played: files are checked, code is run, commands show what they show.

pages.py says what marks mean and what is compared; accept.py writes into the pages what commands show now.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.build.alias import osmosis_alias
from runner.build.check import check_build
from runner.config.check import check
from runner.config.load import inspect_file
from runner.diag.codes import CODES
from tests.sandboxes.conftest import needs_bubblewrap

BAD = Path(__file__).parents[1] / "bad"
FILES = ("toml", "python", "json", "yaml", "ini", "dockerfile", "text")

REASONS = {
    "installs packages": 1,
    "a server that misbehaves": 2,
    "builds an image": 1,
    "needs the data of GSM8K": 1,
}
"""Why a block is not played -> how many such blocks there are."""


def chooses(choice: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """The test is played with each block that `choice` takes."""

    def mark(function: Any) -> Any:
        function.chooses = choice
        return function

    return mark


def is_free(block: Any, language: str) -> bool:
    return block.language == language and block.mark in ("", "in") and block.page.name != "diagnostics.md"


# What there is


def test_every_block_is_of_a_kind_that_is_played(pages: Any, all_blocks: Any) -> None:
    odd = [block.place for block in all_blocks if block.language not in (*pages.SHELLS, *FILES)]
    assert odd == []
    loose = [block.place for block in all_blocks if block.language in ("ini", "dockerfile", "text") and not block.mark]
    assert loose == [], "say by a mark what becomes of it"


def test_what_is_not_played_is_counted(all_blocks: Any) -> None:
    assert Counter(block.value for block in all_blocks if block.mark == "unchecked") == REASONS


@pytest.mark.parametrize("shown", ["a…", "…\nb", "a\n…\nc", "a\nb\nc", "…"])
def test_dots_stand_for_any_lines(shown: str, pages: Any) -> None:
    assert pages.same(shown.splitlines(), ["a", "b", "c"]) == (shown in ("a\n…\nc", "a\nb\nc", "…"))


# Files by themselves


@chooses(lambda block: is_free(block, "toml"))
def test_a_file_is_sound(block: Any, pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, beside = block.text, pages.COMPLETIONS / (block.value or block.page.stem)
    if beside.exists():
        shutil.copytree(beside, tmp_path, dirs_exist_ok=True)
    if block.mark == "in":
        text = f'extends = ["base.toml"]\n{text}'
    (tmp_path / "workflow.toml").write_text(text, encoding="utf-8")
    for name in pages.KEYS:
        monkeypatch.setenv(name, "none")
    profiles = [None, *re.findall(r"^\[profiles\.(\w+)\]", text, re.MULTILINE)]
    for profile in profiles:
        loaded = inspect_file(tmp_path / "workflow.toml", profile=profile)
        check(loaded, serving="[serve" in text)
        check_build(loaded, imports=True)
        assert loaded.report.findings == []


@chooses(lambda block: is_free(block, "python"))
def test_code_runs(block: Any, pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if block.mark == "in":
        shutil.copytree(pages.COMPLETIONS / block.value, tmp_path, dirs_exist_ok=True)
        shutil.copy(tmp_path / "base.toml", tmp_path / "workflow.toml")
    monkeypatch.chdir(tmp_path)
    run_code(block.text, block.place)


def run_code(text: str, place: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "snippet"}
    with osmosis_alias():
        exec(compile(text, place, "exec"), names)  # noqa: S102 (that is what the page tells people to do)
    return names


@chooses(lambda block: is_free(block, "json"))
def test_json_can_be_read(block: Any) -> None:
    json.loads(block.text)


@chooses(lambda block: block.page.name == "diagnostics.md")
def test_an_example_has_the_finding_it_stands_for(block: Any, tmp_path: Path) -> None:
    """By itself, or as a file of tests/bad where it takes code, data or variables beside it."""
    above = block.page.read_text(encoding="utf-8").splitlines()[: block.line]
    name = next(line[3:] for line in reversed(above) if line.startswith("## "))
    assert block.text == f"{CODES[name].example}\n"
    (tmp_path / "workflow.toml").write_text(block.text, encoding="utf-8")
    loaded = inspect_file(tmp_path / "workflow.toml")
    check_build(loaded, imports=True)
    if name not in {finding.code for finding in loaded.report}:
        assert any(f"[{name}]" in told.read_text(encoding="utf-8") for told in BAD.glob("*.txt"))


# Pages as a user reads them


def test_a_page_shows_what_happens(page: Path, pages: Any, all_blocks: Any, warm: Path, tmp_path: Path) -> None:
    blocks = [block for block in all_blocks if block.page == page]
    if lacking := pages.missing_tools(list(pages.steps_of(blocks))):
        pytest.skip(f"not on this machine: {', '.join(lacking)}")
    if page.parent.name == "repair" and needs_bubblewrap.args[0]:
        pytest.skip(needs_bubblewrap.kwargs["reason"])
    steps = pages.play_page(page, blocks, tmp_path, warm)
    wrong = [f"{step.place}: {step.script}\n{step.output}" for step in steps if not step.is_right]
    assert not wrong, "\n\n".join(wrong)


# What others read


@chooses(lambda block: block.language == "yaml" and "groups:" in block.text)
def test_alerts_are_about_numbers_that_there_are(block: Any) -> None:
    """Each rule names metrics and labels that `/metrics` has, and says what to do."""
    from runner.telemetry.metrics import Metrics

    told = Metrics(agent_loop="desk").text()[0].decode()
    families = dict(re.findall(r"^# TYPE (\S+) (\w+)$", told, re.MULTILINE))
    rules = [rule for group in yaml.safe_load(block.text)["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        for name in re.findall(r"osmosis_rollout_\w+", rule["expr"]):
            assert name in families, rule["alert"]
            # A counter only means something as a rate, and the value of a gauge only by itself.
            assert (families[name] == "counter") == bool(re.search(rf"(rate|increase)\({name}", rule["expr"]))
        assert rule["annotations"]["summary"].endswith(".")


@chooses(lambda block: block.language == "ini")
def test_a_unit_is_one_that_systemd_takes(block: Any, tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    unit.read_string(block.text)
    assert unit.sections() == ["Unit", "Service", "Install"]
    if shutil.which("systemd-analyze") is None:
        return
    # What it runs and as whom is on the machine of whoever installs it.
    here = re.sub(r"^ExecStart=.*$", "ExecStart=/bin/true", block.text, flags=re.MULTILINE)
    here = re.sub(r"^User=.*$", "User=root", here, flags=re.MULTILINE)
    (tmp_path / "unit.service").write_text(here, encoding="utf-8")
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "unit.service")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert [line for line in done.stderr.splitlines() if "unit.service" in line] == []
