"""`init` writes projects that validate, test and run without a key."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from runner.cli.commands.init import SCHEMA, TEMPLATES, project_files

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_project_validates_tests_and_runs(template: str, osmosis: Run, tmp_path: Path) -> None:
    made = osmosis("init", "my project", "--template", template)
    assert (made.returncode, made.stdout) == (0, "")
    folder = tmp_path / "my project"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        *project_files(template), SCHEMA
    }  # fmt: skip
    assert "@NAME@" not in (folder / "workflow.toml").read_text() + (folder / "README.md").read_text()

    validated = osmosis("validate", "--dataset", "dataset.jsonl", folder=folder)
    assert (validated.returncode, validated.stdout) == (0, ""), validated.stdout + validated.stderr
    assert "workflow.toml: ok (" in validated.stderr

    tested = osmosis("test", folder=folder)
    assert tested.returncode == 0, tested.stdout + tested.stderr

    ran = osmosis("eval", "--json", folder=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    summary = json.loads(ran.stdout)
    assert summary["outcomes"]["scored"] == summary["rows"] * 4
    assert 0 < summary["reward"]["mean"] < 1, "a first run should show something to look into"
    assert (folder / "runs" / "my-project" / "rollouts.jsonl").is_file()


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_project_names_its_schema_and_fits_it(template: str, osmosis: Run, tmp_path: Path) -> None:
    assert osmosis("init", "p", "--template", template).returncode == 0
    folder = tmp_path / "p"
    first = (folder / "workflow.toml").read_text().splitlines()[0]
    schema = (folder / first.removeprefix("#:schema ")).read_text()
    assert schema == (ROOT / "schemas" / "workflow.schema.json").read_text()
    assert osmosis("schema", "--write", ".osmosis-run", folder=folder).returncode == 0
    assert (folder / SCHEMA).read_text() == schema

    fits = Draft202012Validator(json.loads(schema))
    content = tomllib.loads((folder / "workflow.toml").read_text())
    assert [error.message for error in fits.iter_errors(content)] == []
    content["sampling"]["max_tokenz"] = 5
    assert ["max_tokenz" in error.message for error in fits.iter_errors(content)] == [True]


def test_every_schema_line_of_the_repository_leads_to_the_schema() -> None:
    files = [*ROOT.glob("configs/*/workflow.toml"), *ROOT.glob("tests/good/*/workflow.toml")]
    assert len(files) > 2
    for file in files:
        first = file.read_text().splitlines()[0]
        assert first.startswith("#:schema "), file
        assert (file.parent / first.removeprefix("#:schema ")).resolve() == ROOT / "schemas" / "workflow.schema.json"


def test_files_that_are_there_are_never_touched(osmosis: Run, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    refused = osmosis("init")
    assert refused.returncode == 1
    assert "error: the current folder already holds `README.md`" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_file_in_place_of_the_folder(osmosis: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    refused = osmosis("init", "taken")
    assert (refused.returncode, refused.stderr) == (1, "error: `taken` is a file, a folder was expected\n")


def test_an_unknown_template_is_told_what_there_is(osmosis: Run) -> None:
    refused = osmosis("init", "x", "--template", "tool")
    assert refused.returncode == 1
    for name in TEMPLATES:
        assert name in refused.stderr
