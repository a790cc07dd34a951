"""Server-sent events of a chat stream, put together into one answer. Pure: bytes in, a dictionary out.

`EventParser` finds the events however the bytes are split; `DeltaAssembler` merges the deltas into the body that a
call without streaming would have returned, so that `wire.parse_answer` reads both.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from runner.models import pieces

_JOINED = ("token_ids", "logprobs")
_TOLD_APART = ("index", "id", "type", "function")


class StreamError(Exception):
    """The stream is not what it should be."""


class ErrorFrame(Exception):
    """The endpoint reported an error in the middle of a stream. `error` is what it sent."""

    def __init__(self, error: Any) -> None:
        super().__init__("the endpoint reported an error in the middle of the stream")
        self.error = error


class EventParser:
    """Incremental. `feed` returns the data of each event that is complete: its `data:` lines joined by a newline.

    Raises ErrorFrame for an event that is called `error`.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._first = True
        self._is_error = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._after_cr and chunk:
            # The line ended with the chunk before; a line feed that follows belongs to that end.
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if chunk.endswith(b"\r"):
            self._after_cr = True
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            if chunk:
                self._parts.append(chunk)
            return []
        if self._parts:
            chunk = b"".join(self._parts) + chunk
        *lines, rest = chunk.split(b"\n")
        self._parts = [rest] if rest else []
        return self._read(lines)

    def _read(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        if self._first and lines:
            self._first = False
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        for line in lines:
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data) if len(self._data) > 1 else self._data[0])
                    self._data = []
                    if self._is_error:
                        raise ErrorFrame(_error_of(events[-1]))
                self._is_error = False
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event:"):
                self._is_error = line[6:].strip() == b"error"
            elif line.startswith(b"error:"):
                # No field of the standard: older llama.cpp servers put the error there instead of into `data`.
                self._is_error = True
                self._data.append(line[6:].strip())
        return events


def _error_of(data: bytes) -> Any:
    """What an error event reports: the object within, or its words."""
    try:
        value = from_json(data)
    except ValueError:
        return data.decode("utf-8", "replace")
    return value["error"] if isinstance(value, dict) and value.get("error") is not None else value


class DeltaAssembler:
    """Merges the chunks of one streamed completion. `add` each, then `result`."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._content: list[Any] = []
        self._numbers: dict[str, list[Any]] = {}
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[int, dict[str, Any]] = {}
        self._began = False

    @property
    def complete(self) -> bool:
        """Whether a finish reason has arrived."""
        return bool(self._choice.get("finish_reason"))

    def add(self, chunk: Any) -> None:
        """Merge one chunk. Raises StreamError, ErrorFrame."""
        if not isinstance(chunk, dict):
            raise StreamError("an event of the stream is not a JSON object")
        if chunk.get("error") is not None or chunk.get("object") == "error":
            raise ErrorFrame(chunk.get("error") or chunk)
        for key, value in chunk.items():
            if key != "choices" and value is not None:
                self._add_top(key, value)
        choices = chunk.get("choices") or []
        if not isinstance(choices, list):
            raise StreamError("`choices` of an event is not a list")
        for choice in choices:
            if not isinstance(choice, dict):
                raise StreamError("a choice of an event is not an object")
            if choice.get("index", 0) in (0, None):
                self._add_choice(choice)

    def _add_top(self, key: str, value: Any) -> None:
        old = self._top.get(key)
        if key in _JOINED:
            self._top[key] = _joined(old, value, key)
        elif isinstance(old, dict) and isinstance(value, dict) and key != "usage":
            self._top[key] = {**old, **value}
        elif key == "usage" or old is None or old == "":
            # A first chunk that is only about the prompt's filtering has an empty id and model.
            self._top[key] = value

    def _add_choice(self, choice: dict[str, Any]) -> None:
        self._began = True
        delta = choice.get("delta")
        for key, value in choice.items():
            if value is None or key in ("delta", "index") or (key == "finish_reason" and value == ""):
                continue
            if key in _JOINED:
                self._choice[key] = _joined(self._choice.get(key), value, key)
            elif key != "text" or delta is None:  # beside a delta it repeats the delta's text
                self._choice[key] = value
        # Some servers send a last choice with the whole `message` and no delta.
        if delta is None:
            return
        if not isinstance(delta, dict):
            raise StreamError("`delta` of an event is not an object")
        for key, value in delta.items():
            if value is not None:
                self._add_delta(key, value)

    def _add_delta(self, key: str, value: Any) -> None:
        if key == "content":
            self._add_content(value)
        elif key == "tool_calls":
            self._add_calls(value)
        elif isinstance(value, str):
            if key != "role":
                self._texts.setdefault(key, []).append(value)
        elif isinstance(value, (int, float)):
            self._numbers.setdefault(key, []).append(value)
        elif key == "function_call" and isinstance(value, dict):
            self._message[key] = _appended(self._message.get(key), value)
        elif isinstance(value, list) and isinstance(self._message.get(key), list):
            self._message[key] = [*self._message[key], *value]
        else:
            self._message[key] = value

    def _add_content(self, value: Any) -> None:
        if isinstance(value, str):
            self._content.append(value)
        elif isinstance(value, list):
            parts, thoughts = pieces.split(value)
            self._content += parts
            if thoughts:
                self._texts.setdefault("reasoning_content", []).append(thoughts)
        else:
            raise StreamError("`content` of an event is not a text")

    def _add_calls(self, deltas: Any) -> None:
        if isinstance(deltas, dict):
            deltas = [deltas]
        if not isinstance(deltas, list):
            raise StreamError("`tool_calls` of an event is not a list")
        for delta in deltas:
            if not isinstance(delta, dict):
                raise StreamError("a tool call of an event is not an object")
            function = delta.get("function") or {}
            if not isinstance(function, dict):
                raise StreamError("the function of a tool call is not an object")
            _extend(self._call_of(delta), delta, function)

    def _call_of(self, delta: dict[str, Any]) -> dict[str, Any]:
        """The call that a delta continues: by its index. A new id and a name under an old index begin another call.

        Not a new id alone: some servers invent one for every delta.
        """
        index, call_id = delta.get("index"), delta.get("id") or ""
        call = self._by_index.get(index) if isinstance(index, int) else self._last_call(delta)
        if call is not None and call_id and call["id"] and call_id != call["id"] and _name_in(delta):
            call = None
        if call is None:
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        return call

    def _last_call(self, delta: dict[str, Any]) -> dict[str, Any] | None:
        """Without an index, a delta that names a function begins a call; any other continues the last one."""
        begins = bool(delta.get("id")) or bool(_name_in(delta))
        if not begins:
            return self._calls[-1] if self._calls else None
        return next((call for call in self._calls if delta.get("id") and call["id"] == delta["id"]), None)

    def result(self) -> dict[str, Any]:
        """The whole answer in the form of a call without streaming."""
        if not self._began:
            return {**self._top, "choices": []}
        self._choice.update(self._numbers)
        if "message" not in self._choice or self._content or self._texts or self._calls:
            message: dict[str, Any] = {"role": "assistant", "content": None, **self._message}
            message.update({key: "".join(parts) for key, parts in self._texts.items()})
            if self._content:
                message["content"] = pieces.join(self._content)
            if self._calls:
                message["tool_calls"] = self._calls
            self._choice["message"] = message
        return {**self._top, "choices": [{"index": 0, **self._choice}]}


def _name_in(delta: dict[str, Any]) -> Any:
    return (delta.get("function") or {}).get("name")


def _appended(old: Any, new: dict[str, Any]) -> dict[str, Any]:
    """A table whose texts arrive in pieces."""
    merged: dict[str, Any] = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if isinstance(value, str) and isinstance(merged.get(key), str):
            merged[key] += value
        elif value is not None:
            merged[key] = value
    return merged


def _extend(call: dict[str, Any], delta: dict[str, Any], function: dict[str, Any]) -> None:
    if delta.get("id") and not call["id"]:
        call["id"] = delta["id"]
    # Signatures and the like: what some endpoints want back with the call.
    call.update({key: value for key, value in delta.items() if value is not None and key not in _TOLD_APART})
    merged = call["function"]
    name = function.get("name")
    if name is not None and not isinstance(name, str):
        raise StreamError("the name of a tool call is not a string")
    # Repeated whole by some servers, sent in pieces by none that we know of.
    if name and not merged["name"]:
        merged["name"] = name
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        from json import dumps

        arguments = dumps(arguments, ensure_ascii=False)
    if arguments is not None and not isinstance(arguments, str):
        raise StreamError("the arguments of a tool call are not a string")
    merged["arguments"] += arguments or ""


def _joined(old: Any, new: Any, key: str) -> Any:
    """Lists one after the other; tables of lists (`logprobs`) key by key; single numbers as a list."""
    if isinstance(new, (int, float)):
        new = [new]
    if old is None:
        return new
    if isinstance(old, list) and isinstance(new, list):
        old.extend(new)  # ours: the chunk it came from is not looked at again
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        merged = {**old}
        for name, value in new.items():
            if value is not None:
                merged[name] = _joined(old.get(name), value, key)
        return merged
    raise StreamError(f"`{key}` changes its type within the stream")
