"""A call as a JSON object, by whichever words a model has learned for its name and its arguments."""

from __future__ import annotations

import json
import re
from typing import Any

from runner.workflows.parsers.parser import Fault, WrittenCall

NAMES = ("name", "tool_name", "tool", "action", "function")
ARGUMENTS = ("arguments", "parameters", "args", "tool_args", "action_input", "input")
_DECODER = json.JSONDecoder(strict=False)  # a new line inside a text is what models write
_SPACE = re.compile(r"\s*")


def read_json(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at `at`, spaces before it skipped, and where it ends. Raises ValueError with a sentence."""
    start = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing at least
    if start >= len(text):
        raise ValueError("There is no JSON.")
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        before = text[max(start, error.pos - 25) : error.pos + 5]
        reason = error.msg[0].lower() + error.msg[1:]
        raise ValueError(f"This is no valid JSON: {reason}, at {before!r}.") from None
    except RecursionError:
        raise ValueError("This JSON is nested too deeply.") from None
    except ValueError:  # Python reads no number of thousands of digits
        raise ValueError("This JSON holds a number with too many digits.") from None


def calls_in(value: Any, text: str) -> list[WrittenCall | Fault]:
    """The call that a JSON value is, or the calls of a list of them; a fault for what is none."""
    if isinstance(value, list) and value:
        return [part for each in value for part in calls_in(each, json.dumps(each, ensure_ascii=False))]
    if not isinstance(value, dict):
        return [Fault("A call is a JSON object with a name and arguments.", text)]
    call = value
    if isinstance(value.get("function"), dict):  # as OpenAI nests it
        call = value["function"]
    name = next((call[key] for key in NAMES if isinstance(call.get(key), str) and call[key]), "")
    if not name:
        return [Fault(f"The call names no tool: its keys are {_listed(call)}.", text)]
    return [_with_arguments(call, name, text)]


def _with_arguments(call: dict[str, Any], name: str, text: str) -> WrittenCall | Fault:
    given = [key for key in ARGUMENTS if key in call]
    if len(given) > 1:
        return Fault(f"The call gives its arguments twice, as {_listed(given)}.", text, name)
    arguments = call[given[0]] if given else {}
    if isinstance(arguments, str) and arguments.strip().startswith("{"):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return Fault("The arguments are a text that is no valid JSON: write them as an object.", text, name)
    if arguments is None:
        arguments = {}
    if not given:
        stray = [key for key in call if key not in NAMES and key not in ("id", "type")]
        if stray:
            return Fault(
                f"The arguments belong into an object, and {_listed(stray)} stand beside the name.", text, name
            )
    if isinstance(arguments, dict):
        return WrittenCall(name, arguments)
    return WrittenCall(name, positional=(arguments,))


def _listed(keys: Any) -> str:
    return ", ".join(f"`{str(key)[:40]}`" for key in list(keys)[:8]) or "none"
