"""Who may speak: colour, quiet, and terminals that cannot show every sign."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def speak(code: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "TERM")}
    return subprocess.run(
        [sys.executable, "-c", f"from runner.cli.console import Console\n{code}"],
        capture_output=True,
        env={**clean, **environment},
        timeout=20,
        check=True,
    )


PAINT = "Console(COLOR).out(Console(COLOR).data.bad('x'))"


@pytest.mark.parametrize(
    ("color", "environment", "painted"),
    [
        ("auto", {}, False),  # not a terminal
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "0"}, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_when_there_is_colour(color: str, environment: dict[str, str], painted: bool) -> None:
    done = speak(PAINT.replace("COLOR", repr(color)), **environment)
    assert done.stdout == (b"\x1b[1;31mx\x1b[0m\n" if painted else b"x\n")


def test_a_terminal_that_knows_only_ascii_gets_words_and_no_crash() -> None:
    done = speak(
        r"c = Console(); c.out('0.5 \u00b1 0.1 \u2713 \u732b \udc80'); c.err('\u2026')", PYTHONIOENCODING="ascii"
    )
    assert done.stdout == b"0.5 +/- 0.1 ok \\u732b \\udc80\n"
    assert done.stderr == b"...\n"


def test_json_stays_json_in_every_encoding() -> None:
    import json

    for encoding in ("ascii", "utf-8", "latin-1"):
        done = speak(r"Console().print_json({'a': '\u00e9\u732b\U0001f600'})", PYTHONIOENCODING=encoding)
        assert json.loads(done.stdout.decode(encoding)) == {"a": "é猫😀"}


def test_a_lone_surrogate_in_json_is_escaped() -> None:
    done = speak(r"Console().print_json({'a': '\udc80'})", PYTHONIOENCODING="utf-8")
    assert done.stdout == b'{\n  "a": "\\udc80"\n}\n'


def test_talk_goes_to_stderr_and_is_silent_when_quiet() -> None:
    done = speak("c = Console(quiet=True); c.say('talk'); c.warn('careful'); c.fail('no', 'do `that`'); c.out('data')")
    assert done.stdout == b"data\n"
    assert done.stderr == b"warning: careful\nerror: no\n\nhint: do `that`\n"
