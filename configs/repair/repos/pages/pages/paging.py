class Pages:
    """`items` in pages of `size`. Pages count from 1."""

    def __init__(self, items, size=10):
        self.items = list(items)
        self.size = size

    @property
    def count(self):
        return len(self.items) // self.size + 1

    def page(self, number):
        if not 1 <= number <= max(self.count, 1):
            raise IndexError(f"there is no page {number}")
        first = (number - 1) * self.size
        return self.items[first : first + self.size]
