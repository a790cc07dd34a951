"""Keeps litellm's own Python warnings from the user's terminal, and nobody else's.

Filters cannot ask who warned: pydantic warns in its own name about the classes of whoever uses it. So whatever is shown
is looked at once more: a warning raised beneath a call of litellm is litellm's. Both are looked after again before each
call, because any `warnings.catch_warnings` that ends meanwhile, in whatever thread, takes them away.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any, TextIO

_THEIRS = ("litellm", "openai")
_MODULES = r"(litellm|openai)(\.|$)"
_before: Any = None


def hush() -> None:
    """Make sure that warnings of litellm are not shown, nor turned into errors where the user asked for that."""
    global _before
    if warnings.showwarning is not _show:
        _before = warnings.showwarning
        warnings.showwarning = _show
    if not any(entry[0] == "ignore" and entry[3] is not None and _is_ours(entry[3]) for entry in warnings.filters):
        warnings.filterwarnings("ignore", module=_MODULES)
        # Under `-W error` a warning is raised before it is shown, so those known to come have to be named.
        warnings.filterwarnings(
            "ignore", message=r"Item '\w+' on TypedDict class '(ChatCompletion|Response|OpenAI)\w*'"
        )
        warnings.filterwarnings(
            "ignore",
            message=r"(?s)Pydantic serializer warnings:.*(Choices|ModelResponse|TokensDetails|input_value=Message\()",
        )


def _is_ours(pattern: Any) -> bool:
    return getattr(pattern, "pattern", None) == _MODULES


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _THEIRS:
            return
        frame = frame.f_back
    _before(message, category, filename, lineno, file, line)
