"""`[model]` and `[roles.NAME]`: who answers. The same keys for the policy and for any other model, such as a judge."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.config.quantity import Delay, Seconds
from runner.config.reference import Location, Reference
from runner.config.sampling import SamplingSection
from runner.config.section import OPERATION, Array, Section, wrong_choice

Provider: TypeAlias = Literal["openai", "litellm", "python", "scripted", "replay"]
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"


class EnvName(Section):
    """A secret: the name of the environment variable that holds it, never its value."""

    env: Annotated[str, Field(pattern=VARIABLE_PATTERN)]
    """The variable's name."""


def _no_secret(value: Any) -> Any:
    if isinstance(value, str):
        raise PydanticCustomError("secret_in_file", "a secret", {})
    return value


def _header(value: Any) -> Any:
    if isinstance(value, str | EnvName):
        return value
    if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str):
        return EnvName(env=value["env"])
    raise wrong_choice('a string or `{ env = "NAME" }`')


_HEADER_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"env": {"type": "string", "pattern": VARIABLE_PATTERN}},
                "required": ["env"],
                "additionalProperties": False,
            },
        ]
    }
)
Secret = Annotated[EnvName, BeforeValidator(_no_secret)]
Header = Annotated[str | EnvName, PlainValidator(_header), _HEADER_SCHEMA]


class Retries(Section):
    """How often and how patiently a model call is tried again."""

    attempts: Annotated[int, Field(ge=0, le=100)] = 5
    """Tries in all, on 408, 409, 429, 5xx and broken connections; 0 and 1 both try once. Default 5: enough for a
    restart of a server, bounded so that a dead one is noticed."""
    max_wait: Seconds = 60.0
    """The longest pause between two tries; also caps the endpoint's own Retry-After."""


class Concurrency(Section):
    """How many calls of this model may be in flight. A bare number means that many, fixed."""

    mode: Literal["adaptive", "fixed"] = "adaptive"
    """`adaptive` finds the endpoint's limit by slow start and cuts back on 429 only; `fixed` keeps `max`."""
    min: Annotated[int, Field(ge=1)] = 4
    """Adaptive: never fewer than this."""
    start: Annotated[int, Field(ge=1)] = 32
    """Adaptive: where slow start begins."""
    max: Annotated[int, Field(ge=1)] = 1024
    """Never more than this."""


def _concurrency(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise PydanticCustomError("too_small", "at least 1", {"bound": "at least 1"})
        return Concurrency(mode="fixed", min=value, start=value, max=value)
    if isinstance(value, dict | Concurrency):
        return value
    raise wrong_choice("a whole number or a table with `mode`")


class Price(Section):
    """What the model costs, in US dollars per million tokens."""

    input: Annotated[float, Field(ge=0)]
    """USD per million prompt tokens."""
    output: Annotated[float, Field(ge=0)]
    """USD per million completion tokens."""
    cached: Annotated[float, Field(ge=0)] | None = None
    """USD per million prompt tokens read from the endpoint's cache. Default: the price of `input`."""


def _table_or_text(value: Any) -> Any:
    if isinstance(value, dict | str):
        return value
    raise wrong_choice("a table or a string")


class RuleCall(Section):
    """A tool call that a scripted model makes."""

    name: str
    """The tool."""
    arguments: Annotated[
        dict[str, Any] | str,
        PlainValidator(_table_or_text),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}]}),
    ] = Field(default_factory=dict)
    """A table whose texts are Jinja templates, or one Jinja template that renders the JSON text of the arguments."""


class Rule(Section):
    """One rule of a scripted model. The first whose `when` holds answers; none holding ends the rollout as failed."""

    when: str | None = None
    """A Jinja expression over `messages`, `last`, `row`, `attempt`, `turn` and `luck`, a number in [0, 1) fixed by row,
    attempt and turn. Default: always."""
    reply: str | None = None
    """The answer's text, a Jinja template over the same names."""
    tool_calls: Array[RuleCall] = ()
    """Tool calls to make."""
    finish_reason: str | None = None
    """What the endpoint would say. Default: `tool_calls` if there are any, else `stop`."""
    reasoning: str | None = None
    """Reasoning kept apart from the answer, a Jinja template."""
    error: str | None = None
    """Play an unavailable model instead, with this message."""
    delay: Delay = 0.0
    """How long the answer takes. Default: none."""


def _auto_or_bool(value: Any) -> Any:
    if value == "auto" or isinstance(value, bool):
        return value
    raise wrong_choice('`true`, `false` or `"auto"`')


Switch = Annotated[
    Literal["auto"] | bool, PlainValidator(_auto_or_bool), WithJsonSchema({"enum": ["auto", True, False]})
]
"""`true`, `false`, or `"auto"`: what is best where it runs."""


class ModelSection(Section):
    """The policy: the model that is judged or trained. In `serve` the controller supplies it with each rollout."""

    id: str | None = None
    """LiteLLM-style name, `provider/model`. Required for `openai` and `litellm`."""
    base_url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = None
    """An OpenAI-compatible endpoint, up to and including `/v1`: vLLM, SGLang, Ollama, a trainer."""
    api_key: Annotated[Secret | None, OPERATION] = None
    """`{ env = "NAME" }`: the variable that holds the key. A key is never written into the file."""
    provider: Provider | None = None
    """`openai` (any OpenAI-compatible endpoint, directly), `litellm` (every other), `python` (a function of yours,
    `call`), `scripted` (answers from `rules`), `replay` (answers from `recording`). Default: `python` if `call` is set,
    `openai` if `base_url` is or `id` begins with `openai/`, else `litellm`."""
    call: Reference | None = None
    """A function that answers, sync or async: `"package.module:name"` or `"./file.py:name"`. It takes `messages`, and
    what it has parameters for of `tools`, the keys of `[sampling]`, `row`, `attempt`, `role` and `rollout_id`; it
    returns a text, an assistant message, or a completion."""
    timeout: Annotated[Seconds, OPERATION] = 120.0
    """How long one try of one call may take."""
    retries: Annotated[Retries, OPERATION] = Retries.model_construct()
    """How often and how patiently a call is tried again."""
    concurrency: Annotated[
        Concurrency,
        OPERATION,
        BeforeValidator(_concurrency),
    ] = Concurrency.model_construct()
    """Calls in flight: a number, or `{ mode = "adaptive", min, start, max }`. Default: adaptive, so nobody has to
    guess the endpoint's limit."""
    rpm: Annotated[Annotated[int, Field(ge=1)] | None, OPERATION] = None
    """Requests per minute the endpoint allows. Default: no limit."""
    tpm: Annotated[Annotated[int, Field(ge=1)] | None, OPERATION] = None
    """Tokens per minute the endpoint allows. Default: no limit."""
    price: Annotated[Price | None, OPERATION] = None
    """USD per million tokens. Default: litellm's price table where it knows the model, else the cost is unknown."""
    return_token_ids: Annotated[Switch, OPERATION] = "auto"  # noqa: S105
    """Ask for token ids and log-probabilities: `true`, `false`, or `"auto"`, where the endpoint is known to have
    them."""
    stream: Annotated[bool, OPERATION] = False
    """Receive completions piece by piece. Default: whole, which costs less."""
    headers: Annotated[dict[str, Header], OPERATION] = Field(default_factory=dict)
    """Further HTTP headers, each a string or `{ env = "NAME" }`."""
    rules: Array[Rule] = ()
    """The answers of a `scripted` model, first match first."""
    recording: Location | None = None
    """The recording a `replay` model answers from, as `eval --record FILE` wrote it."""

    @property
    def effective_provider(self) -> Provider:
        """`provider`, or what its default comes to."""
        if self.provider is not None:
            return self.provider
        if self.call is not None:
            return "python"
        direct = self.base_url is not None or (self.id or "").startswith("openai/")
        return "openai" if direct else "litellm"


class RoleSection(ModelSection):
    """Any other model, by the role it plays: a judge, a simulated user."""

    sampling: SamplingSection = SamplingSection.model_construct()
    """How this model draws its completions: the keys of `[sampling]`. Default: nothing is inherited from there."""
