"""What the first generation's `test` and `eval` were made of: its reader of datasets, and its model for trials.

The commands here use the engine instead; these are for code that was written against the library.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.datasets.dataset import DatasetError
from runner.datasets.open import open_dataset
from runner.models.retry import Retries
from runner.records.completion import Caller, Sampling, ToolSpec
from runner.records.failure import ModelError, ModelRefused, ModelUnavailable
from runner.sdk.library_errors import (
    DatasetParseError,
    DatasetValidationError,
    ProviderError,
    SystemicProviderError,
    ToolValidationError,
)
from runner.workflows.loop.completions import CompletionsResult, MessageDict
from runner.workflows.loop.hosted_model import result_of
from runner.workflows.loop.messages import normalize_stop
from runner.workflows.loop.result import RolloutMetrics
from runner.workflows.loop.tool_schemas import spec_of

if TYPE_CHECKING:
    from runner.datasets.open import FileDataset
    from runner.models.model import Model

COLUMNS = ("system_prompt", "user_prompt", "ground_truth")
_TOOL_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
_SAID = 200
"""Characters of a provider's message that an error shows."""


class DatasetReader:
    """Rows of a JSON Lines, CSV or Parquet file with the three columns, whose names may be in any letters.

    Raises FileNotFoundError, and `DatasetParseError` for a file that is none of these.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(self.path)
        self._dataset = self._opened()

    def __len__(self) -> int:
        return self._dataset.count()

    def read(self, limit: int | None = None, offset: int = 0) -> list[dict[str, Any]]:
        """The rows behind `offset`, `limit` at most. Raises `DatasetParseError` and `DatasetValidationError`."""
        names = self._names()
        rows: list[dict[str, Any]] = []
        try:
            for row in self._dataset.rows():
                if row.index < offset:
                    continue
                if limit is not None and len(rows) >= limit:
                    break
                rows.append(_checked(row.index, {names.get(name, name): value for name, value in row.data.items()}))
        except DatasetError as error:
            raise DatasetParseError(str(error)) from error
        return rows

    def _opened(self) -> FileDataset:
        try:
            return open_dataset(self.path)
        except DatasetError as error:
            raise DatasetParseError(str(error)) from error

    def _names(self) -> dict[str, str]:
        known = self._dataset.columns()
        names = {name: name.lower() for name in known if name.lower() in COLUMNS}
        missing = [name for name in COLUMNS if name not in names.values()]
        if missing:
            raise DatasetValidationError(f"{self.path.name} has no column {', '.join(missing)}")
        return names


def _checked(index: int, row: dict[str, Any]) -> dict[str, Any]:
    for name in COLUMNS:
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            found = "null" if value is None else "blank" if isinstance(value, str) else type(value).__name__
            raise DatasetValidationError(f"row {index}: {name} must be a text that is not blank, found {found}")
    return row


class ExternalLLMClient:
    """A model for trials, with the methods of `ctx.llm`: a bare name is one of OpenAI's.

    Raises `SystemicProviderError` where no other call would be answered either, `ProviderError` for anything else.
    """

    def __init__(self, model: str = "gpt-5-mini", api_key: str | None = None, base_url: str | None = None) -> None:
        plain = "/" in model and base_url is None
        self.model = model if plain or model.startswith("openai/") else f"openai/{model}"
        self._model = open_model(self.model, api_key, base_url)
        self._tools: tuple[ToolSpec, ...] = ()
        self.reset_metrics()

    def set_tools(self, tools: Sequence[Any] | None) -> None:
        """The tools that calls offer from now on. Raises `ToolValidationError`."""
        self._tools = tuple(map(_tool, tools or ()))

    def clear_tools(self) -> None:
        """Offer no tools any more."""
        self._tools = ()

    def reset_metrics(self) -> None:
        """Count from nothing."""
        self._calls = self._prompt = self._answered = 0
        self._seconds = 0.0

    def get_metrics(self) -> RolloutMetrics:
        """What the calls took so far."""
        return RolloutMetrics(
            llm_latency_ms=self._seconds * 1000,
            num_llm_calls=self._calls,
            prompt_tokens=self._prompt,
            response_tokens=self._answered,
        )

    async def preflight_check(self) -> None:
        """Ask for one token. A rate limit passes."""
        try:
            await self.chat_completions([{"role": "user", "content": "hi"}], max_tokens=1)
        except SystemicProviderError:
            raise
        except ProviderError as error:
            if "429" not in str(error):
                raise

    async def chat_completions(self, messages: Sequence[MessageDict], **kwargs: Any) -> CompletionsResult:
        """Ask the model. Keywords are `temperature, top_p, max_tokens, stop`; others are dropped."""
        sampling = Sampling(
            temperature=kwargs.get("temperature"),
            top_p=kwargs.get("top_p"),
            max_tokens=kwargs.get("max_tokens"),
            stop=tuple(normalize_stop(kwargs.get("stop")) or ()),
        )
        began = time.monotonic()
        try:
            completion = await self._model.complete(list(messages), self._tools, sampling, Caller("trial"))
        except ModelError as error:
            raise self._as_theirs(error, (time.monotonic() - began) * 1000) from error
        self._calls += 1
        self._seconds += completion.latency
        if completion.usage is not None:
            self._prompt += completion.usage.input_tokens
            self._answered += completion.usage.output_tokens
        return result_of(completion)

    def _as_theirs(self, error: ModelError, spent: float) -> ProviderError:
        systemic = isinstance(error, ModelRefused) and error.status in (401, 403, 404)
        systemic = systemic or (isinstance(error, ModelUnavailable) and error.status is None)
        kind = SystemicProviderError if systemic else ProviderError
        return kind(str(error)[:_SAID], spent, self._prompt + self._answered)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._model.aclose()

    async def __aenter__(self) -> ExternalLLMClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _tool(tool: Any) -> ToolSpec:
    try:
        spec = spec_of(tool)
    except (TypeError, ValueError) as error:
        raise ToolValidationError(str(error)) from error
    if not _TOOL_NAME.fullmatch(spec.name):
        raise ToolValidationError(f"no model can call a tool named {spec.name!r}: letters, digits and `_`")
    if spec.parameters.get("type") != "object":
        raise ToolValidationError(f"the parameters of {spec.name!r} must be of type 'object'")
    return spec


def open_model(
    model: str, api_key: str | None, base_url: str | None, headers: Mapping[str, str] | None = None
) -> Model:
    """The model behind a LiteLLM name: OpenAI's protocol directly, any other through LiteLLM."""
    import os

    retries = Retries(3, 10.0)
    if base_url is not None or model.startswith("openai/"):
        from runner.models.chat import OPENAI, ChatModel

        key = api_key or (os.environ.get("OPENAI_API_KEY") if base_url is None else None)
        return ChatModel(model=model, base_url=base_url or OPENAI, api_key=key, headers=headers or {}, retries=retries)
    from runner.models.litellm import LiteLLMModel

    return LiteLLMModel(model=model, api_key=api_key, headers=headers or {}, retries=retries)


__all__ = ["COLUMNS", "DatasetReader", "ExternalLLMClient", "open_model"]
