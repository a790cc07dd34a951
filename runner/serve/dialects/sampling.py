"""`completion_params` of an agent-loop start, as overrides of `[sampling]` and what else each chat call carries.

The params are free-form. What a controller may not decide, since it would break the call, is stripped with a note;
parameters of `[sampling]` are coerced; all others are forwarded as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.records.quick import quick

RESERVED = frozenset({"messages", "rollout_id", "tools", "functions", "stream", "stream_options"})
"""Stripped: they are the call itself."""
_NUMBERS = ("temperature", "top_p")
_WHOLE = ("max_tokens", "seed")


@quick
class Asked:
    """`sampling` holds overrides by key of `[sampling]`, foreign parameters under `extra`; `model` is None if not said.

    `logprobs` is what the params say of it, True if nothing: these callers train on them.
    """

    sampling: Mapping[str, Any]
    model: str | None = None
    logprobs: Any = True


def read_params(params: Mapping[str, Any], notes: list[str]) -> Asked:
    """What a controller's params ask for; `notes` gets what was dropped.

    A value of the wrong kind is kept: it ends the rollout with a sentence that names it, as these callers expect.
    """
    reserved = sorted(RESERVED & params.keys())
    if reserved:
        notes.append(f"completion_params: {', '.join(reserved)} cannot be set there, dropped")
    rest = {name: value for name, value in params.items() if name not in RESERVED}
    model, logprobs = rest.pop("model", None), rest.pop("logprobs", None)
    if model is not None and not (isinstance(model, str) and model):
        notes.append("completion_params: model is no name, dropped")
        model = None
    sampling = {name: _number(rest.pop(name), name) for name in (*_NUMBERS, *_WHOLE) if rest.get(name) is not None}
    stop = stops(rest.pop("stop", None), notes)
    if stop:
        sampling["stop"] = stop
    # null says "not set": the file's own value holds
    extra = {name: value for name, value in rest.items() if not (value is None and name in (*_NUMBERS, *_WHOLE))}
    if extra:
        sampling["extra"] = extra
    return Asked(sampling, model, True if logprobs is None else logprobs)


def stops(value: Any, notes: list[str]) -> list[str]:
    """Stop texts: a text alone or a list of them; numbers are written out, empty texts and anything else dropped."""
    if value is None:
        return []
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list):
        notes.append("completion_params: stop is neither a text nor a list, dropped")
        return []
    fit = [str(each) for each in given if isinstance(each, str | int | float) and each != ""]
    if len(fit) < len(given):
        notes.append(f"completion_params: {len(given) - len(fit)} empty or unfit stop texts dropped")
    return fit


def _number(value: Any, name: str) -> Any:
    """A numeric text as its number, 5.0 as 5 where a whole one is wanted; anything else as it is."""
    if isinstance(value, str) and len(value) <= 40:
        for kind in (int, float):
            try:
                value = kind(value)
                break
            except ValueError:
                continue
    return int(value) if name in _WHOLE and isinstance(value, float) and value.is_integer() else value
