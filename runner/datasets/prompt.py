"""From a row to the messages a rollout starts from, and to its label.

A row brings `messages`, or texts that the file's templates (or the columns `system_prompt` and `user_prompt`) make
into messages. Errors begin with `where`, the row's place as the caller says it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.datasets.dataset import DatasetError

if TYPE_CHECKING:
    from runner.records.message import Message
    from runner.templates.template import Template

_ROLES = ("system", "developer", "user", "assistant", "tool")


def messages_of(
    row: Mapping[str, Any],
    *,
    system: Template | None = None,
    user: Template | None = None,
    label: str | None = None,
    where: str = "",
) -> list[Message]:
    """The prompt of a row.

    A row's own `messages` (a list, or its JSON text) are the prompt; `system` goes first only if they bring no system
    message, and `user` is not used. Otherwise `system` (or `row.system_prompt`, if there is one) and `user` (or
    `row.user_prompt`) make it. Templates see `row` and `label`. Raises `DatasetError`.
    """
    if row.get("messages") is not None:
        return with_system(_checked(row["messages"], where), row, system, label=label, where=where)
    messages = []
    if system is not None:
        messages.append({"role": "system", "content": _rendered(system, row, label, where)})
    elif row.get("system_prompt"):
        messages.append({"role": "system", "content": _content(row, "system_prompt", where)})
    if user is not None:
        messages.append({"role": "user", "content": _rendered(user, row, label, where)})
    elif row.get("user_prompt") is not None:
        messages.append({"role": "user", "content": _content(row, "user_prompt", where)})
    else:
        raise _no_prompt(row, where)
    return messages


def with_system(
    messages: Sequence[Message],
    row: Mapping[str, Any],
    system: Template | None,
    *,
    label: str | None = None,
    where: str = "",
) -> list[Message]:
    """`messages` with the file's `system` before them, unless they bring a system message. Raises `DatasetError`."""
    if system is None or any(message.get("role") in ("system", "developer") for message in messages):
        return list(messages)
    return [{"role": "system", "content": _rendered(system, row, label, where)}, *messages]


def label_of(row: Mapping[str, Any], template: Template | None = None, *, where: str = "") -> str | None:
    """The reference answer as text, or None if the row has none: absent without a template, or null.

    Numbers are written as Python writes them, lists and tables as JSON. Raises `DatasetError` if the template names
    what the row has not.
    """
    if template is None:
        return _as_text(row.get("ground_truth"))
    from runner.templates.template import TemplateError

    try:
        return template.render(row=row)
    except TemplateError as error:
        if error.null:
            return None
        raise DatasetError(_at(where, f"the label cannot be made: {error}")) from None


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _rendered(template: Template, row: Mapping[str, Any], label: str | None, where: str) -> str:
    from runner.templates.template import TemplateError

    try:
        return template.render(row=row, label=label)
    except TemplateError as error:
        raise DatasetError(_at(where, f"the prompt cannot be made: {error}")) from None


def _content(row: Mapping[str, Any], column: str, where: str) -> Any:
    value = row[column]
    if isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(part, dict) for part in value)):
        return value
    raise DatasetError(_at(where, f"`{column}` is {_kind(value)}, not text"))


def _no_prompt(row: Mapping[str, Any], where: str) -> DatasetError:
    columns = [str(name) for name in row]
    has = ", ".join(f"`{name}`" for name in columns[:12]) or "nothing"
    null = [name for name in ("messages", "user_prompt") if name in row]
    what = f"`{null[0]}` is null" if null else f"the row has neither `messages` nor `user_prompt`; it has {has}"
    likely = next((name for name in ("question", "prompt", "input", "instruction", "problem") if name in row), None)
    column = likely or (columns[0] if columns and not null else "question")
    return DatasetError(_at(where, what), f'say which column it is: [dataset] columns = {{ user_prompt = "{column}" }}')


def _checked(value: Any, where: str) -> list[Message]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise DatasetError(_at(where, f"`messages` is text, but not JSON: {error}")) from None
    if not isinstance(value, list):
        raise DatasetError(_at(where, f"`messages` is {_kind(value)}, not a list of messages"))
    if not value:
        raise DatasetError(_at(where, "`messages` is an empty list"))
    for index, message in enumerate(value):
        problem = _problem(message)
        if problem:
            raise DatasetError(_at(where, f"`messages[{index}]` {problem}"))
    return [dict(message) for message in value]


def _problem(message: Any) -> str:
    """What is wrong with one message, or nothing."""
    if not isinstance(message, dict):
        return f'is {_kind(message)}, not an object such as {{"role": "user", "content": "…"}}'
    role = message.get("role")
    if role not in _ROLES:
        said = "has no `role`" if role is None else f"has the role {json.dumps(role, ensure_ascii=False)}"
        return f"{said}; roles are {', '.join(_ROLES)}"
    content = message.get("content")
    if isinstance(content, list):
        bad = any(not isinstance(part, dict) or "type" not in part for part in content)
        return "has a content part without a `type`" if bad else ""
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        return "is a tool result without its `tool_call_id`"
    if content is None:
        return "" if role == "assistant" and message.get("tool_calls") else "has no `content`"
    return "" if isinstance(content, str) else f"has {_kind(content)} as its content, not text"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a boolean", str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


def _at(where: str, message: str) -> str:
    return f"{where}: {message}" if where else message
