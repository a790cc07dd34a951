"""Places stay right, whoever said the value: a base file, a profile, `--set`, the environment, a prompt's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.build.check import check_build
from runner.config.check import check
from runner.config.layers import Override
from runner.config.load import inspect_file

MODEL = '[model]\nprovider = "scripted"\nrules = [{ reply = "1" }]\n'
GRADER = '[graders.answer]\nkind = "exact"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def findings(files: dict[str, str], *sets: str, profile: str | None = None, **environ: str) -> list[str]:
    """`address code: text under the caret` of every finding of `main.toml`."""
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8", newline="")
    overrides = [Override.from_set(word) for word in sets]
    loaded = inspect_file(Path("main.toml"), overrides=overrides, profile=profile, environ=environ)
    check(loaded)
    check_build(loaded)
    told = []
    for found in loaded.report:
        place = found.place
        assert place is not None, found
        told.append(f"{place} {found.code}: {place.source.text[place.start : place.end]}")
    return told


def test_a_value_of_a_base_file() -> None:
    base = "# shared\n[sampling]\ntemperature = 3.0\n"
    main = f'extends = ["base/shared.toml"]\n{MODEL}{GRADER}'
    assert findings({"base/shared.toml": base, "main.toml": main}) == ["base/shared.toml:3:15 out-of-range: 3.0"]


def test_the_file_wins_over_its_base_and_the_place_with_it() -> None:
    main = f'extends = ["base.toml"]\n{MODEL}{GRADER}[sampling]\ntemperature = 4.0\n'
    assert findings({"base.toml": "[sampling]\ntemperature = 3.0\n", "main.toml": main}) == [
        "main.toml:8:15 out-of-range: 4.0"
    ]


def test_a_sound_value_hides_the_mistake_it_overrides() -> None:
    main = f'extends = ["base.toml"]\n{MODEL}{GRADER}[sampling]\ntemperature = 1.0\n'
    assert findings({"base.toml": "[sampling]\ntemperature = 3.0\n", "main.toml": main}) == []


def test_each_of_two_base_files_and_their_own_base() -> None:
    files = {
        "a.toml": 'extends = ["deep/d.toml"]\n[limits]\nturns = 0\n',
        "b.toml": "[limits]\ntool_calls = -1\n",
        "deep/d.toml": "[limits]\ntime = 5\n",
        "main.toml": f'extends = ["a.toml", "b.toml"]\n{MODEL}{GRADER}',
    }
    assert findings(files) == [
        "a.toml:3:9 out-of-range: 0",
        "b.toml:2:14 out-of-range: -1",
        "deep/d.toml:2:8 bad-duration: 5",
    ]


def test_a_template_and_a_reference_of_a_base_file_in_another_folder() -> None:
    files = {
        "base/tools.py": "def search(query: str) -> str:\n    return query\n",
        "base/prompt.md": "One line.\n{{ custmer }}\n",
        "base/b.toml": '[workflow]\nuser = { file = "prompt.md" }\n[tools.search]\ncall = "./tools.py:serch"\n',
        "main.toml": f'extends = ["base/b.toml"]\n{MODEL}{GRADER}',
    }
    assert findings(files) == ["base/b.toml:4:20 no-such-name: serch", "base/prompt.md:2:4 unknown-variable: custmer"]


def test_a_profile_in_force_and_one_that_is_not() -> None:
    main = (
        f'{MODEL}{GRADER}[profiles.a]\n"limits.turns" = 0\n"workflow.user" = "{{{{ rwo }}}}"\n'
        '[profiles.b]\n"sampling.top_p" = 2.0\n'
    )
    assert findings({"main.toml": main}, profile="a") == [
        "main.toml:7:18 out-of-range: 0",
        "main.toml:8:23 unknown-variable: rwo",
        "main.toml:10:20 out-of-range: 2.0",
    ]
    assert findings({"main.toml": main}) == ["main.toml:7:18 out-of-range: 0", "main.toml:10:20 out-of-range: 2.0"]


def test_a_profile_of_a_base_file() -> None:
    files = {
        "base.toml": '[profiles.strict.limits]\nturns = "few"\n',
        "main.toml": f'extends = ["base.toml"]\n{MODEL}{GRADER}',
    }
    assert findings(files, profile="strict") == ['base.toml:2:9 wrong-type: "few"']


def test_words_of_the_command_line() -> None:
    main = f"{MODEL}{GRADER}[sampling]\ntemperature = 0.7\n"
    said = findings({"main.toml": main}, "sampling.temperature=3", "workflow.user=Say {{ rwo }}", 'limits.time="5"')
    assert said == [
        'command line: --set limits.time="5" bad-duration: "5"',
        "command line: --set sampling.temperature=3 out-of-range: 3",
        "command line: --set workflow.user=Say {{ rwo }} unknown-variable: rwo",
    ]


def test_a_template_may_be_set_bare() -> None:
    """`{{` begins no TOML value, so it needs no quotes of its own."""
    assert findings({"main.toml": MODEL + GRADER}, "workflow.user={{ row.q }}") == []


def test_variables_of_the_environment() -> None:
    variables = {
        "OSMOSIS_RUN__SAMPLING__TOP_P": "7",
        "OSMOSIS_RUN__EVAL__ATTEMPS": "2",
        "OSMOSIS_RUN__GRADERS__ANSWER__EXPECT": "{{ lable }}",
    }
    assert findings({"main.toml": MODEL + GRADER}, **variables) == [
        "environment: OSMOSIS_RUN__EVAL__ATTEMPS=2 unknown-key: OSMOSIS_RUN__EVAL__ATTEMPS",
        "environment: OSMOSIS_RUN__SAMPLING__TOP_P=7 out-of-range: 7",
        "environment: OSMOSIS_RUN__GRADERS__ANSWER__EXPECT={{ lable }} unknown-variable: lable",
    ]


def scripted(rules: list[str]) -> str:
    """A file with one rule a line, from line 4 on."""
    return '[model]\nprovider = "scripted"\nrules = [\n' + "".join(f"{rule},\n" for rule in rules) + f"]\n{GRADER}"


def test_an_element_after_one_that_was_cut_out() -> None:
    """What is broken is left out of the config; what comes after it in an array still stands where it stood."""
    rules = ["{ rply = 'a' }", "{ reply = '{{ lst }}' }", "{ delay = 5 }", "{ reply = '{{ trun }}' }"]
    main = scripted(rules)
    assert findings({"main.toml": main}) == [
        "main.toml:4:3 unknown-key: rply",
        "main.toml:5:15 unknown-variable: lst",
        "main.toml:6:11 bad-duration: 5",
        "main.toml:7:15 unknown-variable: trun",
    ]


def test_many_elements_are_cut_from_the_back() -> None:
    """Eleven broken elements: the tenth is cut before the second, whatever their digits say."""
    rules = ["{ rply = 'a' }" for _ in range(11)] + ["{ reply = '{{ lst }}' }"]
    main = scripted(rules)
    told = findings({"main.toml": main})
    assert len(told) == 12
    assert "main.toml:15:15 unknown-variable: lst" in told


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ('"{{ nme }}"', "main.toml:7:12"),
        ("'{{ nme }}'", "main.toml:7:12"),
        ('"\\u00e9\\t\\"{{ nme }}"', "main.toml:7:22"),
        ('"""\nHello\n{{ nme }}"""', "main.toml:9:4"),
        ("'''\r\nHello\r\n  {{ nme }}'''", "main.toml:9:6"),
        ('"""Hello \\\n     {{ nme }}"""', "main.toml:8:9"),
        ('"日本語 🙂 {{ nme }}"', "main.toml:7:18"),
    ],
)
def test_inside_every_kind_of_string(written: str, place: str) -> None:
    main = f"{MODEL}{GRADER}[workflow]\nuser = {written}\n"
    assert findings({"main.toml": main}) == [f"{place} unknown-variable: nme"]
