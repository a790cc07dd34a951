"""`TextCalling`: tools for a model that writes its calls into its text, in the format of a parser.

Over the wire go texts alone, and a trainer sees what the endpoint said. The calls themselves go the way of all calls:
counted, limited, run in parallel, recorded. What cannot be read as a call is answered like a bad call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import Completion, ToolSpec
from runner.records.message import Message, ToolCall, text_of, tool_calls_of
from runner.workflows.answers import ToolAnswers
from runner.workflows.calling import Turn
from runner.workflows.parsers.manual import sample_arguments
from runner.workflows.parsers.parser import Fault, Parsed, Parser, WrittenCall
from runner.workflows.parsers.typed import Unbound, arguments_of
from runner.workflows.turn import cut_short, resendable
from runner.workflows.workflow import AgentWorkflowContext

_NATIVE = "Your call was not read: it came beside your text, and calls are written into the text here. "


class TextCalling:
    """Calls in the format of `parser`. `stop`: whether its stop sequences are sent, after those of `[sampling]`.

    `instructions`: whether the system message is told the tools and the format.
    """

    marks_answers = True

    def __init__(
        self, parser: Parser, *, resend_reasoning: bool = False, stop: bool = True, instructions: bool = True
    ) -> None:
        self._parser = parser
        self._instructs = instructions
        self._resend = resend_reasoning
        self._stop = parser.stop if stop else ()

    def opening(self, prompt: Sequence[Message], specs: Sequence[ToolSpec]) -> list[Message]:
        """The prompt with the tools and the format told at the end of its system message."""
        told = self._parser.instructions(specs) if self._instructs else ""
        if not told:
            return list(prompt)
        if prompt and prompt[0].get("role") == "system":
            first = {**prompt[0], "content": _longer(prompt[0].get("content"), told)}
            return [first, *prompt[1:]]
        return [{"role": "system", "content": told}, *prompt]

    async def ask(self, ctx: AgentWorkflowContext[Any], messages: Sequence[Message]) -> Turn:
        how = {"stop": [*ctx.terms.sampling.stop, *self._stop]} if self._stop else {}
        completion = await ctx.chat(messages, tools=[], **how)
        stray = tool_calls_of(completion.message)
        message = self._message(completion)
        stop = cut_short(completion)
        if stop is not None:
            return Turn(message, answer="", stop=stop)
        parsed = self._parser.parse(text_of(message))
        if stray and not parsed.parts:
            return Turn(message, correction=_NATIVE + self._parser.correction(parsed))
        if parsed.parts:
            return Turn(
                message,
                tuple(self._calls(parsed, ctx.tools, len(messages))),
                remark=parsed.ignored,
                said=parsed.text or parsed.thought,
            )
        if parsed.answer is None:
            return Turn(message, correction=self._parser.correction(parsed))
        return Turn(message, answer=parsed.answer)

    async def use(
        self, ctx: AgentWorkflowContext[Any], messages: Sequence[Message], turn: Turn
    ) -> tuple[list[Message], ToolAnswers]:
        def tell(answers: ToolAnswers) -> list[Message]:
            contents = [str(answer.get("content") or "") for answer in answers]
            told = self._parser.observation(list(zip(turn.calls, contents, strict=True)))
            return [{"role": "user", "content": f"{told}\n\n({turn.remark})" if turn.remark else told}]

        answers = await ctx.call_tools(turn.calls, tell=tell)
        return [*messages, *tell(answers)], answers

    def _message(self, completion: Completion) -> Message:
        message = resendable(completion, reasoning=self._resend)
        message.pop("tool_calls", None)  # nobody answers them, and then an endpoint refuses the conversation
        return {**message, "content": message.get("content") or ""}

    def _calls(self, parsed: Parsed, specs: Sequence[ToolSpec], turn: int) -> list[ToolCall]:
        known = {spec.name: spec for spec in specs}
        return [self._call(part, known, f"call_{turn}_{number}") for number, part in enumerate(parsed.parts)]

    def _call(self, part: WrittenCall | Fault, known: Mapping[str, ToolSpec], name: str) -> ToolCall:
        if isinstance(part, Fault):
            return ToolCall(name, part.name, part.text, True, self._right_form(part.problem, part.name, known))
        if part.name not in known:
            return ToolCall(name, part.name, _json(part.arguments), True)  # whoever runs it knows what to say
        try:
            return ToolCall(name, part.name, _json(arguments_of(part, known[part.name])), True)
        except Unbound as error:
            return ToolCall(
                name, part.name, _json(part.arguments), True, self._right_form(str(error), part.name, known)
            )

    def _right_form(self, problem: str, name: str, known: Mapping[str, ToolSpec]) -> str:
        """What is wrong with a call, and how it is written."""
        spec = known.get(name) or next(iter(known.values()), None)
        said = f"Your call could not be read. {problem}"
        try:
            shown = self._parser.render(Parsed(parts=(WrittenCall(spec.name, sample_arguments(spec)),))) if spec else ""
        except NotImplementedError:  # a format of the user's, which only their prompt can tell
            return said
        return f"{said} Write it like this:\n{shown}" if shown else said


def _longer(content: Any, told: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": f"\n\n{told}"}]
    return f"{content}\n\n{told}" if content else told


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)
