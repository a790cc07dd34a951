"""`LiteLLMModel`: every provider that is not OpenAI-compatible, through litellm, which only this file imports.

litellm takes seconds to import, so it is imported at the first call, in a thread, with everything quiet; its own
retries are off, because ours honour deadlines and limits.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from runner.models.attempts import Persistence
from runner.models.limiter import Limiter
from runner.models.messages_api import PAUSED, as_said
from runner.models.price import Price
from runner.models.quiet import hush
from runner.models.refusal import Refusals, Setback, Veil, is_overflow, words_in
from runner.models.request import Options, request_body
from runner.models.retry import Clock, Retries, SystemClock, retry_after
from runner.models.wire import error_in, excerpt, gave_up, parse_answer
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ModelGarbled
from runner.records.message import Message

_importing = threading.Lock()
_users: set[int] = set()
"""The models that are open: litellm shares its connections among them all, so the last one closes them."""


def load() -> Any:
    """Import litellm, quietly: no telemetry, no price table from the network, no prints. Takes seconds; thread-safe."""
    with _importing:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_TELEMETRY", "False")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import litellm
        hush()
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = False
        litellm.num_retries = 0
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        return litellm


@dataclass(kw_only=True, eq=False)
class LiteLLMModel:
    """A model by its litellm name, such as `anthropic/claude-sonnet-4-5`.

    `key_name` is the environment variable the key came from; without a key litellm looks in the provider's own
    variable. `timeout` is in seconds for each try. Without a `price`, the cost is litellm's own reckoning.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None
    key_name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 120.0
    retries: Retries = field(default_factory=Retries)
    limiter: Limiter | None = None
    price: Price | None = None
    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        veil = Veil([self.api_key, *self.headers.values()])
        # litellm reads keys from the environment by itself, so a missing one is not "no key was sent".
        self._refusals = Refusals(self.model, self.model, veil, self.key_name, has_key=True, direct=False)
        self._persistence = Persistence(self.retries, self.limiter, self.clock, self.rng)
        self._litellm: Any = None

    async def open(self) -> None:
        """Import litellm now instead of at the first call."""
        if self._litellm is None:
            _users.add(id(self))
            self._litellm = await asyncio.to_thread(load)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """One completion. See `Model.complete` for the errors."""
        # The same check as on the direct path: a request that is no JSON is refused before litellm sees it.
        body = request_body(self.model, messages, tools, sampling, Options())
        await self.open()
        words = self._words(messages, tools, sampling)

        async def once() -> Completion:
            return await self._once(words)

        return await self._persistence(once, len(body) // 4 + (sampling.max_tokens or 0))

    async def aclose(self) -> None:
        """Close litellm's shared connections, if no other model uses them."""
        litellm, self._litellm = self._litellm, None
        _users.discard(id(self))
        if litellm is None or _users:
            return
        from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

        await close_litellm_async_clients()  # type: ignore[no-untyped-call]
        # It keeps closed clients and would use them again.
        litellm.in_memory_llm_clients_cache.flush_cache()

    def _words(self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling) -> dict[str, Any]:
        # litellm edits what it is given; each rollout's messages are its own.
        words: dict[str, Any] = {"model": self.model, "messages": [dict(message) for message in messages]}
        settings = {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "seed")}
        words.update({name: value for name, value in settings.items() if value is not None})
        if sampling.stop:
            words["stop"] = list(sampling.stop)
        if tools:
            words["tools"] = [tool.wire() for tool in tools]
        if self.base_url:
            words["base_url"] = self.base_url
        if self.api_key:
            words["api_key"] = self.api_key
        if self.headers:
            words["extra_headers"] = dict(self.headers)
        words.update(sampling.extra)
        return words

    async def _once(self, words: dict[str, Any]) -> Completion:
        """One try. Raises Setback."""
        hush()
        started, body = self.clock.monotonic(), _Body()
        try:
            async with asyncio.timeout(self.timeout):
                # With tools litellm imports its proxy's MCP handler, which needs a package that it does not depend on.
                response = await self._litellm.acompletion(
                    **words, timeout=self.timeout, num_retries=0, max_retries=0, _skip_mcp_handler=True, logger_fn=body
                )
            answer = as_said(_unmasked(response.model_dump(warnings=False)), body.text)
        except TimeoutError:
            raise self._refusals.unavailable(f"no answer within {self.timeout:g} s") from None
        except Exception as error:
            raise self._setback(error) from error
        latency = self.clock.monotonic() - started
        reported = error_in(answer)
        if reported is not None:
            raise self._refusals.from_error(reported)
        reason = gave_up(answer)
        if reason:
            raise self._refusals.unavailable(f"the endpoint broke off its answer (finish_reason `{reason}`)")
        try:
            completion = parse_answer(answer, latency=latency, price=self.price)
        except ModelGarbled as error:
            raise self._refusals.garbled(str(error)) from None
        if completion.finish_reason == PAUSED:
            advice = "leave tools that the provider runs out of `[sampling] extra`"
            raise self._refusals.refused(
                None, f"the provider paused its turn (`{PAUSED}`), and no agent here resumes one; {advice}"
            )
        if completion.cost is None and completion.usage is not None:
            completion = replace(completion, cost=self._cost(response))
        return completion

    def _cost(self, response: Any) -> float | None:
        """litellm's reckoning, or None for a model it has no price for."""
        try:
            return float(self._litellm.completion_cost(completion_response=response, model=self.model))
        except Exception:
            return None  # it raises a plain Exception for an unknown model; an unknown price is no error

    def _setback(self, error: Exception) -> Setback:
        """litellm's exceptions are the openai client's, with a `status_code` each."""
        litellm = self._litellm
        raw = str(getattr(error, "message", "") or error)
        said = _said(raw)
        if isinstance(error, litellm.ContextWindowExceededError) or (
            isinstance(error, litellm.BadRequestError) and is_overflow(said)
        ):
            return self._refusals.overflow(400, said)
        if isinstance(error, litellm.APIConnectionError):
            return self._refusals.unavailable(said)
        if isinstance(error, litellm.Timeout) and "{" not in raw:  # with a body it is an answer, of status 408 or 504
            return self._refusals.unavailable(f"no answer within {self.timeout:g} s")
        if isinstance(error, litellm.UnsupportedParamsError):
            advice = "take it out of [sampling], or leave that to litellm: `[sampling] extra = { drop_params = true }`"
            return self._refusals.refused(400, f"{said.partition(' To drop these')[0].rstrip('. ')}; {advice}")
        status = getattr(error, "status_code", None)
        status = _STATUS_OF.get(_kind_in(raw), status if isinstance(status, int) else 500)
        # The exception's own response is often one that litellm made up, without headers.
        headers = getattr(error, "litellm_response_headers", None)
        headers = headers or getattr(getattr(error, "response", None), "headers", None) or {}
        named = {name.lower(): text for name, text in headers.items()}
        wait = retry_after(named, self.clock.time(), raw.encode("utf-8", "replace"))
        return self._refusals.from_status(status, said.encode(), wait)


_STATUS_OF = {"overloaded_error": 529, "request_too_large": 413, "timeout_error": 504}
"""What a provider answered where litellm has another status for it."""


class _Body:
    """Hears from litellm what the provider answered, word for word; `text` is empty where it does not tell."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, details: Mapping[str, Any]) -> None:
        said = details.get("original_response")
        self.text = said if isinstance(said, str) else ""


def _unmasked(answer: Any) -> Any:
    """litellm maps every finish reason to OpenAI's, even "error" to "stop", and puts the endpoint's own words aside."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(choice.get("provider_specific_fields"), dict):
        return answer
    aside = choice["provider_specific_fields"]
    unmasked = {**choice, "error": aside.get("error"), "finish_reason": aside.get("native_finish_reason")}
    found = {**answer, "choices": [unmasked]}
    return found if unmasked["error"] is not None or gave_up(found) else answer


def _said(text: str) -> str:
    """The provider's own words within litellm's."""
    body = _body_in(text)
    return excerpt(text.removeprefix("litellm.")) if body is None else words_in(body)


def _kind_in(text: str) -> str:
    """The type that a quoted error body names; empty if it names none."""
    error = error_in(_body_in(text))
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) else ""


def _body_in(text: str) -> dict[str, Any] | None:
    """The JSON body of the provider's answer, which litellm quotes whole."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        body, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
