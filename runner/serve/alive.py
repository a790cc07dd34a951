"""`Alive`: the rollouts that this process holds, by what they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from runner.serve.played import Played


class Alive:
    """Every accepted rollout until its verdict is stored. A wire id may belong to several of them."""

    def __init__(self) -> None:
        self._all: dict[str, Played] = {}
        self._by_name: dict[str, dict[str, Played]] = {}
        self._by_key: dict[str, Played] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Played]:
        return iter(list(self._all.values()))

    def __contains__(self, attempt_id: str) -> bool:
        return attempt_id in self._all

    def add(self, played: Played, keys: Sequence[str]) -> None:
        """Hold one. A key that another one has stays with that one."""
        self._all[played.attempt_id] = played
        self._by_name.setdefault(played.name, {})[played.attempt_id] = played
        own = self._by_key
        for key in keys:
            if own.setdefault(key, played) is played:
                played.keys += (key,)
        self._idle.clear()

    def remove(self, played: Played) -> None:
        """Let one go."""
        del self._all[played.attempt_id]
        same = self._by_name[played.name]
        del same[played.attempt_id]
        if not same:
            del self._by_name[played.name]
        for key in played.keys:
            del self._by_key[key]
        if not self._all:
            self._idle.set()

    def named(self, name: str) -> Played | None:
        """The latest with this wire id."""
        same = self._by_name.get(name)
        return None if not same else next(reversed(same.values()))

    def keyed(self, keys: Sequence[str]) -> Played | None:
        """The one that has one of these keys."""
        for key in keys:
            if key in self._by_key:
                return self._by_key[key]
        return None

    async def gone(self, seconds: float) -> bool:
        """Wait until none is left. False: some are, after `seconds`."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True
