from bounds import first_at_least


class Log:
    """Lines with the second they were written in, sorted."""

    def __init__(self, lines):
        self.lines = sorted(lines)
        self.times = [time for time, _ in self.lines]

    def between(self, start, end):
        """What was written from `start` on, and before `end`."""
        first, last = first_at_least(self.times, start), first_at_least(self.times, end)
        return [text for _, text in self.lines[first:last]]
