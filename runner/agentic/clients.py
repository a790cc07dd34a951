"""Clients of models, for whoever has no LLM function of their own: `create_llm_client`, and one for Claude.

OpenAI and whatever speaks its protocol goes over our own chat path, every other provider through LiteLLM. Called, or
by `generate`, a client gives the text; its `completion` has the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from runner.agentic.reply import Reply
from runner.records.completion import Caller, Sampling
from runner.runtime.sampling import merge_sampling
from runner.workflows.loop.tool_schemas import spec_of

if TYPE_CHECKING:
    from runner.models.model import Model

Provider: TypeAlias = Literal["openai", "anthropic"]

_ASKER = Caller("llm-client")
_MODEL = "LLM_MODEL_NAME"


class LLMClient:
    """A model as an LLM function. `model` is the engine's; `close` it when it is not needed any more."""

    def __init__(
        self, model: Model, *, name: str, temperature: float | None = None, max_tokens: int | None = None
    ) -> None:
        self.model = model
        self.name = name
        self._sampling = Sampling(temperature=temperature, max_tokens=max_tokens)

    async def generate(
        self,
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int | None = None,
        temperature: float | None = None,
        tools: Sequence[Any] | None = None,
        **sampling: Any,
    ) -> Reply:
        """An answer. Other keywords are keys of `[sampling]`, or go into the request. Raises a `ModelError`."""
        said = {"max_tokens": max_tokens, "temperature": temperature}
        said = {key: value for key, value in said.items() if value is not None}
        how = merge_sampling(self._sampling, {**sampling, **said})
        asked = [dict(message) for message in messages]
        return Reply(await self.model.complete(asked, [spec_of(tool) for tool in tools or ()], how, _ASKER))

    __call__ = generate

    async def close(self) -> None:
        """Close its connections."""
        await self.model.aclose()

    async def __aenter__(self) -> LLMClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def create_llm_client(
    model: str | None = None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    provider: Provider | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    timeout: float = 120.0,
    environ: Mapping[str, str] = os.environ,
) -> LLMClient:
    """A client. What is not said comes from the environment: LLM_MODEL_NAME, LLM_API_KEY, LLM_BASE_URL, and by the
    provider OPENAI_API_KEY and OPENAI_BASE_URL, or ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL.

    The provider is `anthropic` for a model called so, `claude-…`, or where only Anthropic's variables are there. Raises
    ValueError where nobody names a model, or OpenAI's or Anthropic's own service has no key.
    """
    name = model or environ.get(_MODEL) or ""
    if not name:
        raise ValueError(f"nobody says which model answers: give `llm_generate_func`, or set {_MODEL} and its key")
    which = provider or _provider(name, base_url, environ)
    prefix = which.upper()
    key_name = next((each for each in ("LLM_API_KEY", f"{prefix}_API_KEY") if environ.get(each)), f"{prefix}_API_KEY")
    key = api_key or environ.get(key_name) or None
    address = base_url or environ.get("LLM_BASE_URL") or environ.get(f"{prefix}_BASE_URL") or None
    if key is None and address is None:
        raise ValueError(f"the model {name!r} has no key: set {prefix}_API_KEY, or give `api_key`")
    made = (_openai if which == "openai" else _anthropic)(name, key, address, key_name, timeout)
    return LLMClient(made, name=name, temperature=temperature, max_tokens=max_tokens)


def _provider(name: str, base_url: str | None, environ: Mapping[str, str]) -> Provider:
    if name.startswith(("anthropic/", "claude")):
        return "anthropic"
    if name.startswith("openai/") or base_url or environ.get("LLM_BASE_URL") or environ.get("OPENAI_API_KEY"):
        return "openai"
    only = environ.get("ANTHROPIC_API_KEY") and not environ.get("OPENAI_BASE_URL")
    return "anthropic" if only else "openai"


def _openai(name: str, key: str | None, address: str | None, key_name: str, timeout: float) -> Model:
    from runner.models.chat import OPENAI, ChatModel

    return ChatModel(model=name, base_url=address or OPENAI, api_key=key, key_name=key_name, timeout=timeout)


def _anthropic(name: str, key: str | None, address: str | None, key_name: str, timeout: float) -> Model:
    from runner.models.litellm import LiteLLMModel

    model = name if name.startswith("anthropic/") else f"anthropic/{name}"
    return LiteLLMModel(model=model, base_url=address, api_key=key, key_name=key_name, timeout=timeout)


class ClaudeAPIClient(LLMClient):
    """Claude, by Anthropic's own protocol. What is not said comes from ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str = "claude-sonnet-4-5",
        *,
        max_tokens: int = 4096,
        timeout: float = 120.0,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        made = create_llm_client(
            model, api_key=api_key, base_url=base_url, provider="anthropic", timeout=timeout, environ=environ
        )
        super().__init__(made.model, name=model, max_tokens=max_tokens)
