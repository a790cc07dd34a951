"""What a call costs: USD per million tokens, from the file or from the price table that litellm ships."""

from __future__ import annotations

from runner.records.completion import Usage
from runner.records.quick import quick

_MILLION = 1_000_000


@quick
class Price:
    """USD per million tokens. `cached` is for input tokens the endpoint had cached; without it they cost `input`."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, usage: Usage) -> float:
        """USD. Cached tokens are a part of the input tokens, reasoning tokens of the output tokens."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        cached_price = self.input if self.cached is None else self.cached
        fresh = (usage.input_tokens - cached) * self.input
        return (fresh + cached * cached_price + usage.output_tokens * self.output) / _MILLION


def known_price(model: str) -> Price | None:
    """The price of `model` (with or without `openai/`) in litellm's table, or None.

    Reads the table's file without importing litellm, which takes seconds. Costs some 20 ms: call it once per model.
    """
    import json
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec("litellm")
    if spec is None or not spec.origin:
        return None
    table_file = Path(spec.origin).parent / "model_prices_and_context_window_backup.json"
    try:
        table = json.loads(table_file.read_bytes())
    except (OSError, ValueError):
        return None  # another litellm keeps it elsewhere: the price is then simply not known
    entry = table.get(model) or table.get(model.removeprefix("openai/"))
    if not isinstance(entry, dict) or entry.get("input_cost_per_token") is None:
        return None
    cached = entry.get("cache_read_input_token_cost")
    return Price(
        float(entry["input_cost_per_token"]) * _MILLION,
        float(entry.get("output_cost_per_token") or 0.0) * _MILLION,
        None if cached is None else float(cached) * _MILLION,
    )
