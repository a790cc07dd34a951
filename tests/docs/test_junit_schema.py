"""What `osmosis-run test --junit` writes fits the schema that Jenkins checks such files with.

junit/junit-10.xsd is that of Jenkins' xunit plugin, as pytest ships it with its own tests (MIT licence, in the file).
It lacks two things that every reader takes, and so do not count: none of ours.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.cli.junit import Case, Suite, junit_xml

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit") / "junit-10.xsd")
COMMAND = str(Path(sys.executable).with_name("osmosis-run"))
FILE = """\
[workflow]
user = "{{ row.question }}"
label = "{{ row.answer }}"
[model]
id = "scripted/x"
provider = "scripted"
[[model.rules]]
reply = "4"
[graders.answer]
kind = "exact"
[[graders.answer.tests]]
output = "4"
label = "4"
expect = 1.0
[[graders.answer.tests]]
output = "<5> & \\"six\\"\\u0007"
label = "4"
expect = 1.0
[[tests]]
name = "asks\\n\\u0001 once"
row = { question = "2 + 2?", answer = "4" }
expect = { reward = 1.0 }
[[tests.rules]]
reply = "4"
"""


def test_a_run_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "workflow.toml").write_text(FILE, encoding="utf-8")
    words = [COMMAND, "test", "--junit", "results.xml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    SCHEMA.validate(tmp_path / "results.xml")
    root = ElementTree.parse(tmp_path / "results.xml").getroot()
    assert [suite.get("name") for suite in root] == ["graders.answer", "tests"]
    assert (root.get("tests"), root.get("failures")) == ("3", "1")


texts = st.text(max_size=12)
cases = st.builds(Case, texts, st.floats(0, 1e9), texts, st.sampled_from(["", "a b.toml:3:1", "<&>.toml:3:1"]))


@settings(max_examples=60)
@given(texts, st.lists(st.builds(Suite, texts, st.lists(cases, max_size=3)), max_size=3))
def test_whatever_it_is_told(name: str, suites: list[Suite]) -> None:
    SCHEMA.validate(junit_xml(name, suites))


def test_the_schema_tells_right_from_wrong() -> None:
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        SCHEMA.validate('<testsuites><testsuite name="x" tests="1"/></testsuites>')
