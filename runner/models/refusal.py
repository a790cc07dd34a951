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
from runner.models.wire import error_in, excerpt, parse_json
from runner.records.failure import ContextOverflow, ModelError, ModelGarbled, ModelRefused, ModelUnavailable

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|context_window_exceeded"
    r"|maximum context length|max(imum)? model len|max_model_len|context (window|length|size|limit)"
    r"|prompt is too long|prompt too long|input (is|are) too long|input length .*exceed"
    r"|longer than the (model'?s|maximum)|too (large|many tokens) for model with .* context"
    r"|input token count .*exceeds|reduce the length of the (messages|prompt|input)"
    r"|inputs?`? tokens \+ .?max_new_tokens|inputs?`? must have less than \d+ tokens"
    r"|max_tokens must be at least 1, got -|maximum prompt length|exceeds? max length|exceeded model token limit"
    r"|range of input length should be",
    re.IGNORECASE,
)
_ANSWER_TOO_LONG = re.compile(
    # vLLM, then OpenAI and Anthropic: what the answer may take against what the model holds altogether.
    r"is too large: (?P<vllm>\d+)\. This model's maximum context length is (?P<vllm_all>\d+)"
    r"|maximum context length is (?P<openai_all>\d+) tokens.*?(?P<openai>\d+) in the completion"
    r"|exceed context limit: \d+ \+ (?P<anthropic>\d+) > (?P<anthropic_all>\d+)",
    re.IGNORECASE | re.DOTALL,
)
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|hf|gsk|xai)[-_](?=[\w\-.]*[\d*])[\w\-*.]{6,}|\bBearer\s+\S+|\bAIza[\w\-]{20,}",
    re.IGNORECASE,
)


_NO_CREDIT = "credit balance is too low"

_STATUS_OF = {
    "validation": 422, "invalid_request_error": 400, "BadRequestError": 400, "authentication_error": 401,
    "permission_error": 403, "not_found_error": 404, "NotFoundError": 404, "overloaded": 503, "overloaded_error": 529,
}  # fmt: skip
"""What an error object's type amounts to, where it stands without a status."""


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


def asks_too_long(text: str) -> bool:
    """Whether an overflow is no matter of the prompt: the answer alone may be longer than the whole context."""
    found = _ANSWER_TOO_LONG.search(text)
    if found is None:
        return False
    asked, holds = (found["vllm" + end] or found["openai" + end] or found["anthropic" + end] for end in ("", "_all"))
    return int(asked) >= int(holds)


@dataclass(frozen=True, slots=True)
class Refusals:
    """Puts an endpoint's errors into words. `key_name` is the environment variable that holds the key, if known;
    `direct` says that `model` is called so by the endpoint itself, and not by a library in between; `given` that the
    address and the key came with a request, so that nobody can mend them in a file."""

    model: str
    place: str
    veil: Veil
    key_name: str = ""
    has_key: bool = False
    direct: bool = True
    given: bool = False

    def from_status(self, status: int, body: bytes, retry_after: float | None = None, location: str = "") -> Setback:
        """An HTTP answer that is not 200."""
        said = _error_text(body)
        if 300 <= status < 400:
            where = f" to {place_of(location)}" if location else ""
            advice = "redirects are not followed" if self.given else "write that address in `base_url`"
            return self.refused(status, f"answered {status}: it sends the request on{where}; {advice}")
        if status < 300:
            return self.refused(status, f"answered {status}, and only 200 brings a completion: {said}")
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

    def overflow(self, status: int, said: str, answered: str = "") -> Setback:
        """A prompt that does not fit, or an answer that could not whatever the prompt is."""
        if asks_too_long(said):
            words = f"{answered or f'answered {status}'}: {said}; `[sampling] max_tokens` is more than the model holds"
            return self.refused(status, words)
        error = ContextOverflow(self._say(f"the prompt does not fit: {said}"), status=status, where=self.place)
        return Setback(error, retry=False)

    def _judge(self, status: int, said: str, retry_after: float | None, inside: bool = False) -> Setback:
        answered = f"answered 200 with error {status}" if inside else f"answered {status}"
        if status in (400, 413, 422, 500) and is_overflow(said):
            return self.overflow(status, said, answered)
        if status == 402 or (status == 429 and "insufficient_quota" in said) or _NO_CREDIT in said:
            return self.refused(status, f"{answered}: {said}; the account behind the key has no credit left")
        if status == 429 and "request too large" in said.lower():
            return self.refused(
                status, f"{answered}: {said}; no wait mends that: the account's limit is too low for it"
            )
        if worth_retrying(status):
            setback = self.unavailable(f"{answered}: {said}", status=status)
            setback.throttled = status == 429
            setback.retry_after = retry_after
            return setback
        return self.refused(status, f"{answered}: {said}{self._advice(status)}")

    def _advice(self, status: int) -> str:
        if self.given:
            if status in (401, 403):
                return f"; the start {'named this key' if self.has_key else 'brought no key'} for it"
            return "; it is the address that the start named" if status == 404 else ""
        if status == 401:
            if not self.has_key:
                return '; no key was sent: set `api_key = { env = "…" }`'
            source = f"the key in {self.key_name}" if self.key_name else "the API key"
            return f"; check {source}"
        if status == 403:
            return f"; the key{f' in {self.key_name}' if self.key_name else ''} may not use this model"
        if status == 404 and not self.direct:
            return f"; check whether the provider serves `{self.model}` to this key"
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
    return words_in(value) if isinstance(value, (dict, list)) else excerpt(body)


def words_in(body: Any) -> str:
    """The words of an error body, however its server wraps them."""
    error = error_in(body)
    return _text_in(body if error is None else error)


def _text_in(error: Any) -> str:
    """The words of an error object, with its code where that says more."""
    if not isinstance(error, dict):
        return excerpt(str(error))
    message = error.get("message") or error.get("detail") or error.get("error")
    if isinstance(message, dict):
        return _text_in(message)
    if isinstance(message, list):
        message = "; ".join(map(_finding, message))
    if not isinstance(message, str):
        return excerpt(str(message if message is not None else error))
    upstream = error.get("metadata")
    raw = upstream.get("raw") if isinstance(upstream, dict) else None
    if raw:
        # A router's own message is but "Provider returned error".
        message = f"{message}: {_upstream(raw)}"
    codes = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str) and not code.isdigit()]
    return excerpt(message) + (f" [{codes[0]}]" if codes and codes[0] not in message else "")


def _upstream(raw: Any) -> str:
    return _error_text(raw.encode("utf-8", "replace")) if isinstance(raw, str) else _text_in(raw)


def _finding(finding: Any) -> str:
    """One finding of a validating server (FastAPI's `detail`): where, and what is wrong."""
    if not isinstance(finding, dict) or not isinstance(finding.get("msg"), str):
        return str(finding)
    place = finding.get("loc")
    where = ".".join(map(str, place)) if isinstance(place, list) else ""
    return f"{where}: {finding['msg']}" if where else str(finding["msg"])


def _status_in(error: Any) -> int:
    """The HTTP status an error object claims; 500 if it claims none, so that it is tried again."""
    for key in ("code", "status", "status_code", "http_status_code"):
        value = error.get(key) if isinstance(error, dict) else None
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    words = _text_in(error)
    if is_overflow(words):
        return 400
    if "rate_limit" in words or "rate limit" in words.lower():
        return 429
    kind = error.get("error_type") or error.get("type") if isinstance(error, dict) else None
    return _STATUS_OF.get(kind, 500) if isinstance(kind, str) else 500
