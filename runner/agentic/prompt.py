"""What the third seed takes for a prompt, as the messages and the row of a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from runner.records.message import Message

_TEXTS = ("content", "prompt", "problem", "description")


def messages_of(prompt: Any, system_prompt: str = "") -> list[Message]:
    """The first messages: a text, a list of messages, or an object with `messages` or a text under a known key.

    `system_prompt` goes first, where the prompt has no system message of its own. Raises ValueError for anything else.
    """
    messages = _messages(prompt)
    if system_prompt and (not messages or messages[0].get("role") != "system"):
        return [{"role": "system", "content": system_prompt}, *messages]
    return messages


def row_of(prompt: Any) -> dict[str, Any]:
    """What else the prompt says: the row that tools and sandboxes see."""
    if not isinstance(prompt, Mapping):
        return {}
    return {str(key): deepcopy(value) for key, value in prompt.items() if key != "messages"}


def _messages(prompt: Any) -> list[Message]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if isinstance(prompt, Mapping):
        if isinstance(prompt.get("messages"), list | tuple):
            return _checked(prompt["messages"])
        for key in _TEXTS:
            if isinstance(prompt.get(key), str):
                return [{"role": "user", "content": prompt[key]}]
        wanted = ", ".join(f"`{key}`" for key in (*_TEXTS, "messages"))
        raise ValueError(f"the prompt has none of {wanted}: it has {', '.join(map(str, prompt)) or 'nothing'}")
    if isinstance(prompt, list | tuple):
        return _checked(prompt)
    raise ValueError(f"a prompt is a text, a dictionary or a list of messages, found {type(prompt).__name__}")


def _checked(messages: Sequence[Any]) -> list[Message]:
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ValueError(f"message {place} of the prompt has no `role`")
    if not messages:
        raise ValueError("the prompt has no messages")
    return [deepcopy(dict(message)) for message in messages]
