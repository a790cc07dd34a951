"""The frame of the command line: the table of commands, exit codes, and what a user is told when something is wrong."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from runner.cli.console import Console
from runner.cli.exit import CommandError, Exit
from runner.cli.failures import tell
from runner.cli.table import ADVICE, COMMANDS, cli, run
from runner.datasets.dataset import DatasetError
from runner.diag.diagnostic import ConfigError, Diagnostic, Report
from runner.records.failure import ModelUnavailable


def osmosis_run(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runner.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, check=False)


def test_help_lists_every_command_in_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == Exit.OK
    text = capsys.readouterr().out
    assert text.startswith("Usage: osmosis-run [OPTIONS] [COMMAND]")
    for name in COMMANDS:
        assert f"\n  {name} " in text
    assert [line for line in text.splitlines() if line in ("Run:", "Look:", "Develop:")] == [
        "Run:",
        "Look:",
        "Develop:",
    ]


def test_no_command_is_help_and_version_is_a_constant(capsys: pytest.CaptureFixture[str]) -> None:
    from runner import __version__

    assert run([]) == Exit.OK
    assert capsys.readouterr().out.startswith("Usage: osmosis-run")
    assert run(["--version"]) == Exit.OK
    assert capsys.readouterr().out == f"osmosis-run {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_explains_its_options(name: str) -> None:
    command = import_module(f"runner.cli.commands.{COMMANDS[name][0]}").command
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help
    assert COMMANDS[name][1].endswith(".")
    undocumented = [option.name for option in command.params if isinstance(option, click.Option) and not option.help]
    assert undocumented == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_color_and_quiet(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == Exit.OK
    text = capsys.readouterr().out
    assert "--color" in text
    assert "--quiet" in text


def test_advice_names_commands_that_exist() -> None:
    assert set(ADVICE.values()) <= set(COMMANDS)
    assert not set(ADVICE) & set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evla"], "error: there is no command `evla`; did you mean `eval`?"),
        (["check"], "error: there is no command `check`; did you mean `validate`?"),
        (["frobnicate"], "error: there is no command `frobnicate`\n"),
        (["--vresion"], "error: there is no option `--vresion`; did you mean `--version`?"),
        (["validate", "--formt", "json"], "error: there is no option `--formt`; did you mean `--format`?"),
        (["validate", "--format", "xml"], "error: invalid value for '--format': 'xml' is not one of"),
        (["compare"], "error: missing argument"),
        (["--color", "pink"], "error: invalid value for '--color'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_a_hint(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert said.err.rstrip().endswith("--help` lists what there is")


def test_a_finished_reader_of_our_output_is_no_error() -> None:
    command = f"{sys.executable} -m runner.cli.main --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _raised(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[Exit, str]:
    code = tell(error, Console("never"))
    return code, capsys.readouterr().err


def test_what_a_user_can_mend_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    config = ConfigError(Report([Diagnostic("unknown-key", "`[sampling]` has no key `temprature`")]))
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/x/rollouts.jsonl")
    cases: list[tuple[BaseException, Exit, str]] = [
        (CommandError("no run", "make one", Exit.GATE), Exit.GATE, "error: no run\n\nhint: make one\n"),
        (config, Exit.USAGE, "error[unknown-key] `[sampling]` has no key `temprature`"),
        (DatasetError("rows.jsonl:3: no JSON"), Exit.USAGE, "error: rows.jsonl:3: no JSON\n"),
        (ModelUnavailable("no answer", where="http://x"), Exit.INCOMPLETE, "error: model: no answer (http://x)\n"),
        (full, Exit.INCOMPLETE, "error: the disk is full, could not write `runs/x/rollouts.jsonl`"),
        (FileNotFoundError(errno.ENOENT, "x", "a.txt"), Exit.USAGE, "error: there is no file `a.txt`"),
        (PermissionError(errno.EACCES, "x", "a.txt"), Exit.USAGE, "error: no permission for `a.txt`"),
        (IsADirectoryError(errno.EISDIR, "x", "a"), Exit.USAGE, "error: `a` is a folder, a file was expected"),
        (ExceptionGroup("g", [CommandError("inner")]), Exit.USAGE, "error: inner\n"),
        (KeyboardInterrupt(), Exit.INTERRUPTED, "interrupted\n"),
    ]
    for error, code, text in cases:
        said = _raised(error, capsys)
        assert (said[0], text in said[1]) == (code, True), said
        assert "Traceback" not in said[1]


def test_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.socket() as second:
        try:
            second.bind(first.getsockname())
        except OSError as error:
            code, text = _raised(error, capsys)
    assert code == Exit.USAGE
    assert "the port is in use" in text
    assert "--port" in text


def test_our_own_bug_says_so_and_leaves_its_traceback_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ZeroDivisionError("division by zero")
    except ZeroDivisionError as error:
        code, text = _raised(error, capsys)
    assert code == Exit.INCOMPLETE
    assert "error: this is a bug in osmosis-run: ZeroDivisionError: division by zero" in text
    assert "Traceback" not in text
    path = Path(text.split("the traceback is in ")[1].split(";")[0])
    assert "Traceback" in path.read_text()
    path.unlink()


def test_exit_codes_are_what_the_help_says() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0, "USAGE": 1, "GATE": 2, "INCOMPLETE": 3, "INTERRUPTED": 130,
    }  # fmt: skip
    assert "0 ok, 1 usage or configuration, 2 a gate failed, 3 incomplete, 130 interrupted" in (cli.epilog or "")
