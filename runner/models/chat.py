"""`ChatModel`: the direct path to any OpenAI-compatible endpoint, from OpenAI itself to a trainer's own server.

This file joins pure parts: `wire` and `sse` know the bodies, `refusal` the errors, `attempts` the insistence,
`transport` and `connections` the sockets. Nothing is opened before the first call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

from runner.models.address import unsendable_header
from runner.models.attempts import Persistence
from runner.models.connections import Connections
from runner.models.http1_parser import Answer, is_event_stream
from runner.models.limiter import Limiter
from runner.models.price import Price
from runner.models.refusal import Refusals, Veil, place_of
from runner.models.request import Options, max_tokens_key, request_body, text_joined
from runner.models.retry import Clock, Retries, SystemClock, retry_after
from runner.models.sse import ErrorFrame, StreamError
from runner.models.stream import StreamedAnswer, is_stream
from runner.models.transport import Transport, TransportError
from runner.models.wire import error_in, gave_up, parse_answer, parse_json
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ModelGarbled, ModelRefused
from runner.records.message import Message

OPENAI = "https://api.openai.com/v1"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SAMPLE = "x-sample-id"
"""The header by which a controller tells samples apart: the name that the agent gave its sample, where it gave one."""


@dataclass(kw_only=True, eq=False, slots=True)
class ChatModel:
    """A model behind `POST {base_url}/chat/completions`.

    `model` is the id of the file (`openai/gpt-5-mini` is sent as `gpt-5-mini`); `key_name` the environment variable
    the key came from, for error texts; `timeout` seconds for each try, its streaming included. `return_token_ids`
    asks for token ids and log-probabilities: "auto" stops asking once the endpoint refuses the fields.

    For an endpoint that somebody named at run time, `url` is its complete address in place of `base_url`, and `model`
    is sent as it is. `extra` goes into every body, last; `send_tools=False` leaves the tools out; `join_text` makes
    one string of a content that is a list of texts; `say_stream` sends `stream` also where it is false. With
    `connections` the model holds no sockets of its own.
    """

    model: str
    base_url: str = OPENAI
    url: str = ""
    api_key: str | None = None
    key_name: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    extra: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    timeout: float = 120.0
    retries: Retries = field(default_factory=Retries)
    limiter: Limiter | None = None
    connections: Connections | None = None
    stream: bool = False
    say_stream: bool = False
    send_tools: bool = True
    join_text: bool = False
    return_token_ids: bool | Literal["auto"] = "auto"  # noqa: S105 (no password)
    price: Price | None = None
    max_answer: int = 64 * 1024 * 1024
    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=Random)

    _given: bool = field(init=False)
    _sent_model: str = field(init=False)
    _persistence: Persistence = field(init=False)
    _auto: bool = field(init=False)
    _options: Options = field(init=False)
    _transport: Transport | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._given = bool(self.url)
        self._sent_model = self.model if self._given else self.model.removeprefix("openai/")
        self.url = self.url or chat_url(self.base_url)
        self._persistence = Persistence(self.retries, self.limiter, self.clock, self.rng)
        # OpenAI itself gives no token ids and refuses to be asked: "auto" need not find that out.
        self._auto = not isinstance(self.return_token_ids, bool)
        host = "" if self._given else urlsplit(self.url).hostname or ""
        self._options = Options(
            stream=self.stream,
            say_stream=self.say_stream,
            token_ids=self.return_token_ids is True or (self._auto and host != "api.openai.com"),
            max_tokens_key=max_tokens_key(self._sent_model, host),
        )

    @property
    def _refusals(self) -> Refusals:
        veil = Veil([self.api_key, *self.headers.values()])
        has_key = bool(self.api_key)
        return Refusals(self._sent_model, place_of(self.url), veil, self.key_name, has_key, given=self._given)

    def body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling) -> bytes:
        """The body that `complete` sends first. Raises ModelRefused if something in it cannot be sent."""
        return self._body(messages, tools, sampling, self._options)

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, options: Options
    ) -> bytes:
        if self.join_text:
            messages = text_joined(messages)
        return request_body(self._sent_model, messages, tools if self.send_tools else (), sampling, options, self.extra)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """One completion. See `Model.complete` for the errors."""
        if caller.sample_id and self._transport is None and self._given and _SAMPLE in self.headers:
            self.headers = {**self.headers, _SAMPLE: caller.sample_id}
        asked = first = self._options
        while True:
            try:
                body = self._body(messages, tools, sampling, asked)
                completion = await self._insist(body, sampling)
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

    async def _insist(self, body: bytes, sampling: Sampling) -> Completion:
        # A quarter of the characters is a fair guess at the tokens; the limiter is told the truth afterwards.
        return await self._persistence(partial(self._once, body), len(body) // 4 + (sampling.max_tokens or 0))

    async def aclose(self) -> None:
        """Close its own connections; shared ones stay."""
        transport, self._transport = self._transport, None
        if transport is not None and self.connections is None:
            await transport.aclose()

    async def _once(self, body: bytes) -> Completion:
        """One try. Raises Setback."""
        stream = StreamedAnswer()
        started = self.clock.monotonic()
        try:
            transport = self._transport or self._open()
            answer = await transport.post(body, stream.feed)
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
            return self._read(_value(answer, stream), latency)
        except ErrorFrame as frame:
            raise self._refusals.from_error(frame.error) from None
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
        name = unsendable_header(headers)
        if name:
            key = f" (from {self.key_name})" if name == "authorization" and self.key_name else ""
            raise self._refusals.refused(None, f"the header `{name}`{key} holds a character that HTTP cannot carry")
        self._transport = Transport(
            self.url, headers, timeout=self.timeout, max_body=self.max_answer, connections=self.connections
        )
        return self._transport


def _value(answer: Answer, stream: StreamedAnswer) -> Any:
    """The JSON value of an answer. What came decides, not what was asked for: some stream unasked, some will not."""
    body = answer.body
    if body[:1] == b"{":
        return parse_json(body)
    if not stream.began and is_stream(body):
        stream.feed(body)
    if stream.began or is_event_stream(answer.status, answer.headers):
        return stream.result()
    return parse_json(body)


class Endpoint(Protocol):
    """What somebody who starts a rollout says about the model that answers it: `serve.start.Chat` is one.

    `url` is complete, `key` a bearer; `extra` goes into each body; `tools` says whether the tools do too.
    """

    @property
    def url(self) -> str: ...
    @property
    def key(self) -> str | None: ...
    @property
    def model(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def extra(self) -> Mapping[str, Any]: ...
    @property
    def tools(self) -> bool: ...
    @property
    def stream(self) -> bool: ...


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class ChatModels:
    """Makes a model for each rollout that brings its own endpoint; all share connections, clock and retries.

    A model made here costs a few kilobytes and holds no socket while it is not asked: it may simply be dropped.
    `stream` None does as each endpoint says.
    """

    connections: Connections
    timeout: float = 300.0
    retries: Retries = field(default_factory=lambda: Retries(4, 30.0))
    limiter: Limiter | None = None
    stream: bool | None = None
    join_text: bool = True
    return_token_ids: bool | Literal["auto"] = False
    price: Price | None = None
    max_answer: int = 64 * 1024 * 1024
    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=Random)

    def model_for(self, chat: Endpoint) -> ChatModel:
        """The model behind `chat`. Costs microseconds, and raises nothing: a bad address shows when it is asked."""
        return ChatModel(
            model=chat.model,
            url=chat.url,
            api_key=chat.key,
            headers=chat.headers,
            extra=chat.extra,
            timeout=self.timeout,
            retries=self.retries,
            limiter=self.limiter,
            connections=self.connections,
            stream=chat.stream if self.stream is None else self.stream,
            say_stream=True,
            send_tools=chat.tools,
            join_text=self.join_text,
            return_token_ids=self.return_token_ids,
            price=self.price,
            max_answer=self.max_answer,
            clock=self.clock,
            rng=self.rng,
        )


def agent_loop_url(server_url: str) -> str:
    """Where chat completions of an agent-loop controller live."""
    return server_url.rstrip("/") + "/v1/chat/completions"


def chat_url(base_url: str) -> str:
    """Where chat completions of a `base_url` live; a query (an api-version) stays at the end."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
