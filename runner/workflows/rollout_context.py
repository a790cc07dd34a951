"""`RolloutContext`, the one name that two generations gave to two things.

Called with a request it is what an agent loop's `run` is handed; called with an endpoint, or with nothing, it is the
ambient context. Both are instances of it, so annotations and `isinstance` hold for either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.workflows import ambient
from runner.workflows.loop import context as loop

_LOOP = frozenset({"request", "tools", "llm"})

if TYPE_CHECKING:

    class RolloutContext(loop.RolloutContext, ambient.RolloutContext):
        """Either of the two."""

else:

    class _Either(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            of_loop = _LOOP & kwargs.keys() or (args and not isinstance(args[0], str | None))
            return (loop if of_loop else ambient).RolloutContext(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, loop.RolloutContext | ambient.RolloutContext)

    class RolloutContext(metaclass=_Either):
        """`RolloutContext(request, tools, llm)` of an agent loop, or the ambient `RolloutContext(url, key, id)`."""
