"""Errors of the engine as Strands knows them. Each is raised from its own, so that the engine knows it again."""

from __future__ import annotations

from strands.types.exceptions import ContextWindowOverflowException, ModelThrottledException

from runner.records.failure import LimitReached, ModelError, RolloutError


def as_strands(error: RolloutError) -> Exception:
    """What Strands has a reaction to: a context that can be reduced, a call that can be made later; else `error`."""
    if isinstance(error, LimitReached) and error.kind == "context_overflow":
        return ContextWindowOverflowException(str(error))
    if isinstance(error, ModelError) and error.status == 429:
        return ModelThrottledException(str(error))
    return error
