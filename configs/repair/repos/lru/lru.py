from collections import OrderedDict


class Cache:
    """Keeps at most `size` entries; what was used longest ago goes first."""

    def __init__(self, size):
        if size < 1:
            raise ValueError("a cache holds one entry at least")
        self.size = size
        self.hits = self.misses = 0
        self._entries = OrderedDict()

    def get(self, key, default=None):
        if key not in self._entries:
            self.misses += 1
            return default
        self.hits += 1
        return self._entries[key]

    def put(self, key, value):
        if key in self._entries:
            self._entries.move_to_end(key)
        self._entries[key] = value
        if len(self._entries) > self.size:
            self._entries.popitem(last=False)

    def __len__(self):
        return len(self._entries)
