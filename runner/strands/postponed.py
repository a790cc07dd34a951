"""`LiteLLMModel` of Strands without the seconds that `import litellm` takes.

Its module imports litellm and openai at its top, and needs neither before a call. So while that module is imported,
stand-ins lie where the two would be found; they are taken away again at once. Whatever of them is used later imports
the real library and puts the real names where the stand-ins were: from then on nothing of ours is left.
"""

from __future__ import annotations

import sys
import threading
import warnings
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from runner.models.litellm import load as load_litellm

if TYPE_CHECKING:
    from strands.models.litellm import LiteLLMModel

_importing = threading.RLock()

_BORROWED = {
    "strands.models.litellm": {
        "litellm": ("litellm", ""),
        "ContextWindowExceededError": ("litellm.exceptions", "ContextWindowExceededError"),
        "supports_response_schema": ("litellm.utils", "supports_response_schema"),
    },
    "strands.models.openai": {
        "openai": ("openai", ""),
        "ParsedChatCompletion": ("openai.types.chat.parsed_chat_completion", "ParsedChatCompletion"),
    },
}
"""Names at the top of a module of Strands, and what they are: a module, or a name in one."""


def litellm_model() -> type[LiteLLMModel]:
    """`strands.models.litellm.LiteLLMModel`. Imports Strands, and litellm only if it is imported already."""
    with _importing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "strands.models.litellm" not in sys.modules:
            _import_with_stand_ins()
        from strands.models.litellm import LiteLLMModel

        return LiteLLMModel


def _import_with_stand_ins() -> None:
    placed: dict[str, ModuleType] = {}
    for module, names in _BORROWED.items():
        if module in sys.modules or _top(names) in sys.modules:
            continue
        for source, name in names.values():
            stand_in = placed.setdefault(source, _StandIn(source, module))
            if name:
                vars(stand_in)[name] = _lent(module, source, name)
    sys.modules.update(placed)
    try:
        import_module("strands.models.litellm")
    finally:
        for source, stand_in in placed.items():
            if sys.modules.get(source) is stand_in:
                del sys.modules[source]


def _top(names: dict[str, tuple[str, str]]) -> str:
    return next(iter(names.values()))[0].partition(".")[0]


class _StandIn(ModuleType):
    """A module that becomes the real one at the first look into it."""

    def __init__(self, name: str, borrower: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__borrower = borrower

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _give_back(self.__borrower)
        return getattr(import_module(self.__name__), name)


def _lent(borrower: str, source: str, name: str) -> Any:
    """What stands for a name: an exception that nobody raises, or a function that fetches the real one."""
    if name.endswith("Error"):
        return type(name, (Exception,), {"__doc__": "Stands for the real one, which cannot be raised yet."})

    def fetch(*arguments: Any, **keywords: Any) -> Any:
        _give_back(borrower)
        return getattr(import_module(source), name)(*arguments, **keywords)

    return fetch


def _give_back(borrower: str) -> None:
    """Import the real library and put its names into `borrower`, where stand-ins are."""
    with _importing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in [place for place, held in sys.modules.items() if isinstance(held, _StandIn)]:
            del sys.modules[place]
        names = _BORROWED[borrower]
        if "litellm" in names:
            load_litellm()
        for name, (source, attribute) in names.items():
            module = import_module(source)
            setattr(sys.modules[borrower], name, getattr(module, attribute) if attribute else module)
