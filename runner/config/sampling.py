"""`[sampling]`: how the model draws its completions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from runner.config.section import Array, Section, wrong_choice


def _seed(value: Any) -> Any:
    if value == "per-attempt" or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise wrong_choice('a whole number or `"per-attempt"`')


_SEED_SCHEMA = WithJsonSchema({"anyOf": [{"const": "per-attempt"}, {"type": "integer"}]})
Seed = Annotated[Literal["per-attempt"] | int, PlainValidator(_seed), _SEED_SCHEMA]


class SamplingSection(Section):
    """How the model draws its completions. What is not set is not sent, so the endpoint's own default holds."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Randomness, from 0 (always the likeliest token) to 2. Default: the endpoint's own."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Nucleus sampling: the share of probability to draw from, in (0, 1]. Default: the endpoint's own."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """The longest completion, in tokens, per model call. Default: the endpoint's own."""
    stop: Array[str] = ()
    """Texts that end a completion. Default: none."""
    seed: Seed | None = None
    """A whole number, the same for every call, or `"per-attempt"`, one derived from row and attempt so that attempts
    differ and a re-run repeats them. Default: none is sent, because some providers refuse the parameter."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Parameters passed through to the endpoint untouched, such as `top_k` or `chat_template_kwargs`."""
