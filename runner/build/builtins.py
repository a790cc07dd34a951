"""`[tools.NAME] builtin` to a tool: our own parts, with the section's keys as their arguments."""

from __future__ import annotations

from dataclasses import replace

from runner.config.builtins import (
    BashTool,
    CalculatorTool,
    FileEditorTool,
    FinishTool,
    PythonTool,
    SandboxedTool,
    SearchTool,
    ThinkTool,
)
from runner.config.config import RolloutConfig
from runner.config.tools import ToolSection
from runner.records.completion import ToolSpec
from runner.tools.builtin import bash, calculator, file_editor, notes, python, search
from runner.tools.builtin.tool import Act, BuiltinTool, alone, with_history, with_search, with_session
from runner.tools.builtin.tree import EXCLUDED


def build_builtin(config: RolloutConfig, name: str, section: ToolSection) -> BuiltinTool:
    """The tool. Its sandbox is checked by whoever checks names; a name that is none is never asked for."""
    timeout = section.timeout or config.limits.tool_time
    spec, act = _made(config, name, section, timeout)
    keeps_time = isinstance(section, BashTool | PythonTool)
    return BuiltinTool(
        replace(spec, description=section.description) if section.description else spec,
        act,
        timeout=None if keeps_time else timeout,
        limit=section.concurrency,
        max_output=section.max_output + (_WORDS if keeps_time else 0),
    )


_WORDS = 300
"""Characters that a shell's result may have beyond its output, to say how the command ended."""


def _made(config: RolloutConfig, name: str, section: ToolSection, timeout: float | None) -> tuple[ToolSpec, Act]:
    match section:
        case CalculatorTool():
            calculates = calculator.Calculator(section.precision)
            return calculates.spec(name), alone(calculates)
        case ThinkTool():
            return notes.Think().spec(name), alone(notes.Think())
        case FinishTool():
            return notes.Finish().spec(name), alone(notes.Finish())
        case SandboxedTool():
            return _sandboxed(name, config.sandbox_of(section), section, timeout)
    raise TypeError(f"{type(section).__name__} is no built-in tool")


def _sandboxed(name: str, where: str, section: SandboxedTool, timeout: float | None) -> tuple[ToolSpec, Act]:
    match section:
        case BashTool():
            shell = bash.Bash(timeout=timeout or bash.TIMEOUT, max_output=section.max_output)
            return shell.spec(name), with_session(name, where, shell)
        case PythonTool():
            seconds = timeout or bash.TIMEOUT
            code = python.PythonTool(timeout=seconds, max_output=section.max_output, interpreter=section.interpreter)
            return code.spec(name), with_session(name, where, code)
        case FileEditorTool():
            editor = file_editor.FileEditor(
                max_file_size=section.max_file_size,
                allowed_extensions=section.allowed_extensions,
                overwrite=section.overwrite,
                check_syntax=section.check_syntax,
            )
            return editor.spec(name), with_history(name, where, editor)
        case SearchTool():
            finds = search.Search(
                max_results=section.max_results,
                max_file_size=section.max_file_size,
                exclude=EXCLUDED if section.exclude is None else section.exclude,
                extensions=section.extensions,
                ripgrep=section.ripgrep,
            )
            return finds.spec(name), with_search(name, where, finds)
    raise TypeError(f"{type(section).__name__} is no built-in tool")
