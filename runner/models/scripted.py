"""`ScriptedModel`: answers by rules written in the file. No network, no key, and the same answers each time.

The first rule whose condition holds answers. Expressions and templates see `messages`, `last` (the text of the last
message), `row`, `attempt`, `turn` (from 0) and `luck`, a number in [0, 1) fixed by row, attempt and turn.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runner.models.counting import message_text, prompt_text, token_count
from runner.models.price import Price
from runner.models.retry import Clock, SystemClock
from runner.records.completion import Caller, Completion, Sampling, ToolSpec, Usage
from runner.records.failure import ModelRefused, ModelUnavailable
from runner.records.message import Message, text_of
from runner.templates.template import Expression, Template, TemplateError

_ALONE = re.compile(r"\{\{((?:(?!\{\{|\}\}).)*)\}\}", re.DOTALL)


@dataclass(frozen=True)
class ScriptedCall:
    """A tool call of a rule. `arguments` is a table or one template of JSON text.

    A string in the table is a template; one that is a single expression, `"{{ row.a }}"`, gives that value as it is, so
    a number stays a number.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """One rule of a scripted model, in plain values.

    `when` is an expression (None: always), `reply` and `reasoning` are templates, `error` makes the model
    unavailable with that text (a template too), `delay` is in seconds. Raises TemplateProblem for a text that is none.
    """

    when: str | None = None
    reply: str | None = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    finish_reason: str | None = None
    reasoning: str | None = None
    error: str | None = None
    delay: float = 0.0

    def __post_init__(self) -> None:
        self._calls  # noqa: B018 (compile now: a mistake belongs to validation, not to the middle of a run)
        self._condition  # noqa: B018
        self._texts  # noqa: B018

    @cached_property
    def _condition(self) -> Expression | None:
        return None if self.when is None else Expression(self.when)

    @cached_property
    def _texts(self) -> dict[str, Template]:
        texts = {"reply": self.reply, "reasoning": self.reasoning, "error": self.error}
        return {name: Template(text) for name, text in texts.items() if text is not None}

    @cached_property
    def _calls(self) -> list[tuple[str, Any]]:
        return [
            (call.name, Template(call.arguments) if isinstance(call.arguments, str) else _compiled(call.arguments))
            for call in self.tool_calls
        ]

    def holds(self, names: Mapping[str, Any]) -> bool:
        return self._condition is None or bool(self._condition.evaluate(**names))

    def text(self, name: str, names: Mapping[str, Any]) -> str | None:
        template = self._texts.get(name)
        return None if template is None else template.render(**names)

    def calls(self, names: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Name and argument text of each tool call."""
        return [(name, _arguments(compiled, names)) for name, compiled in self._calls]


def _compiled(value: Any) -> Any:
    """A value of an arguments table; every string in it becomes a template, or an expression if it is only one."""
    if isinstance(value, str):
        alone = _ALONE.fullmatch(value)
        return Template(value) if alone is None else Expression(alone[1])
    if isinstance(value, Mapping):
        return {key: _compiled(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_compiled(part) for part in value]
    return value


def _rendered(compiled: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(compiled, Template):
        return compiled.render(**names)
    if isinstance(compiled, Expression):
        return compiled.evaluate(**names)
    if isinstance(compiled, dict):
        return {key: _rendered(part, names) for key, part in compiled.items()}
    if isinstance(compiled, list):
        return [_rendered(part, names) for part in compiled]
    return compiled


def _arguments(compiled: Any, names: Mapping[str, Any]) -> str:
    """One template is the argument text as it is, even if it is no JSON: a policy may write such."""
    if isinstance(compiled, Template):
        return compiled.render(**names)
    return json.dumps(_rendered(compiled, names), ensure_ascii=False)


class ScriptedModel:
    """Answers by the first of `rules` that holds. `usage` is invented: four characters are one token."""

    def __init__(
        self, rules: Sequence[Rule], *, model: str = "scripted", price: Price | None = None, clock: Clock | None = None
    ) -> None:
        self._rules = tuple(rules)
        self._model = model
        self._price = price
        self._clock: Clock = clock or SystemClock()

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """Raises ModelUnavailable where a rule says so, ModelRefused where no rule holds or one cannot be rendered."""
        turn = sum(message.get("role") == "assistant" for message in messages)
        names = {
            "messages": list(messages),
            "last": text_of(messages[-1]) if messages else "",
            "row": caller.row,
            "attempt": caller.attempt,
            "turn": turn,
            "luck": luck(caller.row, caller.attempt, turn),
        }
        started = self._clock.monotonic()
        number, rule = self._choose(names)
        if rule.delay > 0.0:
            await self._clock.sleep(rule.delay)
        try:
            completion = self._answer(rule, names, prompt_text(messages, [tool.wire() for tool in tools]))
        except TemplateError as error:
            raise ModelRefused(f"rule {number + 1} of the scripted model: {error}") from None
        return _with_latency(completion, self._clock.monotonic() - started)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _choose(self, names: Mapping[str, Any]) -> tuple[int, Rule]:
        for number, rule in enumerate(self._rules):
            try:
                if rule.holds(names):
                    return number, rule
            except TemplateError as error:
                raise ModelRefused(f"`when` of rule {number + 1} of the scripted model: {error}") from None
        raise ModelRefused(
            f"no rule of the scripted model answers turn {names['turn']} of row {_row_name(names['row'])}, "
            f"attempt {names['attempt']}; add a last rule without `when`"
        )

    def _answer(self, rule: Rule, names: Mapping[str, Any], prompt: str) -> Completion:
        error = rule.text("error", names)
        if error is not None:
            raise ModelUnavailable(error, where="scripted model")
        message: Message = {"role": "assistant", "content": rule.text("reply", names)}
        calls = rule.calls(names)
        if calls:
            message["tool_calls"] = [_call(names["turn"], index, *call) for index, call in enumerate(calls)]
        elif message["content"] is None:
            message["content"] = ""
        reasoning = rule.text("reasoning", names)
        reasoning_tokens = token_count(reasoning or "")
        usage = Usage(token_count(prompt), token_count(message_text(message)) + reasoning_tokens, reasoning_tokens)
        return Completion(
            message=message,
            finish_reason=rule.finish_reason or ("tool_calls" if calls else "stop"),
            usage=usage,
            reasoning=reasoning,
            model=self._model,
            cost=0.0 if self._price is None else self._price.cost(usage),
        )


def _call(turn: int, index: int, name: str, arguments: str) -> dict[str, Any]:
    # Unique within a rollout, and the same in each run: a recording can be compared.
    return {"id": f"call_{turn}_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _with_latency(completion: Completion, latency: float) -> Completion:
    from dataclasses import replace

    return replace(completion, latency=latency)


def luck(row: Mapping[str, Any], attempt: int, turn: int) -> float:
    """A number in [0, 1), fixed by the row's content, the attempt and the turn: the same in each run, everywhere."""
    content = json.dumps(dict(row), sort_keys=True, default=str)
    digest = hashlib.sha256(f"{content}\n{attempt}\n{turn}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _row_name(row: Mapping[str, Any]) -> str:
    for key in ("id", "row_id", "name"):
        if row.get(key) is not None:
            return repr(row[key])
    text = json.dumps(dict(row), ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"
