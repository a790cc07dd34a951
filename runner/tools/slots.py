"""`Slots`: how many calls of one tool run at once, over all rollouts.

A slot is held until the function has really returned, not until somebody stopped waiting for it. So a tool that hangs
is bounded: when every slot is held by an abandoned call, and stays so, who waits is told instead of waiting for ever.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from runner.records.failure import ToolError

if TYPE_CHECKING:
    from asyncio import Future


class Slots:
    """`size` slots of the tool `name` on the running event loop; None is no bound."""

    def __init__(self, size: int | None, name: str, patience: float = 30.0) -> None:
        self._size = size
        self._name = name
        self._patience = patience
        self._taken = 0
        self._abandoned = 0
        self._stuck_since = 0.0
        self._waiting: deque[Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a slot, first come first served.

        Raises `ToolError` when abandoned calls have held all of them for `patience` seconds.
        """
        if self._size is None or (self._taken < self._size and not self._waiting):
            self._taken += 1
            return
        from asyncio import CancelledError, get_running_loop, wait

        turn: Future[None] = get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            while not turn.done():
                await wait({turn}, timeout=max(0.01, self._patience - self._stuck_for()))
                if not turn.done() and self._stuck_for() >= self._patience:
                    turn.cancel()
                    raise self._lost()
        except CancelledError:
            if not turn.cancel():
                self.give()  # handed a slot in the very moment of being cancelled: pass it on
            raise

    def give(self) -> None:
        """A call has returned: its slot goes to whoever waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken -= 1

    def abandon(self) -> None:
        """Nobody waits for a call any more, but it still runs and holds its slot."""
        self._abandoned += 1
        self._stuck_since = monotonic()

    def recover(self) -> None:
        """An abandoned call returned after all; call `give` too."""
        self._abandoned -= 1

    def _stuck_for(self) -> float:
        """Seconds since the last slot was lost, 0 while there is one that is not."""
        lost = self._size is not None and self._abandoned >= self._size
        return monotonic() - self._stuck_since if lost else 0.0

    def _lost(self) -> ToolError:
        calls = "its one slot is" if self._size == 1 else f"all {self._size} of its slots are"
        return ToolError(
            f"the tool `{self._name}` is stuck: {calls} held by calls that timed out or were cancelled and have "
            "never returned; give the code of the tool a timeout of its own",
            kind="tool_stuck",
        )
