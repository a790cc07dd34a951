"""One rollout as a person reads it: the conversation with its calls, then the scores, then what went wrong.

What a model or a tool wrote is shown with its control characters spelled out: it cannot move the cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.batch.figures import Plain, clip, duration, money, number
from runner.diag.style import Style
from runner.records.message import Message, text_of, tool_calls_of


def transcript(record: Mapping[str, Any], style: Style | None = None) -> str:
    """The text of one journal record."""
    style = style or Plain()
    parts = [_head(record, style), *_conversation(record, style), _scores(record, style), _failure(record, style)]
    return "\n\n".join(part for part in parts if part)


def _head(record: Mapping[str, Any], style: Style) -> str:
    paint = {"scored": style.ok, "ungraded": style.warn, "failed": style.bad}.get(record["outcome"], style.dim)
    title = style.bold(f"row {safe(record['row_id'])}, attempt {record['attempt']}")
    reward = "no reward" if record["reward"] is None else f"reward {number(record['reward'])}"
    usage, timing = record.get("usage") or {}, record.get("timing") or {}
    facts = [
        f"{usage.get('input_tokens', 0):,} in + {usage.get('output_tokens', 0):,} out tokens",
        money(record["cost"]) if record.get("cost") is not None else "",
        duration(float(timing.get("total") or 0.0)),
        f"row {record['row']} of the dataset" if str(record["row"]) != record["row_id"] else "",
    ]
    label = record.get("label")
    lines = [
        f"{title}   {paint(record['outcome'])} · {record['stop_reason']} · {style.bold(reward)}",
        style.dim(" · ".join(fact for fact in facts if fact)),
    ]
    if label is not None:
        lines.append(f"{style.dim('label')}  {clip(safe(str(label)), style.width - 7)}")
    return "\n".join(lines)


def _conversation(record: Mapping[str, Any], style: Style) -> list[str]:
    messages: Sequence[Message] = record.get("messages") or ()
    calls = [call for call in record.get("calls") or () if "error" not in call]
    spans = {span.get("tool_call_id"): span for span in record.get("tools") or ()}
    # A prompt may hold assistant messages of its own, so calls belong to the last ones.
    first = sum(message.get("role") == "assistant" for message in messages) - len(calls)
    blocks: list[str] = []
    written: list[str] = []
    seen = 0
    for message in messages:
        notes: list[str] = []
        if message.get("role") == "assistant":
            call = calls[seen - first] if 0 <= first <= seen else {}
            notes = [_call_note(call)] if call else []
            if call.get("reasoning"):
                blocks.append(_block("reasoning", "", safe(str(call["reasoning"])), style.dim, style))
            written = [_span_note(span) for span in spans.values() if _is_written(span, call)]
            seen += 1
        elif message.get("role") == "tool":
            notes = [_span_note(spans.get(message.get("tool_call_id")))]
        elif message.get("role") == "user":
            notes, written = written, []
        blocks.append(_message(message, notes, style))
    return blocks


def _is_written(span: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a tool call stood in the text of the answer that `call` brought: a user message holds its result."""
    return "arguments" in span and span.get("turn") == call.get("turn")


def _message(message: Message, notes: Sequence[str], style: Style) -> str:
    """A message under its notes: one beside its title, or how many there are, and a line for each."""
    role = str(message.get("role") or "?")
    paint = {"assistant": style.ok, "tool": style.name, "system": style.dim}.get(role, style.bold)
    note = f"{len(notes)} calls" if len(notes) > 1 else "".join(notes)
    lines = [style.dim(each) for each in notes] if len(notes) > 1 else []
    lines += [safe(text_of(message))] if text_of(message) else []
    for call in tool_calls_of(message) if role == "assistant" else ():
        lines.append(style.name(f"→ {safe(call.name)}({safe(call.arguments)})"))
    return _block(role, note, "\n".join(lines) or style.dim("(empty)"), paint, style)


def _block(title: str, note: str, body: str, paint: Any, style: Style) -> str:
    rule = "─" * max(3, style.width - 5 - len(title) - len(note) - (1 if note else 0))
    head = f"{style.dim('──')} {paint(title)} {style.dim(rule)}{' ' if note else ''}{style.dim(note)}"
    return f"{head}\n{body}"


def _call_note(call: Mapping[str, Any]) -> str:
    usage = call.get("usage") or {}
    facts = [duration(float(call.get("latency") or 0.0))]
    if usage:
        facts.append(f"{usage.get('input_tokens', 0):,} in + {usage.get('output_tokens', 0):,} out")
    facts.append(str(call.get("finish_reason") or "no finish reason"))
    if call.get("retries"):
        facts.append("1 retry" if call["retries"] == 1 else f"{call['retries']} retries")
    if call.get("token_ids") is not None:
        facts.append("token ids")
    return " · ".join(facts)


def _span_note(span: Mapping[str, Any] | None) -> str:
    if span is None:
        return ""
    facts = [
        safe(str(span.get("name") or "")),
        str(span.get("status") or ""),
        duration(float(span.get("seconds") or 0.0)),
    ]
    if span.get("truncated"):
        facts.append("cut")
    return " · ".join(fact for fact in facts if fact)


def _scores(record: Mapping[str, Any], style: Style) -> str:
    scores = record.get("scores") or {}
    if not scores:
        return ""
    width = min(24, max(len(name) for name in scores))
    lines = [style.bold("Scores")]
    for name, score in scores.items():
        value = score.get("value")
        shown = style.warn(f"{'none':>7}") if value is None else style.bold(f"{number(value):>7}")
        reason = safe(str(score.get("reason") or (score.get("failure") or {}).get("message") or ""))
        room = max(20, style.width - width - 14)
        lines.append(f"  {clip(name, width):<{width}}  {shown}  {clip(reason, room)}".rstrip())
    return "\n".join(lines)


def _failure(record: Mapping[str, Any], style: Style) -> str:
    failure = record.get("failure")
    if not failure:
        return ""
    lines = [f"{style.bad('Failure')}  {failure['boundary']}/{failure['kind']}", f"  {safe(str(failure['message']))}"]
    if failure.get("where"):
        lines.append(style.dim(f"  at {safe(str(failure['where']))}"))
    if failure.get("detail"):
        lines += [style.dim(f"  {line}") for line in safe(str(failure["detail"])).splitlines()]
    return "\n".join(lines)


def safe(text: str) -> str:
    """`text` with control, surrogate and direction characters, but for line ends and tabs, as `\\x1b` and the like."""
    if text.isprintable():
        return text
    from unicodedata import category

    return "".join(
        _spelled(character) if category(character) in _UNSAFE and character not in _KEPT else character
        for character in text.replace("\r\n", "\n")
    )


_UNSAFE = ("Cc", "Cf", "Cs")
_KEPT = "\n\t\u200c\u200d\ufeff"
"""Line ends and tabs, and the joiners that scripts and emoji need."""


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
