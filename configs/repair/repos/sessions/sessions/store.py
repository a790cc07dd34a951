"""Sessions that end after `ttl` seconds without a visit. `clock` is given, so that tests need not wait."""

import time


class Store:
    def __init__(self, ttl, clock=time.monotonic):
        self.ttl = ttl
        self.clock = clock
        self._sessions = {}

    def touch(self, name, **values):
        """A visit: the session is there from now on, and lasts `ttl` seconds more."""
        _, old = self._sessions.get(name, (0.0, {}))
        self._sessions[name] = (self.clock() + self.ttl, {**old, **values})

    def get(self, name):
        """What the session holds; None when there is none, or it has ended."""
        until, values = self._sessions.get(name, (0.0, None))
        return values if self.clock() < until else None

    def purge(self):
        """Forget what has ended. Returns how many those were."""
        gone = 0
        now = self.clock()
        for name, (until, _) in self._sessions.items():
            if until <= now:
                del self._sessions[name]
                gone += 1
        return gone

    def __len__(self):
        return len(self._sessions)
