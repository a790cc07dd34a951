"""From an endpoint's error to ours: which exception, whether another try helps, and words that say whose move it is.

Every text that leaves here has been through `Veil`, which takes credentials out of whatever an endpoint echoes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from runner.models.retry import worth_retrying
from runner.models.wire import excerpt, parse_json
from runner.records.failure import ContextOverflow, ModelError, ModelGarbled, ModelRefused, ModelUnavailable

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded"
    r"|maximum context length|max(imum)? model len|max_model_len|context (window|length|size|limit)"
    r"|prompt is too long|prompt too long|input (is|are) too long|input length .*exceed"
    r"|longer than the (model'?s|maximum)|too (large|many tokens) for model with .* context"
    r"|input token count .*exceeds|reduce the length of the (messages|prompt|input)"
    r"|inputs?`? tokens \+ .?max_new_tokens|max_tokens must be at least 1, got -",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|hf|gsk|xai)[-_](?=[\w\-.]*[\d*])[\w\-*.]{6,}|\bBearer\s+\S+|\bAIza[\w\-]{20,}",
    re.IGNORECASE,
)


class Setback(Exception):
    """One try failed. `retry`: another may help; `throttled`: the endpoint asked us to slow down."""

    def __init__(
        self, error: ModelError, *, retry: bool, throttled: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry = retry
        self.throttled = throttled
        self.retry_after = retry_after


class Veil:
    """Takes the given secrets, and whatever looks like one, out of a text."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        self._secrets = sorted({secret for secret in secrets if secret and len(secret) >= 4}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return _SECRET.sub("…", text)


def place_of(url: str) -> str:
    """Host and path of a URL, for people: no user, no password, no query."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path


def is_overflow(text: str) -> bool:
    """Whether an error text says that the prompt does not fit, in the words of any endpoint we know."""
    return _OVERFLOW.search(text) is not None


@dataclass(frozen=True, slots=True)
class Refusals:
    """Puts an endpoint's errors into words. `key_name` is the environment variable that holds the key, if known."""

    model: str
    place: str
    veil: Veil
    key_name: str = ""
    has_key: bool = False

    def from_status(self, status: int, body: bytes, retry_after: float | None = None, location: str = "") -> Setback:
        """An HTTP answer that is not 200."""
        said = _error_text(body)
        if 300 <= status < 400:
            where = f" to {place_of(location)}" if location else ""
            return self.refused(
                status, f"answered {status}: it sends the request on{where}; write that address in `base_url`"
            )
        return self._judge(status, said, retry_after)

    def from_error(self, error: Any) -> Setback:
        """An `error` object inside a 200 answer or a stream."""
        return self._judge(_status_in(error), _text_in(error), None, inside=True)

    def refused(self, status: int | None, words: str) -> Setback:
        return Setback(ModelRefused(self._say(words), status=status, where=self.place), retry=False)

    def unavailable(self, words: str, *, status: int | None = None, retry: bool = True) -> Setback:
        return Setback(ModelUnavailable(self._say(words), status=status, where=self.place), retry=retry)

    def garbled(self, words: str, *, retry: bool = True) -> Setback:
        return Setback(ModelGarbled(self._say(words), where=self.place), retry=retry)

    def _judge(self, status: int, said: str, retry_after: float | None, inside: bool = False) -> Setback:
        answered = f"answered 200 with error {status}" if inside else f"answered {status}"
        if status in (400, 413, 422, 500) and is_overflow(said):
            error = ContextOverflow(self._say(f"the prompt does not fit: {said}"), status=status, where=self.place)
            return Setback(error, retry=False)
        if status == 429 and "insufficient_quota" in said:
            return self.refused(status, f"{answered}: {said}; the account behind the key has no credit left")
        if worth_retrying(status):
            setback = self.unavailable(f"{answered}: {said}", status=status)
            setback.throttled = status == 429
            setback.retry_after = retry_after
            return setback
        return self.refused(status, f"{answered}: {said}{self._advice(status)}")

    def _advice(self, status: int) -> str:
        if status == 401:
            if not self.has_key:
                return '; no key was sent: set `api_key = { env = "…" }`'
            source = f"the key in {self.key_name}" if self.key_name else "the API key"
            return f"; check {source}"
        if status == 403:
            return f"; the key{f' in {self.key_name}' if self.key_name else ''} may not use this model"
        if status == 404:
            return (
                f"; check `base_url`, and whether the endpoint serves a model called `{self.model}` "
                f'(if it is called `openai/{self.model}` there, write id = "openai/openai/{self.model}")'
            )
        return ""

    def _say(self, words: str) -> str:
        # What happened stands first: whoever lists failures may have to cut the end.
        return f"{self.veil(words)} ({self.place})"


def _error_text(body: bytes) -> str:
    try:
        value = parse_json(body)
    except ModelGarbled:
        return excerpt(body)
    if isinstance(value, dict):
        return _text_in(value.get("error") or value)
    return excerpt(body)


def _text_in(error: Any) -> str:
    """The words of an error object, with its code where that says more."""
    if not isinstance(error, dict):
        return excerpt(str(error))
    message = error.get("message") or error.get("detail") or error.get("error")
    if not isinstance(message, str):
        return excerpt(str(message if message is not None else error))
    code = error.get("code") or error.get("type")
    suffix = f" [{code}]" if isinstance(code, str) and code not in message else ""
    return excerpt(message) + suffix


def _status_in(error: Any) -> int:
    """The HTTP status an error object claims; 500 if it claims none, so that it is tried again."""
    for key in ("code", "status", "status_code"):
        value = error.get(key) if isinstance(error, dict) else None
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    words = _text_in(error)
    if is_overflow(words):
        return 400
    return 429 if "rate_limit" in words or "rate limit" in words.lower() else 500
