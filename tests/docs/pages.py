"""The pages of the documentation, taken apart and played as a reader would.

A mark is a comment on the line before a block; readers of the page do not see it:

    <!-- file: NAME -->       the block is this file, in the folder in which the page's commands run
    <!-- append: NAME -->     the block comes at the end of that file
    <!-- shows: NAME -->      that file holds the block by then
    <!-- in: NAME -->         a part of a workflow: completions/NAME/base.toml is the rest, code and data lie beside it
    <!-- unchecked: REASON -->  nobody runs it; test_snippets.py lists the reasons that count

What stands under a command of a console block is what it prints. Only what no two runs share is not compared: times,
rates, ports, process ids, random ids. A line `…` stands for any lines.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "configs").glob("README.md")),
         *sorted((ROOT / "configs").glob("*/README.md"))]  # fmt: skip
"""Not those deeper down: they belong to repositories that agents work on."""
COMPLETIONS = Path(__file__).parent / "completions"
SHELLS = ("console", "bash", "sh")
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ROLLOUT_API_KEY")
"""Variables that hold a key while pages are played."""
BESIDE = {
    "bringing-osmosis-files": {".": ROOT / "tests" / "osmosis_files" / "workspace"},
    "debugging": {"configs": ROOT / "configs"},
    "simulate": {"configs": ROOT / "configs"},
}
"""What lies in the folder in which the commands of a page run: name there -> what is copied."""

MARK = re.compile(r"<!-- (file|append|shows|in|unchecked): (.+) -->")
MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A fenced block. `line` is that of its first line of text, from 1; `mark` is empty where there is none."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    value: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def tokens_of(page: Path) -> list[Token]:
    return MARKDOWN.parse(page.read_text(encoding="utf-8"))


def blocks_of(page: Path) -> list[Block]:
    """The blocks of `page`. An indented one has the language "indented"."""
    found, before = [], ""
    for token in tokens_of(page):
        if token.type in ("fence", "code_block") and token.map is not None:
            language = token.info.strip() if token.type == "fence" else "indented"
            mark = MARK.fullmatch(before.strip())
            said = mark.groups() if mark else ("", "")
            found.append(Block(page, token.map[0] + 2, language, token.content, *said))
        before = token.content if token.type == "html_block" else ""
    return found


@dataclass
class Step:
    """Something a reader does: a command with what it shows, or a file that is written; what it printed is `output`."""

    script: str
    shown: str | None = None
    place: str = ""
    command: bool = False
    output: str = field(default="", compare=False)

    @property
    def is_right(self) -> bool:
        """Whether it printed what is shown."""
        return self.shown is None or same(comparable(self.shown), comparable(self.output))


def steps_of(blocks: list[Block]) -> Iterator[Step]:
    for block in blocks:
        if block.mark == "unchecked":
            continue
        if block.mark in ("file", "append"):
            yield Step(writing(block), "", block.place)
        elif block.mark == "shows":
            yield Step(f"cat {shlex.quote(block.value)}", block.text, block.place)
        elif block.language == "console":
            yield from commands_of(block)
        elif block.language in SHELLS:
            yield Step(f"set -e\n{block.text}\nset +e", None, block.place)


def writing(block: Block) -> str:
    path, arrow = shlex.quote(block.value), ">>" if block.mark == "append" else ">"
    # An appended part stands apart from what is there.
    text = f"\n{block.text}" if block.mark == "append" else block.text
    lines = [f"mkdir -p $(dirname {path})", f"cat {arrow} {path} <<'END OF FILE'\n{text}END OF FILE"]
    if block.language == "toml" and block.value.endswith("workflow.toml"):
        lines.append(f"osmosis-run validate -q {path}")
    return "\n".join(lines)


def commands_of(block: Block) -> Iterator[Step]:
    """Each `$ ` line, with its continuations and here-documents, and what stands under it."""
    line = block.line
    for part in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE):
        command, _, shown = part.removeprefix("$ ").partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command}\n{more}"
        if command:
            yield Step(command, shown, f"{block.page.name}:{line}", command=True)
        line += part.count("\n")


@dataclass(frozen=True)
class Ports:
    """The ports that pages name, each with one that is free here."""

    free: dict[str, str]

    def here(self, text: str) -> str:
        for named, free in self.free.items():
            text = re.sub(rf"(?<=[: ]){named}\b", free, text)
        return text

    def there(self, text: str) -> str:
        for named, free in self.free.items():
            text = text.replace(free, named)
        return text


def free_ports(*named: str) -> Ports:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in named]
    free = {name: str(each.getsockname()[1]) for name, each in zip(named, held, strict=True)}
    for each in held:
        each.close()
    return Ports(free)


@contextmanager
def warm(folder: Path) -> Iterator[Path]:
    """`folder` with an `osmosis-run` in it that starts at once: see warm.py."""
    words = [sys.executable, str(Path(__file__).with_name("warm.py")), str(folder / "s"), str(folder / "osmosis-run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment()) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield folder
        finally:
            process.kill()


def environment() -> dict[str, str]:
    ours = ("OSMOSIS_", "NO_COLOR", "FORCE_COLOR")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**clean, **dict.fromkeys(KEYS, "none"), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}


BACKGROUND = """\
{command} > .background 2>&1 &
for _ in {{1..400}}; do sleep 0.05; [ -s .background ] && [ "$(stat -c %s .background)" = "$size" ] && break
size=$(stat -c %s .background); done; cat .background"""


def play(steps: list[Step], folder: Path, bin: Path, ports: Ports) -> None:
    """Do all steps in one shell, so that `cd` and what runs beside hold; each step gets its output."""
    mark = "=== next ==="
    script = ["trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
    for step in steps:
        command = ports.here(step.script)
        if command.endswith(" &"):
            command = BACKGROUND.format(command=command.removesuffix(" &"))
        script.append(f"{{ {command}\n}} 2>&1; echo '{mark}'")
    path = os.pathsep.join([str(bin), str(Path(sys.executable).parent), os.environ["PATH"]])
    port = {"OSMOSIS_RUN__SERVE__PORT": ports.free["9000"]} if "9000" in ports.free else {}
    # Into files: what runs beside the shell and outlives it would hold a pipe open.
    with (folder / ".stdout").open("wb") as stdout, (folder / ".stderr").open("wb") as stderr:
        subprocess.run(
            ["bash", "-c", "\n".join(script)], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=folder,
            timeout=120, check=False, env={**environment(), "PATH": path, **port},
        )  # fmt: skip
    outputs = (folder / ".stdout").read_text(encoding="utf-8").split(f"{mark}\n")
    told = (folder / ".stderr").read_text(encoding="utf-8")
    for step, output in zip(steps, outputs, strict=False):
        step.output = ports.there(output)
    last = steps[min(len(outputs), len(steps)) - 1]
    assert len(outputs) == len(steps) + 1, f"{last.place}: {last.script}\n{last.output}\n{told}"


CHANGING = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"[\d,.]+ rollouts/s|\d[\d,.]*/s"), "#"),
    (re.compile(r"\b\d[\d,.]* ?(?:ms|s|µs)\b"), "#"),
    (re.compile(r"127\.0\.0\.1:\d{5}"), "127.0.0.1:#"),
    (re.compile(r"(\"pid\": |pid )\d+"), r"\1#"),
    (re.compile(r"\b[0-9a-f]{12,}\b"), "#"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ][\d:.]+Z?"), "#"),
    (re.compile(r"([─━·])[─━·]+"), r"\1"),
    (re.compile(r"\s+"), " "),
]


def comparable(output: str) -> list[str]:
    return [_without_what_changes(line).strip() for line in output.strip().splitlines()]


def _without_what_changes(line: str) -> str:
    for pattern, put in CHANGING:
        line = pattern.sub(put, line)
    return line


def same(shown: list[str], found: list[str]) -> bool:
    """Whether `found` is what is shown; `…` stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def missing_tools(steps: list[Step]) -> list[str]:
    """Commands that a page uses, beside those that every system has, and that this machine lacks."""
    return [name for name in ("curl", "openssl", "sqlite3") if any(f"{name} " in step.script for step in steps)
            and shutil.which(name) is None]  # fmt: skip


def play_page(page: Path, blocks: list[Block], folder: Path, bin: Path) -> list[Step]:
    """Do in `folder` what `page` says; its steps with their outputs."""
    steps = list(steps_of(blocks))
    beside = {page.parent.name: page.parent, "arithmetic": ROOT / "configs" / "arithmetic"}
    for name, source in (beside if page.parent.parent.name == "configs" else BESIDE.get(page.stem, {})).items():
        shutil.copytree(source, folder / name, dirs_exist_ok=True)
    if steps:
        play(steps, folder, bin, free_ports("9000", "8001"))
    return steps
