"""`ChatModel`: the direct path to any OpenAI-compatible endpoint, from OpenAI itself to a trainer's own server.

This file joins pure parts: `wire` and `sse` know the bodies, `refusal` the errors, `attempts` the insistence,
`transport` the sockets. Nothing is opened before the first call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from runner.models.attempts import Persistence
from runner.models.limiter import Limiter
from runner.models.price import Price
from runner.models.refusal import Refusals, Veil, place_of
from runner.models.request import Options, max_tokens_key, request_body
from runner.models.retry import Clock, Retries, SystemClock, retry_after
from runner.models.sse import DeltaAssembler, ErrorFrame, EventParser, StreamError
from runner.models.transport import Transport, TransportError
from runner.models.wire import error_in, gave_up, parse_answer, parse_json
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ModelGarbled, ModelRefused
from runner.records.message import Message

OPENAI = "https://api.openai.com/v1"


@dataclass(kw_only=True, eq=False)
class ChatModel:
    """A model behind `POST {base_url}/chat/completions`.

    `model` is the id of the file (`openai/gpt-5-mini` is sent as `gpt-5-mini`); `key_name` the environment variable
    the key came from, for error texts; `timeout` seconds for each try, its streaming included. `return_token_ids`
    asks for token ids and log-probabilities: "auto" stops asking once the endpoint refuses the fields.
    """

    model: str
    base_url: str = OPENAI
    api_key: str | None = None
    key_name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 120.0
    retries: Retries = field(default_factory=Retries)
    limiter: Limiter | None = None
    stream: bool = False
    return_token_ids: bool | Literal["auto"] = "auto"  # noqa: S105 (no password)
    price: Price | None = None
    max_answer: int = 64 * 1024 * 1024
    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        self._url = chat_url(self.base_url)
        self._sent_model = self.model.removeprefix("openai/")
        host = urlsplit(self._url).hostname or ""
        veil = Veil([self.api_key, *self.headers.values()])
        self._refusals = Refusals(self._sent_model, place_of(self._url), veil, self.key_name, bool(self.api_key))
        self._persistence = Persistence(self.retries, self.limiter, self.clock, self.rng)
        # OpenAI itself gives no token ids and refuses to be asked: "auto" need not find that out.
        self._auto = not isinstance(self.return_token_ids, bool)
        asks = self.return_token_ids is True or (self._auto and host != "api.openai.com")
        self._options = Options(
            stream=self.stream, token_ids=asks, max_tokens_key=max_tokens_key(self._sent_model, host)
        )
        self._transport: Transport | None = None

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._url

    def body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling) -> bytes:
        """The body that `complete` sends first. Raises ModelRefused if something in it cannot be sent."""
        return request_body(self._sent_model, messages, tools, sampling, self._options)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """One completion. See `Model.complete` for the errors."""
        asked = first = self._options
        while True:
            try:
                completion = await self._insist(
                    request_body(self._sent_model, messages, tools, sampling, asked), asked, sampling
                )
            except ModelRefused as error:
                milder = asked.milder(str(error), self._auto) if error.status in (400, 422) else None
                if milder is None:
                    raise
                asked, named = milder
                if named:
                    self._options = asked
            else:
                if asked is not first:
                    self._options = asked
                return completion

    async def _insist(self, body: bytes, options: Options, sampling: Sampling) -> Completion:
        # A quarter of the characters is a fair guess at the tokens; the limiter is told the truth afterwards.
        return await self._persistence(partial(self._once, body, options), len(body) // 4 + (sampling.max_tokens or 0))

    async def aclose(self) -> None:
        """Close all connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _once(self, body: bytes, options: Options) -> Completion:
        """One try. Raises Setback."""
        transport = self._transport or self._open()
        stream = _Stream() if options.stream else None
        started = self.clock.monotonic()
        try:
            answer = await transport.post(body, stream.feed if stream is not None else None)
        except TransportError as error:
            if error.oversized:
                raise self._refusals.garbled(str(error), retry=False) from None
            raise self._refusals.unavailable(str(error), retry=error.retry) from error
        except ErrorFrame as frame:
            raise self._refusals.from_error(frame.error) from None
        except (StreamError, ModelGarbled) as error:
            raise self._refusals.garbled(str(error)) from None
        if answer.status != 200:
            wait = retry_after(answer.headers, self.clock.time(), answer.body)
            raise self._refusals.from_status(answer.status, answer.body, wait, answer.headers.get("location", ""))
        latency = self.clock.monotonic() - started
        try:
            if stream is not None and "text/event-stream" in answer.headers.get("content-type", ""):
                return self._read(stream.result(), latency)
            return self._read(parse_json(answer.body), latency)
        except (ModelGarbled, StreamError) as error:
            raise self._refusals.garbled(str(error)) from None

    def _read(self, answer: Any, latency: float) -> Completion:
        error = error_in(answer)
        if error is not None:
            raise self._refusals.from_error(error)
        reason = gave_up(answer)
        if reason:
            raise self._refusals.unavailable(f"the endpoint broke off its answer (finish_reason `{reason}`)")
        return parse_answer(answer, latency=latency, price=self.price)

    def _open(self) -> Transport:
        headers = {"accept": "text/event-stream" if self.stream else "application/json"}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key.strip()}"
        headers.update({name.lower(): text for name, text in self.headers.items()})
        for name, text in headers.items():
            if not (name + text).isprintable() or not text.isascii():
                key = f" (from {self.key_name})" if name == "authorization" and self.key_name else ""
                raise self._refusals.refused(None, f"the header `{name}`{key} holds a character that HTTP cannot carry")
        self._transport = Transport(self._url, headers, timeout=self.timeout, max_body=self.max_answer)
        return self._transport


class _Stream:
    """An event stream on its way to being an answer."""

    def __init__(self) -> None:
        self._events = EventParser()
        self._deltas = DeltaAssembler()
        self._done = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when `[DONE]` has come."""
        for event in self._events.feed(data):
            if event.strip() == b"[DONE]":
                self._done = True
                break
            self._deltas.add(parse_json(event))
        return self._done

    def result(self) -> dict[str, Any]:
        if not self._done and not self._deltas.complete:
            raise StreamError("the stream ended before the answer was finished")
        return self._deltas.result()


def chat_url(base_url: str) -> str:
    """Where chat completions of a `base_url` live; a query (an api-version) stays at the end."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
