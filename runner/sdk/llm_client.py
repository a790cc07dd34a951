"""`OsmosisLLMClient`: the first generation's wire to a training cluster, for code that speaks it by itself.

A loop that the runner hosts has another client in `ctx.llm`, with the same methods. Nothing here is jittered: the
pauses are those that the SDK documents.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from runner.models.retry import Clock, SystemClock
from runner.models.transport import Transport, TransportError
from runner.workflows.loop.completions import CompletionsRequest, CompletionsResponse, CompletionsResult, MessageDict
from runner.workflows.loop.errors import (
    OsmosisServerError,
    OsmosisTimeoutError,
    OsmosisTransportError,
    OsmosisValidationError,
)
from runner.workflows.loop.messages import normalize_stop
from runner.workflows.loop.request import RolloutResponse
from runner.workflows.loop.result import RolloutMetrics
from runner.workflows.loop.settings import RolloutClientSettings, get_settings

_SAID = 500
"""Characters of an answer's body that an error shows."""


class OsmosisLLMClient:
    """Chat and completion of one rollout. What is None is as in the settings, which are the process's by default.

    It opens no connection before it is used; `close` it, or use it in `async with`.
    """

    def __init__(
        self,
        server_url: str,
        rollout_id: str,
        api_key: str | None = None,
        timeout_seconds: float | None = None,
        max_retries: int | None = None,
        complete_rollout_retries: int | None = None,
        settings: RolloutClientSettings | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        said = settings or get_settings().client
        self.server_url = server_url.rstrip("/")
        self.rollout_id = rollout_id
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._timeout = said.timeout_seconds if timeout_seconds is None else timeout_seconds
        self._retries = said.max_retries if max_retries is None else max_retries
        self._completed = (
            said.complete_rollout_retries if complete_rollout_retries is None else complete_rollout_retries
        )
        self._base, self._most = said.retry_base_delay, said.retry_max_delay
        self._clock = clock or SystemClock()
        self._transports: dict[str, Transport] = {}
        self._metrics = RolloutMetrics()

    async def __aenter__(self) -> OsmosisLLMClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        while self._transports:
            await self._transports.popitem()[1].aclose()

    def get_metrics(self) -> RolloutMetrics:
        """What the calls took so far. A copy."""
        return self._metrics.model_copy()

    async def chat_completions(
        self,
        messages: Sequence[MessageDict],
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 512,
        stop: Any = None,
        logprobs: bool = True,
        **ignored: Any,
    ) -> CompletionsResult:
        """Ask the model. `model` in `ignored` names another one; other keywords are dropped.

        Raises `OsmosisValidationError` (4xx, or an answer that is none), `OsmosisServerError` (5xx),
        `OsmosisTimeoutError` and `OsmosisTransportError`, the last three after all retries.
        """
        asked = CompletionsRequest(
            model=ignored.get("model") or "default", messages=list(messages), rollout_id=self.rollout_id,
            temperature=temperature, top_p=top_p, max_tokens=max_tokens, stop=normalize_stop(stop), logprobs=logprobs,
        )  # fmt: skip
        began = time.monotonic()
        body = await self._post("/v1/chat/completions", asked.model_dump(exclude_none=True), self._retries)
        return self._answered(body, (time.monotonic() - began) * 1000)

    async def complete_rollout(
        self,
        status: str,
        final_messages: Sequence[MessageDict],
        finish_reason: str = "stop",
        error_message: str | None = None,
        metrics: RolloutMetrics | None = None,
        reward: float | None = None,
    ) -> None:
        """Tell the cluster how the rollout ended. Raises as `chat_completions` does, ValueError for what is no JSON."""
        told = RolloutResponse(
            rollout_id=self.rollout_id, status=str(status), final_messages=list(final_messages),
            finish_reason=finish_reason, error_message=error_message, metrics=metrics, reward=reward,
        )  # fmt: skip
        fields = {name: value for name, value in told.model_dump().items() if value is not None}
        await self._post("/v1/rollout/completed", fields, self._completed)

    async def _post(self, path: str, fields: Mapping[str, Any], retries: int) -> bytes:
        body = json.dumps(fields, allow_nan=False).encode()
        for tried in range(retries + 1):
            try:
                return await self._try(path, body)
            except (OsmosisServerError, OsmosisTimeoutError, OsmosisTransportError):
                if tried == retries:
                    raise
                await self._clock.sleep(min(self._base * 2.0**tried, self._most))
        raise AssertionError("unreachable")

    async def _try(self, path: str, body: bytes) -> bytes:
        url = self.server_url + path
        try:
            if path not in self._transports:
                self._transports[path] = Transport(url, self._headers, timeout=self._timeout)
            answer = await self._transports[path].post(body)
        except TransportError as error:
            kind = OsmosisTimeoutError if error.timed_out else OsmosisTransportError
            raise kind(f"{url}: {error}") from error
        if answer.status == 200:
            return answer.body
        said = answer.body[:_SAID].decode("utf-8", "replace")
        if answer.status >= 500:
            raise OsmosisServerError(f"{url} answered {answer.status}: {said}", answer.status)
        odd = "" if answer.status >= 400 else "Unexpected status code "
        raise OsmosisValidationError(f"{url}: {odd}{answer.status}: {said}", answer.status)

    def _answered(self, body: bytes, latency_ms: float) -> CompletionsResult:
        try:
            answer = CompletionsResponse.model_validate_json(body)
            choice = answer.choices[0]
        except (ValueError, IndexError) as error:
            raise OsmosisValidationError(f"the answer is no chat completion: {error}", 200) from error
        usage = {} if answer.usage is None else answer.usage.model_dump()
        self._metrics.llm_latency_ms += latency_ms
        self._metrics.num_llm_calls += 1
        self._metrics.prompt_tokens += usage.get("prompt_tokens", 0)
        self._metrics.response_tokens += usage.get("completion_tokens", 0)
        finish = choice.finish_reason or "stop"
        return CompletionsResult(choice.message, answer.token_ids or [], answer.logprobs or [], usage, finish)
