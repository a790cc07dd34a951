"""Run `osmosis-run validate` on every broken file of this folder, and accept what it says.

    python tests/bad/accept.py              write NAME.txt for every NAME.toml whose text changed, and name them
    python tests/bad/accept.py NAME...      only these
    python tests/bad/accept.py --json FORM  print {NAME: [exit code, stdout]} for one of validate's formats

Read every text before you commit it: the place is exact, the message a fact, the label a cure.
NAME.args beside a file holds more words of the command line, a line each option; NAME.env lines of `VARIABLE=value`.
"""
# ruff: noqa: T201

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def names() -> list[str]:
    """Every broken file of this folder, without its suffix."""
    return sorted(file.stem for file in HERE.glob("*.toml"))


def words(name: str, form: str = "text") -> list[str]:
    """The command line of a case, after `osmosis-run`."""
    extra = HERE / f"{name}.args"
    return ["validate", f"{name}.toml", "--format", form, *shlex.split(extra.read_text() if extra.exists() else "")]


def environment(name: str) -> dict[str, str]:
    """The whole environment of a case: nothing of the caller's but what Python needs, and what NAME.env says."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV") if key in os.environ}
    extra = HERE / f"{name}.env"
    said = extra.read_text().splitlines() if extra.exists() else []
    return {**kept, **dict(line.split("=", 1) for line in said if line)}


def validate(name: str, form: str = "text") -> tuple[int, str]:
    """The exit code and standard output of one case, in this process. Puts back what user code could have changed."""
    from runner.cli.table import run

    before = (dict(os.environ), list(sys.path), Path.cwd(), set(sys.modules))
    said, talk = io.StringIO(), io.StringIO()
    os.environ.clear()
    os.environ.update(environment(name))
    os.chdir(HERE)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(talk):
            code = run(words(name, form))
    finally:
        os.environ.clear()
        os.environ.update(before[0])
        sys.path[:] = before[1]
        os.chdir(before[2])
        for module in set(sys.modules) - before[3]:
            if str(HERE) in (getattr(sys.modules[module], "__file__", None) or ""):
                del sys.modules[module]
    return code, said.getvalue()


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--json"]:
        print(json.dumps({name: validate(name, *arguments[1:]) for name in names()}))
        return
    for name in arguments or names():
        code, said = validate(name)
        file = HERE / f"{name}.txt"
        if not file.exists() or file.read_text() != said:
            file.write_text(said)
            print(f"{name}: {code}")


if __name__ == "__main__":
    main(sys.argv[1:])
