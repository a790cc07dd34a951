"""From an exception of a tool to the sentence the model reads and the place its author needs."""

from __future__ import annotations

import traceback
from pathlib import Path
from sysconfig import get_paths

from runner.tools.output import Unsayable, cap, sendable
from runner.tools.tool import ToolResult

_OURS = str(Path(__file__).parent)
_LIBRARIES = tuple(get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
_MOST_FRAMES = 20
_MOST_CHARACTERS = 4_000


def faulted(error: BaseException) -> ToolResult:
    """The answer to a call that raised: `TypeName: message`, no traceback; the frame and the traceback apart."""
    if isinstance(error, Unsayable):
        return ToolResult(f"The tool returned something that cannot be sent: {error}.", "error")
    frames = [frame for frame in _frames(error) if not frame.filename.startswith(_OURS)]
    return ToolResult(_sentence(error), "error", where=_where(frames), detail=_detail(error, frames))


def _sentence(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception as second:
        message = f"(its message raised {type(second).__name__})"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def _where(frames: list[traceback.FrameSummary]) -> str:
    """The innermost frame of the user's own code, or the innermost at all."""
    own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
    if not (own or frames):
        return ""
    frame = (own or frames)[-1]
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _detail(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    lines = traceback.format_list(frames[-_MOST_FRAMES:])
    said, _ = cap(_sentence(error), _MOST_CHARACTERS)
    return sendable("Traceback (most recent call last):\n" + "".join(lines) + said) if lines else sendable(said)
