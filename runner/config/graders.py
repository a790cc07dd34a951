"""`[graders.NAME]`: what scores a rollout. `kind` chooses the grader, and with it the keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.config.quantity import Seconds
from runner.config.reference import Reference, SchemaText, Text
from runner.config.section import OPERATION, Array, Section, wrong_choice

EXTRACTORS = ("regex", "after", "tag", "boxed", "json", "last_line", "number")
LABEL = "{{ label }}"


class Extract(Section):
    """Which part of the answer is graded: exactly one of `regex`, `after`, `tag`, `boxed`, `json`, `last_line`,
    `number`. An answer without that part scores 0: the policy did not give it."""

    regex: str | None = None
    """A regular expression; its group 1, or the whole match if it has none."""
    group: int | str | None = None
    """With `regex`: another group, by number or name."""
    after: str | None = None
    """What follows this text, to the end of its line."""
    tag: str | None = None
    """What stands between `<tag>` and `</tag>`."""
    boxed: Literal[True] | None = None
    r"""The content of `\boxed{…}`."""
    json_path: Annotated[str | None, Field(alias="json")] = None
    """A value in the answer's JSON, by path: `"a.b.0"`."""
    last_line: Literal[True] | None = None
    """The last line that is not empty."""
    number: Literal[True] | None = None
    """The number in the answer."""
    take: Literal["first", "last"] = "last"
    """Which one, where there are several. Default: `last`, since models conclude at the end."""


def _one_extractor(value: Any) -> Any:
    if isinstance(value, dict):
        found = [key for key in value if key in EXTRACTORS]
        unknown = [key for key in value if key not in (*EXTRACTORS, "group", "take")]
        if len(found) != 1 and not unknown:
            raise PydanticCustomError("exactly_one", "one key", {"keys": EXTRACTORS, "found": found})
    return value


class Expected(Section):
    """The score a grader test expects: a number, or `{ min, max }`."""

    min: float | None = None
    """At least this."""
    max: float | None = None
    """At most this."""


def expected(value: Any) -> Any:
    """A bare number as the bounds it stands for."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"min": value, "max": value}
    if isinstance(value, dict | Expected):
        return value
    raise wrong_choice("a number or `{ min, max }`")


EXPECTED_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number"},
            {
                "type": "object",
                "properties": {"min": {"type": "number"}, "max": {"type": "number"}},
                "additionalProperties": False,
            },
        ]
    }
)


class GraderTest(Section):
    """A golden case of a grader, run by `osmosis-run test`. Give `output` or `messages`."""

    output: str | None = None
    """The answer to grade."""
    messages: Array[dict[str, Any]] | None = None
    """Or a whole conversation in OpenAI form."""
    label: str | None = None
    """The reference answer."""
    row: dict[str, Any] = Field(default_factory=dict)
    """The dataset row."""
    expect: Annotated[Expected, BeforeValidator(expected), EXPECTED_SCHEMA]
    """The score: a number, or `{ min, max }`."""
    stop_reason: str | None = None
    """How the rollout ended. Default: `final_answer`."""


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise wrong_choice("a string or an array of strings")


_TEXTS_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
)


class GraderSection(Section):
    """What every grader has."""

    required: bool = True
    """Whether a rollout this grader could not score is `ungraded`. `false`: the others decide."""
    timeout: Annotated[Seconds | None, OPERATION] = None
    """How long grading one rollout may take. Default: `limits.grader_time`."""
    tests: Annotated[Array[GraderTest], OPERATION] = ()
    """Golden cases, run by `osmosis-run test`."""


class AnswerGrader(GraderSection):
    """What every grader of the answer's text has."""

    extract: Annotated[Extract | None, BeforeValidator(_one_extractor)] = None
    """Which part of the answer is graded. Default: all of it."""


class ExactGrader(AnswerGrader):
    """1.0 if the answer is the expected text, else 0.0."""

    kind: Literal["exact"]
    """`exact`."""
    expect: str = LABEL
    """The expected text, a Jinja template over `row` and `label`."""
    ignore_case: bool = False
    """Whether `Yes` equals `yes`."""
    ignore_space: bool = True
    """Whether runs of white space count as one space, and none at the ends. Default: true, as nobody means them."""
    ignore_punctuation: bool = False
    """Whether punctuation is dropped from both sides."""


class ContainsGrader(AnswerGrader):
    """1.0 if the answer contains the expected texts, else 0.0."""

    kind: Literal["contains"]
    """`contains`."""
    expect: Annotated[tuple[str, ...], PlainValidator(_texts), _TEXTS_SCHEMA] = (LABEL,)
    """One expected text or several, Jinja templates over `row` and `label`."""
    mode: Literal["all", "any"] = "all"
    """Whether all of them must be there, or any."""
    ignore_case: bool = False
    """Whether `Yes` equals `yes`."""


class RegexGrader(AnswerGrader):
    """1.0 if the answer matches the pattern, else 0.0."""

    kind: Literal["regex"]
    """`regex`."""
    pattern: str
    """A Python regular expression. Not a template."""
    ignore_case: bool = False
    """Whether case is ignored."""
    full: bool = False
    """Whether the whole answer must match, not just a part of it."""


class ChoiceGrader(AnswerGrader):
    """1.0 if the answer picks the expected one of the choices, else 0.0."""

    kind: Literal["choice"]
    """`choice`."""
    choices: Array[str]
    """The words or letters to pick from."""
    expect: str = LABEL
    """The right one, a Jinja template over `row` and `label`."""


class MathGrader(AnswerGrader):
    """1.0 if the answer equals the expected number or expression, else 0.0."""

    kind: Literal["math"]
    """`math`."""
    expect: str = LABEL
    """The right value, a Jinja template over `row` and `label`."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-6
    """The relative error that still counts as equal. Default 1e-6: rounding of a printed number, no more."""


class JsonSchemaGrader(AnswerGrader):
    """1.0 if the answer is JSON that fits the schema, else 0.0."""

    kind: Literal["json_schema"]
    """`json_schema`."""
    schema_text: Annotated[SchemaText, Field(alias="schema")]
    """JSON Schema 2020-12: a table, or `{ file = "answer.schema.json" }`."""


class PythonGrader(AnswerGrader):
    """A function or a `Grader` class of yours."""

    kind: Literal["python"]
    """`python`."""
    call: Reference
    """`(solution_str, ground_truth, extra_info)`, `(messages, ground_truth, metadata)`, or a `Grader` class."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Settings of your own: `self.config` of a `Grader` class, keyword arguments of a function."""


class Criterion(Section):
    """One question a rubric asks its judge."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]
    """Its name in the scores' details."""
    text: str
    """What the judge decides."""
    type: Literal["binary", "likert", "numeric"] = "binary"
    """`binary` (yes or no), `likert` (1 to `levels`), `numeric` (`min` to `max`); each is scaled to 0…1."""
    levels: Annotated[int, Field(ge=2, le=100)] = 5
    """With `likert`: how many levels."""
    min: float = 0.0
    """With `numeric`: the worst value."""
    max: float = 1.0
    """With `numeric`: the best value."""
    weight: Annotated[float, Field(gt=0)] = 1.0
    """How much it counts among the criteria."""


class RubricGrader(GraderSection):
    """A model as judge: the weighted mean of its verdicts on the criteria, in 0…1."""

    kind: Literal["rubric"]
    """`rubric`."""
    role: str = "judge"
    """Which of `[roles]` judges."""
    criteria: Annotated[tuple[Criterion, ...], Field(strict=False, min_length=1)]
    """What is asked."""
    votes: Annotated[int, Field(ge=1, le=99)] = 1
    """How often the judge is asked; the mean counts. Default 1: each vote costs a call."""
    view: Literal["final", "full"] = "final"
    """What the judge sees: the final answer, or the full conversation with tool calls."""
    prompt: Text | None = None
    """The judge's instructions, a Jinja template over `row`, `label`, `output`, `messages` and `criteria`, or
    `{ file = "…" }`. Default: ours."""


class ExpectedCall(Section):
    """A tool call that a trajectory should hold."""

    tool: str
    """The tool."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments that the call must have, among others. Default: any."""


class TrajectoryGrader(GraderSection):
    """1.0 if the rollout called the expected tools, else 0.0."""

    kind: Literal["trajectory"]
    """`trajectory`."""
    mode: Literal["exact", "in_order", "any_order"] = "in_order"
    """`exact`: these calls and no others; `in_order`: these among others, in this order; `any_order`: these among
    others."""
    expect: Array[ExpectedCall] = ()
    """The calls."""
    max_calls: Annotated[int, Field(ge=0)] | None = None
    """More tool calls than this score 0. Default: no limit."""


class CommandScore(Section):
    """How a command's end becomes a score: exactly one of `regex`, `junit`."""

    regex: str | None = None
    """A number in what it printed: group 1 of the last match; with a group 2, group 1 over group 2. None there: 0."""
    junit: str | None = None
    """The share of passed tests in the JUnit file it wrote, skipped ones left out. No file there: 0."""


def _command_score(value: Any) -> Any:
    if value == "exit" or isinstance(value, CommandScore):
        return value
    if isinstance(value, dict):
        if len(value) == 1 and set(value) <= {"regex", "junit"} and isinstance(next(iter(value.values())), str):
            return CommandScore(**value)
        raise PydanticCustomError("exactly_one", "one key", {"keys": ("regex", "junit"), "found": list(value)})
    raise wrong_choice('`"exit"`, `{ regex }` or `{ junit }`')


_COMMAND_SCORE_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"const": "exit"},
            *(
                {
                    "type": "object",
                    "properties": {key: {"type": "string"}},
                    "required": [key],
                    "additionalProperties": False,
                }
                for key in ("regex", "junit")
            ),
        ]
    }
)


class CommandGrader(GraderSection):
    """A command in a fresh sandbox, such as the tests of a repository. A time-out or a lost sandbox gives no score."""

    kind: Literal["command"]
    """`command`."""
    command: str
    """What is run, by the shell of the sandbox; a Jinja template over `row` and `label`."""
    sandbox: str | None = None
    """Which of `[sandboxes]`. A fresh one is started: copies and setup, and nothing the agent touched. Default: the
    only one there is."""
    folder: str = "."
    """Where in the sandbox it is run, and the patch applied. Default: its workdir."""
    patch: bool = True
    """Whether the patch that the agent left is applied first. `false` grades the sandbox as it is made."""
    protect: Array[str] = ()
    """Files that the patch cannot change, add or remove, as globs: `"tests/**"`; a name without `/` is meant in any
    folder."""
    score: Annotated[CommandScore | Literal["exit"], PlainValidator(_command_score), _COMMAND_SCORE_SCHEMA] = "exit"
    r"""`"exit"`: 1.0 for exit code 0, else 0.0; `{ regex = '(\d+) of (\d+) passed' }`: a number that it prints;
    `{ junit = "report.xml" }`: the share of tests that passed."""


Grader = Annotated[
    ExactGrader
    | ContainsGrader
    | RegexGrader
    | ChoiceGrader
    | MathGrader
    | JsonSchemaGrader
    | PythonGrader
    | RubricGrader
    | TrajectoryGrader
    | CommandGrader,
    Field(discriminator="kind"),
]

KINDS: dict[str, type[GraderSection]] = {
    "exact": ExactGrader,
    "contains": ContainsGrader,
    "regex": RegexGrader,
    "choice": ChoiceGrader,
    "math": MathGrader,
    "json_schema": JsonSchemaGrader,
    "python": PythonGrader,
    "rubric": RubricGrader,
    "trajectory": TrajectoryGrader,
    "command": CommandGrader,
}
"""Every grader kind and its table."""
