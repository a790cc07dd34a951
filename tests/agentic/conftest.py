"""LLM functions that say what a test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from runner.agentic import clear_registry


@dataclass
class Says:
    """An LLM function: gives `answers` in order, the last for ever; raises exceptions. `asked` is what it was given."""

    answers: tuple[Any, ...]
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, messages: list[dict[str, Any]], **more: Any) -> Any:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append({"messages": messages, **more})
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def says() -> Callable[..., Says]:
    return lambda *answers: Says(answers)


@pytest.fixture(autouse=True)
def clean_registry() -> Iterator[None]:
    yield
    clear_registry()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "LLM_API_KEY",
                 "LLM_BASE_URL", "LLM_MODEL_NAME", "AGENTIC_LOG_LEVEL", "AGENTIC_SAVE_TRAJECTORIES"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
