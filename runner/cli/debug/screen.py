"""The screen of `debug`: everything it draws, on stderr.

It remembers which messages it has shown, so that a request brings only what is new.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from runner.batch.figures import duration, many, money, number
from runner.batch.transcript import safe
from runner.cli.console import Console, Style
from runner.cli.debug.paper import (
    indented,
    message_lines,
    rule,
    sampling_lines,
    sampling_words,
    tool_lines,
)
from runner.records.completion import Completion
from runner.records.failure import Failure
from runner.records.limits import LIMIT_REASONS
from runner.records.message import Message, text_of
from runner.records.rollout import Outcome, RolloutRequest
from runner.runtime.stepping import Request
from runner.tools.toolbox import Answer

KEYS = {
    "request": "n send · e edit · t tools · s sampling · m messages · c to the end · ? help",
    "answer": "n take it · r ask again · e edit · m messages · c to the end · ? help",
    "answers": "1, 2, … choose · n the last · r ask again · e edit the last · ? help",
    "failure": "n go on · r try again · e edit · m messages · c to the end · ? help",
    "limit": "n let it end the rollout · r go on past it · e edit · m messages · ? help",
    "tools": "n go on · r run them again · m messages · c to the end · ? help",
    "end": "n next row · r this row again · g ROW · m messages · q quit · ? help",
}
"""The keys that a prompt names when it is first met, by what it stands at."""

HELP = (
    ("n, Enter", "the next step: send the request, take the answer, go on"),
    ("c", "go on to the end of the rollout without a stop"),
    ("r", "ask again and choose an answer; try again what failed"),
    ("e [TEXT]", "edit the last message: to TEXT, in $EDITOR, or line by line"),
    ("m [N|all]", "the messages so far; message N or all of them unfolded"),
    ("t [NAME]", "the schemas of the tools, or of one"),
    ("s", "the sampling of this call"),
    ("g ROW[/ATTEMPT]", "leave for another row: its id, or its place from 0"),
    ("?", "this help, and the keys that count here"),
    ("q, Ctrl-D", "leave; what has not ended is cancelled"),
)


class Screen:
    """What a person sees. `style` is asked for anew with each drawing: a window may have been resized."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: list[str] = []
        self._waiting = False
        self._named: set[str] = set()

    @property
    def style(self) -> Style:
        return self._console.talk

    def draw(self, lines: Sequence[str]) -> None:
        """Print lines, after taking back a notice that somebody waits."""
        self.settle()
        self._console.err("\n".join(lines))

    def say(self, text: str) -> None:
        self.draw([self.style.dim(f"  {text}")])

    def complain(self, text: str) -> None:
        self.draw([f"  {self.style.warn(text)}"])

    def wait(self, text: str) -> None:
        """A notice that stays until something else is drawn; only on a terminal."""
        if self._console.live:
            sys.stderr.write(self.style.dim(f"  {text} …"))
            sys.stderr.flush()
            self._waiting = True

    def settle(self) -> None:
        if self._waiting:
            sys.stderr.write("\r\x1b[2K")
            self._waiting = False

    def prompt(self, where: str, kind: str) -> str:
        """What stands before the cursor; above it the keys, when this kind of stop is first met."""
        self.settle()
        style = self.style
        hint = "" if kind in self._named else f"{style.dim(f'  {KEYS[kind]}')}\n"
        self._named.add(kind)
        return f"\n{hint}{style.name(style.bold(f'{where} › '))}"

    def begin(self, request: RolloutRequest) -> None:
        """A rollout begins: nothing of it was shown yet."""
        self._shown = []
        style = self.style
        named = f" ({safe(request.row_id)})" if request.row_id != str(request.row_index) else ""
        lines = ["", rule(style, f"row {request.row_index}{named}, attempt {request.attempt}", line="━")]
        if request.label is not None:
            lines += [style.dim(line) for line in indented(style, f"label (hidden from the model): {request.label}")]
        self.draw(lines)

    def request(self, request: Request) -> None:
        """What will be sent: the messages that were not shown yet, and how it is sampled."""
        style, messages = self.style, request.messages
        new = self._new(messages)
        lines = ["", rule(style, f"turn {request.turn}: the request", line="━")]
        for at in new:
            lines += message_lines(style, at, messages[at])
        self._shown = [_key(message) for message in messages]
        counted = many(len(messages), "message")
        fresh = "all shown above" if not new else f"{len(new)} new" if len(new) < len(messages) else ""
        names = ", ".join(tool.name for tool in request.tools) or "no tools"
        facts = [f"{counted}, {fresh}" if fresh else counted, names, sampling_words(request.sampling)]
        below = [style.dim("─" * style.width)] if new else []
        self.draw([*lines, *below, *indented(style, " · ".join(facts))])

    def _new(self, messages: Sequence[Message]) -> list[int]:
        known = list(self._shown)
        fresh = []
        for at, message in enumerate(messages):
            key = _key(message)
            if key in known:
                known.remove(key)
            else:
                fresh.append(at)
        return fresh

    def answer(self, completion: Completion, title: str = "") -> None:
        style, message = self.style, completion.message
        lines = [""]
        if completion.reasoning:
            lines += [rule(style, "reasoning", paint=style.dim), *indented(style, completion.reasoning)]
        shown = message_lines(style, None, message, _call_note(completion))
        if title:
            shown[0] = rule(style, f"assistant, {title}", _call_note(completion), paint=style.ok)
        self._shown.append(_key(message))
        self.draw([*lines, *shown])

    def edited(self, at: int, message: Message) -> None:
        self._shown.append(_key(message))
        self.draw(["", *message_lines(self.style, at, message, "as edited")])

    def tools(self, answers: Sequence[Answer]) -> None:
        """How a batch of calls went. Their messages need not be shown again with the next request."""
        style, lines = self.style, [""]
        for each in answers:
            result = each.result
            note = " · ".join(word for word in (result.status, duration(each.seconds)) if word)
            shown = message_lines(style, None, each.message, f"{note} · cut" if result.truncated else note)
            if result.status != "ok":
                title = f"tool {safe(each.call.name)}"
                shown[0] = rule(style, title, note, paint=style.bad)
            lines += shown
            if result.where:
                lines.append(style.dim(f"  at {safe(result.where)}"))
            self._shown.append(_key(each.message))
        self.draw(lines)

    def failure(self, failure: Failure) -> None:
        style = self.style
        whose = "limit" if failure.kind in LIMIT_REASONS else failure.boundary
        title = rule(style, f"{whose}: {failure.kind}", paint=style.warn if whose == "limit" else style.bad)
        lines = ["", title, *indented(style, failure.message)]
        if failure.where:
            lines.append(style.dim(f"  at {safe(failure.where)}"))
        self.draw(lines)

    def messages(self, messages: Sequence[Message], which: str) -> None:
        """The conversation, folded; `which` is a number or "all" for the whole text."""
        style = self.style
        if which and which != "all" and not (which.isdigit() and int(which) < len(messages)):
            self.complain(f"there is no message {which}: they are 0 to {len(messages) - 1}")
            return
        chosen = [int(which)] if which.isdigit() else range(len(messages))
        self.draw([line for at in chosen
                   for line in message_lines(style, at, messages[at], whole=bool(which))])  # fmt: skip

    def offered(self, request: Request, name: str) -> None:
        """The schemas of the tools, or of one."""
        found = [tool for tool in request.tools if name in ("", tool.name)]
        if not found:
            names = ", ".join(tool.name for tool in request.tools)
            self.complain(f"no tool `{name}` is offered: {names}" if names else "no tools are offered")
            return
        self.draw([line for tool in found for line in tool_lines(self.style, tool)])

    def sampling(self, request: Request) -> None:
        self.draw([rule(self.style, "sampling"), *sampling_lines(self.style, request.sampling)])

    def help(self) -> None:
        style = self.style
        width = max(len(key) for key, _ in HELP)
        self._named.clear()
        self.draw([rule(style, "keys"), *(f"  {style.name(key.ljust(width))}  {text}" for key, text in HELP)])

    def logged(self, name: str, data: Any) -> None:
        text = json.dumps(dict(data), ensure_ascii=False, default=str) if data else ""
        self.draw([self.style.dim(line) for line in indented(self.style, f"log {name} {text}".rstrip())])

    def outcome(self, outcome: Outcome, marks: Sequence[str]) -> None:
        """How it ended: scores with their reasons, the reward, what it took."""
        style = self.style
        paint = {"scored": style.ok, "ungraded": style.warn, "failed": style.bad}.get(outcome.status, style.dim)
        title = f"{outcome.status} · {outcome.stop_reason}"
        lines = ["", rule(style, title, line="━", paint=lambda text: style.bold(paint(text)))]
        lines += self._scores(outcome)
        if outcome.failure is not None and not any(score.failure for score in outcome.scores.values()):
            lines += indented(style, f"{outcome.failure.boundary}/{outcome.failure.kind}: {outcome.failure.message}")
            if outcome.failure.where:
                lines.append(style.dim(f"  at {safe(outcome.failure.where)}"))
        lines += [style.dim(line) for line in indented(style, _took(outcome))]
        lines += [style.warn(line) for mark in marks for line in indented(style, mark)]
        self.draw(lines)

    def _scores(self, outcome: Outcome) -> list[str]:
        """A line a grader, and the reward under them."""
        style = self.style
        width = max(len(name) for name in (*outcome.scores, "reward"))
        lines = []
        for name, score in outcome.scores.items():
            value = style.warn(f"{'none':>7}") if score.value is None else f"{number(score.value):>7}"
            reason = score.reason or (score.failure.message if score.failure else "")
            first, *rest = indented(Style(False, style.width - width - 12), reason) if reason else [""]
            lines.append(f"  {style.name(name.ljust(width))}  {value}{first}".rstrip())
            lines += [f"{' ' * (width + 11)}{line}" for line in rest]
        reward = style.warn("none".rjust(7)) if outcome.reward is None else style.bold(f"{number(outcome.reward):>7}")
        return [*lines, f"  {style.bold('reward'.ljust(width))}  {reward}"]


def _key(message: Message) -> str:
    """What makes a message known: an agent may send a tool's answer on without the name of the tool."""
    if message.get("role") == "tool":
        return json.dumps(["tool", message.get("tool_call_id"), text_of(message)])
    return json.dumps(message, sort_keys=True, default=str)


def _call_note(completion: Completion) -> str:
    facts = [duration(completion.latency)] if completion.latency else []
    if completion.usage is not None:
        facts.append(f"{completion.usage.input_tokens:,} in + {completion.usage.output_tokens:,} out")
    facts.append(completion.finish_reason or "no finish reason")
    if completion.retries:
        facts.append(f"tried {completion.retries + 1} times")
    return " · ".join(facts)


def _took(outcome: Outcome) -> str:
    sample, usage = outcome.sample, outcome.usage
    facts = [
        many(int(sample.metrics.get("turns", 0)), "turn"),
        many(len(sample.tool_spans), "tool call"),
        f"{usage.input_tokens:,} in + {usage.output_tokens:,} out tokens",
        money(outcome.cost) if outcome.cost is not None else "",
        duration(float(outcome.timing.get("total") or 0.0)),
    ]
    return " · ".join(fact for fact in facts if fact)
